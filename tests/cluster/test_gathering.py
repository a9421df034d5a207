"""A report of many traces is the same whoever reads them, and what was lost meanwhile."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from diag.cluster import reading as reading_module
from diag.cluster.gathering import gathered
from diag.cluster.reading import Reading
from diag.cluster.shards import Shard, shards_of
from diag.cluster.workers import DaskCluster, Processes, ThisProcess, Workers, connected
from diag.errors import InputError, UsageError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.inputs import Input, find_inputs
from diag.render.json_report import render_json
from diag.rules.analysis import AnalysisOptions
from diag.rules.report import Report
from diag.rules.stored import report_of
from diag.store.case import Case
from tests.builders.rank_job import RankJob

N_RANKS = 6


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One rank comes late, one has a clock of its own."""
    made = RankJob(
        n_ranks=N_RANKS,
        n_steps=24,
        load_ns=lambda rank, step: 3_000_000 if rank == 4 else 200_000,
        offset_ns={2: 5_000_000},
    )
    return made.write(tmp_path_factory.mktemp("job") / "traces")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DIAG_CACHE", str(tmp_path / "cache"))


@contextmanager
def opened(
    folder: Path, workers: Workers, options: AnalysisOptions | None = None, imports: ImportOptions | None = None
) -> Iterator[Case]:
    imports = imports or ImportOptions()
    reading = Reading.of(imports, options or AnalysisOptions())
    shards, others = shards_of(find_inputs([folder]))
    with gathered(shards, others, imports, reading, workers, lambda _: None) as case:
        yield case


def document(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(render_json(report))
    return found


def report_by(workers: Workers, folder: Path) -> dict[str, Any]:
    with opened(folder, workers) as case:
        return document(report_of(case, AnalysisOptions()))


def without_places(value: Any) -> Any:
    """Statements name the rows of the case that they are for."""
    match value:
        case dict():
            return {key: without_places(each) for key, each in value.items() if key != "sql"}
        case list():
            return [without_places(each) for each in value]
    return value


@pytest.fixture
def alone(job: Path) -> dict[str, Any]:
    return report_by(ThisProcess(), job)


def test_it_says_what_one_case_of_all_traces_says(job: Path, alone: dict[str, Any]) -> None:
    with open_inputs([job], ImportOptions(use_cache=False)) as case:
        together = document(report_of(case, AnalysisOptions()))
    assert len(together["findings"]) > N_RANKS
    assert without_places(alone) == without_places(together)


def test_processes_say_the_same(job: Path, alone: dict[str, Any]) -> None:
    assert report_by(Processes(2), job) == alone


def test_a_cluster_says_the_same(job: Path, alone: dict[str, Any], scheduler: str) -> None:
    with connected(scheduler) as client:
        assert report_by(DaskCluster(client), job) == alone


@dataclass(frozen=True)
class Losing:
    """Workers of which one is killed as soon as something was read."""

    workers: DaskCluster

    def results(self, task: Any) -> Iterator[tuple[int, Any]]:
        pids: Sequence[int] = list(self.workers.client.run(os.getpid).values())
        for n, result in enumerate(self.workers.results(task)):
            if n == 0:
                os.kill(pids[0], signal.SIGKILL)
            yield result


def test_a_worker_that_is_killed_half_way_changes_nothing(job: Path, alone: dict[str, Any], scheduler: str) -> None:
    with connected(scheduler) as client:
        assert report_by(Losing(DaskCluster(client)), job) == alone


def test_what_was_read_is_not_read_again(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = report_by(ThisProcess(), job)

    def fails(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(reading_module, "_judged", fails)
    assert report_by(ThisProcess(), job) == first


def test_it_goes_on_where_it_was_interrupted(job: Path, alone: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    judged = reading_module._judged
    n_read: list[int] = []

    def counted(*of: Any) -> Any:
        n_read.append(1)
        if len(n_read) == 4:
            raise KeyboardInterrupt
        return judged(*of)

    monkeypatch.setenv("DIAG_CACHE", os.environ["DIAG_CACHE"] + "-2")
    monkeypatch.setattr(reading_module, "_judged", counted)
    with pytest.raises(KeyboardInterrupt):
        report_by(ThisProcess(), job)
    assert report_by(ThisProcess(), job) == alone
    assert len(n_read) == 4 + N_RANKS - 3


def test_a_kept_case_says_it_again_without_the_traces(job: Path, alone: dict[str, Any], tmp_path: Path) -> None:
    kept = tmp_path / "job.diag"
    with opened(job, ThisProcess(), imports=ImportOptions(keep=kept)):
        pass
    with open_inputs([kept], ImportOptions(use_cache=False)) as case:
        assert document(report_of(case, AnalysisOptions())) == alone


def test_a_kept_case_answers_to_nothing_else(job: Path, tmp_path: Path) -> None:
    kept = tmp_path / "job.diag"
    with opened(job, ThisProcess(), imports=ImportOptions(keep=kept)):
        pass
    with open_inputs([kept], ImportOptions(use_cache=False)) as case, pytest.raises(UsageError, match="one part"):
        report_of(case, AnalysisOptions(window=":50ms"))


def test_results_of_another_release_are_told(job: Path, tmp_path: Path) -> None:
    kept = tmp_path / "job.diag"
    with opened(job, ThisProcess(), imports=ImportOptions(keep=kept)):
        pass
    with Case.open(kept, "rw") as case:
        case.db.execute("UPDATE shard_result SET body = x'80'")
        with pytest.raises(InputError, match="another release"):
            report_of(case, AnalysisOptions())


def test_a_part_is_judged_alone(job: Path) -> None:
    options = AnalysisOptions(window="20ms:80ms")
    with opened(job, ThisProcess(), options) as case:
        report = report_of(case, options)
    assert report.part is not None
    assert report.part.measure_ns == 60_000_000
    assert all(row.is_scoped for row in report.devices)


def test_a_part_that_no_trace_has_is_told(job: Path) -> None:
    with (
        pytest.raises(UsageError, match="Leave out --window"),
        opened(job, ThisProcess(), AnalysisOptions(window="1000s:2000s")),
    ):
        pass


def test_the_same_content_is_read_once(tmp_path: Path) -> None:
    folder = RankJob(n_ranks=2).write(tmp_path / "traces")
    (folder / "copy.json").write_bytes((folder / "rank0.json").read_bytes())
    notes: list[str] = []
    imports = replace(ImportOptions(), note=notes.append)
    with opened(folder, ThisProcess(), imports=imports) as case:
        assert len(case.sources) == 2
    assert any("same content" in note for note in notes)


def test_a_damaged_trace_ends_it(job: Path, tmp_path: Path) -> None:
    folder = RankJob(n_ranks=2).write(tmp_path / "traces")
    whole = (folder / "rank1.json").read_text("utf-8")
    (folder / "rank1.json").write_text(whole.replace('"ph": "X"', '"ph": X', 1), "utf-8")
    for workers in (ThisProcess(), Processes(2)):
        with pytest.raises(InputError, match="rank1"):
            report_by(workers, folder)


def test_traces_of_one_rank_are_read_together() -> None:
    paths = [Path("a/rank1.json"), Path("a/rank1.nsys-rep"), Path("a/other.json"), Path("a/dump_1")]
    kinds = ["kineto", "nsys-report", "kineto", "flight-recorder"]
    shards, others = shards_of(list(map(partial(Input, in_folder=True), paths, kinds)))
    assert shards == [Shard(paths[:2]), Shard(paths[2:3])]
    assert [item.path for item in others] == paths[3:]
