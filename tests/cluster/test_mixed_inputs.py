"""Traces beside other evidence, and several ranks in one file: shards say what one case of all inputs says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diag.cluster.workers import ThisProcess
from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import AnalysisOptions
from diag.rules.stored import report_of
from tests.builders.comm_trace import CommTrace
from tests.builders.job_log import JobLog, timed_out
from tests.builders.nccl_tests import NcclTests, on_line
from tests.builders.rank_job import RankJob
from tests.builders.recorder_dumps import Job
from tests.cluster.test_gathering import document, report_by, without_places
from tests.ingest.test_collectives import with_schemas
from tests.ingest.test_rank_payloads import record


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DIAG_CACHE", str(tmp_path / "cache"))


def together(folder: Path) -> dict[str, Any]:
    with open_inputs([folder], ImportOptions(use_cache=False)) as case:
        return document(report_of(case, AnalysisOptions()))


def test_traces_beside_dumps_logs_and_measurements(tmp_path: Path) -> None:
    """Sources are numbered by name in one case, and traces last in a gathered one: their folder comes last here."""
    folder = tmp_path / "job"
    Job(n_entries=8, absent=[2]).write(folder)
    JobLog().add(*timed_out(1, 3)).write(folder / "job.log")
    NcclTests(on_line(300e9, 20_000)).write(folder / "all_reduce.txt")
    made = RankJob(n_ranks=4, n_steps=12, load_ns=lambda rank, step: 3_000_000 * (rank == 2))
    made.write(folder / "traces")
    told = together(folder)
    assert {source["kind"] for source in told["sources"]} == {"flight-recorder", "job-log", "nccl-tests", "kineto"}
    assert without_places(report_by(ThisProcess(), folder)) == without_places(told)


def test_calls_of_traces_are_held_against_measurements(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    NcclTests(on_line(300e9, 20_000)).write(folder / "all_reduce.txt")
    (folder / "traces").mkdir()
    for rank in range(2):
        CommTrace([1 << 12] * 400 + [rank + 4]).write(folder / "traces" / f"rank{rank}.json")
    told = together(folder)
    assert without_places(report_by(ThisProcess(), folder)) == without_places(told)
    assert "802" in str(told["findings"])


def test_two_processes_in_one_report(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    export, main = with_schemas()
    record(export, main, 0, 0, 0)
    record(export, export.process(pid=101).thread(), 1, 0, 100_000)
    export.write(folder / "both.sqlite")
    told = together(folder)
    assert without_places(report_by(ThisProcess(), folder)) == without_places(told)
    assert {"ranks.skew", "ranks.straggler"} & {each["rule"] for each in told["findings"]}
