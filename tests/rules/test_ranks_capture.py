"""How far the files of several ranks make one job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from diag.rules import engine, running, thresholds
from diag.rules.finding import Answer, Finding
from diag.timeline.joined import traces_of
from tests.builders.rank_job import RankJob
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

CASES = {
    "capture.ranks": ThreeCases(
        fires=lambda: RankJob(recorded=[0, 2]),
        clear=RankJob,
        untold=lambda: RankJob(is_told=False),
    ),
}


def asked(paths: list[Path]) -> list[Answer]:
    rule = engine.rules()["capture.ranks"]
    assert isinstance(rule, engine.JobRule)
    with open_inputs(paths, ImportOptions(use_cache=False)) as case:
        return list(running.run_on_job(rule, Job(case, traces_of(case)), thresholds.load().get(rule.id, {})))


def test_missing_ranks_are_counted(ask: Ask) -> None:
    finding = only_finding(ask("capture.ranks", RankJob(recorded=[0, 2])))
    assert finding.title == "2 of 4 ranks are given"
    assert figures(finding)["missing ranks"] == 2
    assert "the trace itself (2)" in finding.claim


def test_a_rank_that_two_files_claim_is_told(tmp_path: Path) -> None:
    first = RankJob().write_rank(1, tmp_path / "a.json")
    second = RankJob(seed=2, end_noise_ns=50).write_rank(1, tmp_path / "b.json")
    finding = only_finding(asked([first, second]))
    assert "ranks are claimed twice" in finding.title
    assert "3 of 4" in finding.claim


def test_unequal_counts_without_numbers_are_told(ask: Ask) -> None:
    finding = only_finding(ask("capture.ranks", RankJob(is_numbered=False, missing_steps={1: 3})))
    assert "collectives that cannot be matched" in finding.title
    assert "(17 to 20)" in finding.claim


def test_one_file_is_no_job(ask: Ask) -> None:
    assert ask("capture.ranks", RankJob(recorded=[0])) == []


REPORTS = os.environ.get("DIAG_REAL_REPORTS")


@pytest.mark.skipif(not REPORTS, reason="DIAG_REAL_REPORTS is not set")
def test_two_ranks_of_128() -> None:
    paths = [Path(REPORTS or "", "kineto", f"job128-rank{rank}.json.gz") for rank in range(2)]
    (finding,) = asked(paths)
    assert isinstance(finding, Finding)
    assert finding.title.startswith("2 of 128 ranks are given")
    assert "clocks cannot be compared" in finding.title
