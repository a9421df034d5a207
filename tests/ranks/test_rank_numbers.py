"""Numbers that no rank of the job has are not taken for one: of another job, or just a number in a name. Synthetic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from tests.builders.recorder_dumps import Job as SyntheticJob
from tests.ingest.recorder.reading import pickled

STACK = """\
Thread 4711 (idle): "MainThread"
    load_batch (data.py:14)
    <module> (train.py:50)
"""


@contextmanager
def job_in(folder: Path) -> Iterator[Job]:
    with open_inputs([folder], ImportOptions(use_cache=False)) as case:
        yield Job(case)


def beat(folder: Path, rank: int, world_size: int = 4, **more: object) -> None:
    said = {"schema": "diag.heartbeat/1", "rank": rank, "world_size": world_size, "time_ns": 1, "written_ns": 1}
    (folder / f"rank{rank}.heartbeat.json").write_text(json.dumps(said | more))


def test_a_heartbeat_beyond_the_world_counts_for_none_and_is_told(tmp_path: Path) -> None:
    for rank in (0, 1, 7):
        beat(tmp_path, rank, ended="KeyError: 'x'" if rank == 7 else None)
    with job_in(tmp_path) as job:
        assert job.n_ranks == 4
        assert [each.rank for each in job.heartbeats] == [0, 1]
        assert not job.hang.faults
        notes = [note for source in job.sources for note in job.case.notes(source.id)]
    assert notes == ["A heartbeat says that it is of rank 7 of 4, which no job has."]


def test_a_rank_that_was_told_too_small_a_world_is_one(tmp_path: Path) -> None:
    """World sizes that differ are the very fault: the largest decides which numbers there are."""
    for rank, size in ((0, 3), (1, 3), (2, 2)):
        beat(tmp_path, rank, size)
    with job_in(tmp_path) as job:
        assert [each.rank for each in job.heartbeats] == [0, 1, 2]


def test_a_stack_whose_name_holds_another_number_has_no_rank(tmp_path: Path) -> None:
    beat(tmp_path, 0)
    for number in (1, 512):
        (tmp_path / f"rank{number}.stack").write_text(STACK)
    with job_in(tmp_path) as job:
        assert [each.rank for each in job.stacks] == [1, None]


def test_a_dump_whose_name_holds_another_number_has_no_rank(tmp_path: Path) -> None:
    SyntheticJob(n_ranks=16, absent={3}).write(tmp_path)
    pickled(tmp_path / "_dump_99", {"version": "2.10", "pg_config": {}, "pg_status": {}, "entries": []})
    with job_in(tmp_path) as job:
        assert set(job.dumps.by_rank) == set(range(16))
        assert job.hang.named == (3,)
        assert job.hang.notes == ["1 dump does not say of which rank it is, and is left out"]
