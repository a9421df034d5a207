"""Dumps as the versions of PyTorch write them: what a version does not write is NULL, and never guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.detect import detect
from tests.builders.recorder_dumps import Job
from tests.ingest.recorder.reading import ENTRY, dump_of, entries, opened, pickled

LISTED = {"name": "1", "desc": "DATA", "ranks": "[0, 2]"}
STATUS = {"last_enqueued_collective": 3, "last_started_collective": -1, "last_completed_collective": 2}


def test_version_1_has_numbers_of_groups_and_one_sequence(tmp_path: Path) -> None:
    entry = {
        "record_id": 5, "pg_id": 2, "seq_id": 9, "op_id": 11, "profiling_name": "nccl:all_reduce", "input_sizes": [[4]],
        "output_sizes": [[4]], "time_created_ns": 10, "state": "started", "time_discovered_started_ns": 12,
        "time_discovered_completed_ns": None, "retired": False, "frames": [],
    }  # fmt: skip
    path = pickled(tmp_path / "a_3", {"entries": [entry], "version": "1.4", "pg_config": {0: [0, 1, 2, 3], 2: [1, 3]}})
    with opened(path) as case:
        (read,) = entries(case)
        assert (read["sequence"], read["op_sequence"], read["started_ns"]) == (9, 11, 12)
        assert (read["local_id"], read["group_name"], read["ranks"]) == (2, None, "[1,3]")
        absent = ("p2p_sequence", "is_p2p", "timeout_ns", "thread_name", "duration_ns", "stack_id")
        assert [read[name] for name in absent] == [None] * len(absent)
        assert read["input_dtypes"] == "[]"
        (source,) = case.sources
        assert (source.schema_version, source.rank, source.rank_origin) == ("1.4", 3, "file name")
        assert source.capabilities["process_group_status"] is None
        assert source.capabilities["recorder_stack"] is None


def test_the_first_version_has_no_groups_at_all(tmp_path: Path) -> None:
    entry = {"pg_id": 0, "seq_id": 1, "profiling_name": "nccl:broadcast", "input_sizes": [], "output_sizes": []}
    with opened(pickled(tmp_path / "trace_rank_4", {"entries": [entry], "version": "1.1"})) as case:
        (read,) = entries(case)
        assert (read["local_id"], read["group_name"], read["ranks"], read["record_id"]) == (0, None, None, None)
        assert case.sources[0].rank == 4


def test_pickle_and_json_of_one_moment_say_the_same(tmp_path: Path) -> None:
    """JSON has the numbers of the status as texts, and 0 for a time that is not known."""
    pickle_path = pickled(tmp_path / "rank_2", dump_of(ENTRY, pg_config={"1": LISTED}, pg_status={"1": STATUS}))
    in_json = dump_of(
        {**ENTRY, "time_discovered_started_ns": 0, "time_discovered_completed_ns": 0},
        pg_config={"1": LISTED},
        pg_status={"1": {key: str(value) for key, value in STATUS.items()}},
    )
    (tmp_path / "json").mkdir()
    json_path = tmp_path / "json" / "rank_2.json"
    json_path.write_text(json.dumps(in_json))
    tables = []
    for path in (pickle_path, json_path):
        assert detect(path) == "flight-recorder"
        with opened(path) as case:
            groups = [tuple(row) for row in case.rows("SELECT * FROM process_group")]
            tables.append((entries(case), groups, case.sources[0].rank))
    assert tables[0] == tables[1]
    assert tables[0][1] == [(1, 1, 1, "1", "DATA", "[0,2]", 3, -1, 2)]


@pytest.mark.parametrize("protocol", range(2, 6))
def test_any_protocol(protocol: int, tmp_path: Path) -> None:
    with opened(pickled(tmp_path / "rank_2", dump_of(ENTRY), protocol)) as case:
        assert len(entries(case)) == 1


def test_what_only_some_dumps_have(tmp_path: Path) -> None:
    entry = {**ENTRY, "duration_ms": 1.5, "thread_name": "pt_autograd_0", "thread_id": "7", "is_p2p": True, "new": {}}
    with opened(pickled(tmp_path / "a", dump_of(entry, comm_lib_version="2.28", more=[1]))) as case:
        (read,) = entries(case)
        assert (read["duration_ns"], read["thread_name"], read["is_p2p"]) == (1_500_000, "pt_autograd_0", 1)
        assert read["timeout_ns"] == 600_000_000_000
        assert case.sources[0].tool_version == "communication library 2.28"


def test_a_dump_without_entries_is_not_one_of_a_rank_that_called_nothing(tmp_path: Path) -> None:
    without = pickled(tmp_path / "rank_0", {"version": "2.10", "pg_config": {}, "pg_status": {"0": STATUS}})
    none = pickled(tmp_path / "rank_1", {"version": "2.10", "pg_config": {}, "pg_status": {"0": STATUS}, "entries": []})
    with opened(without, none) as case:
        assert [source.capabilities["recorder_entry"] for source in case.sources] == [None, 0]
        assert not any(source.has_timeline for source in case.sources)


def test_frames_are_kept_once_with_their_lines(tmp_path: Path) -> None:
    leaf = {"name": "all_reduce", "filename": "c10d.py", "line": 12}
    main = {"name": "<module>", "filename": "train.py", "line": 99}
    calls = [{**ENTRY, "frames": frames} for frames in ([leaf, main], [dict(leaf), main], [main], [])]
    with opened(pickled(tmp_path / "a", dump_of(*calls))) as case:
        assert [read["stack_id"] for read in entries(case)] == [1, 1, 2, None]
        shown = "SELECT s.depth, n.text, m.text, s.line FROM stack s JOIN name n ON n.id = symbol_id JOIN name m"
        rows = [tuple(row) for row in case.rows(f"{shown} ON m.id = module_id WHERE s.id = 1 ORDER BY depth")]
        assert rows == [(0, "all_reduce", "c10d.py", 12), (1, "<module>", "train.py", 99)]
        assert case.sources[0].capabilities["recorder_stack"] == 2


def test_gloo_of_torch_2_13_writes_one_group_without_name_over_all_others(tmp_path: Path) -> None:
    nameless = {"": {"name": "", "desc": "", "ranks": "[0, 1]"}}
    gloo = dump_of({**ENTRY, "profiling_name": "gloo:all_reduce"}, pg_config=nameless, pg_status={"1": STATUS})
    with opened(pickled(tmp_path / "fr_1", gloo)) as case:
        (group,) = case.rows("SELECT name, ranks, last_enqueued FROM process_group")
        assert tuple(group) == ("1", None, 3)
        assert (case.sources[0].rank, case.sources[0].rank_origin) == (1, "file name")


def test_a_job_made_up_is_read_whole(tmp_path: Path) -> None:
    paths = Job(n_ranks=16, n_entries=40, with_frames=True, absent={5}).write(tmp_path)
    with opened(*paths) as case:
        assert [source.rank for source in case.sources] == list(range(16))
        assert {source.rank_origin for source in case.sources} == {"groups"}
        assert case.value("SELECT COUNT(*) FROM recorder_entry") == 16 * 40 - 1
        assert case.value("SELECT COUNT(*) FROM (SELECT DISTINCT * FROM call_signature)") < 50
        assert case.value("SELECT COUNT(*) FROM recorder_entry WHERE stack_id IS NULL") == 0


def rows_of(case: Any) -> list[Any]:
    return [tuple(row) for row in case.rows("SELECT * FROM recorder_entry")]


def test_as_json_a_job_reads_the_same(tmp_path: Path) -> None:
    job = Job(n_ranks=8, n_entries=20, with_frames=True)
    with opened(*job.write(tmp_path / "a")) as pickles, opened(*job.write(tmp_path / "b", as_json=True)) as texts:
        assert rows_of(pickles) == rows_of(texts)
