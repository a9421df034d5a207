"""Requests that are served too late."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from diag.model.serving_log import LoadConditions, RequestRecord
from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.finding import CannotTell
from diag.rules.report import Report
from tests.builders.imported import imported
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def served(n_late: int, n: int = 50, *, itl_ns: int = 20 * MS) -> ServingLog:
    """`n` requests, of which the last ones have a TTFT of three seconds."""
    late = dict.fromkeys(range(n - n_late, n), 3 * SECOND)
    of = [request(k, k * SECOND, ttft_ns=late.get(k, 100 * MS), itl_ns=itl_ns) for k in range(n)]
    return ServingLog([LoggedRun(of)])


def without_tokens() -> ServingLog:
    def blind(each: RequestRecord) -> RequestRecord:
        return msgspec.structs.replace(each, token_ns=())

    return ServingLog([LoggedRun([blind(each) for each in run.requests]) for run in served(20).runs])


CASES = {
    "serving.goodput": ThreeCases(
        fires=lambda: served(20),
        clear=lambda: served(4),
        untold=without_tokens,
    ),
}


def test_it_counts_what_was_in_time(ask: Ask) -> None:
    finding = only_finding(ask("serving.goodput", served(20)))
    assert figures(finding)["attainment"] == pytest.approx(0.6)
    assert finding.title == "Only 60.0 % of the completed requests are in time"
    assert "20 missed TTFT and 0 missed TPOT, of 50" in finding.claim


def test_a_slow_tpot_is_missed_by_all(ask: Ask) -> None:
    finding = only_finding(ask("serving.goodput", served(0, itl_ns=300 * MS)))
    assert figures(finding)["attainment"] == 0
    assert "0 missed TTFT and 50 missed TPOT" in finding.claim


def test_in_a_burst_everyone_waits(ask: Ask) -> None:
    (run,) = served(20).runs
    burst = LoggedRun(run.requests, load=LoadConditions(arrival="at_once"))
    (answer,) = ask("serving.goodput", ServingLog([burst]))
    assert isinstance(answer, CannotTell)


def test_an_empty_answer_meets_nothing(ask: Ask) -> None:
    of = [request(k, k * SECOND, n=0 if k < 10 else 5) for k in range(50)]
    finding = only_finding(ask("serving.goodput", ServingLog([LoggedRun(of)])))
    assert figures(finding)["attainment"] == pytest.approx(0.8)


def with_limits(folder: Path, text: str) -> Report:
    limits = folder / "limits.toml"
    limits.write_text(text)
    (inputs := folder / "inputs").mkdir()
    with imported(served(20), inputs) as case:
        return analyse(case, AnalysisOptions(thresholds=limits))


def test_the_user_sets_the_objective(tmp_path: Path) -> None:
    report = with_limits(tmp_path, '["serving.goodput"]\nttft_ms = 5000\n')
    assert any(answer.rule == "serving.goodput" for answer in report.clear)


def test_without_an_objective_there_is_no_goodput(tmp_path: Path) -> None:
    report = with_limits(tmp_path, '["serving.goodput"]\nttft_ms = 0\ntpot_ms = 0\n')
    (answer,) = (each for each in report.cannot_tell if each.rule == "serving.goodput")
    assert isinstance(answer, CannotTell)
    assert "no objective is set" in answer.because
