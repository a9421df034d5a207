"""Requests that fail, are refused, or are sent again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from diag.model.serving_log import EngineConditions, LoadConditions, RequestRecord, StepRecord
from diag.rules.finding import CannotTell, Clear
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def lost(number: int, outcome: str = "failed", **fields: Any) -> RequestRecord:
    """One that came to nothing."""
    at = number * SECOND
    return request(number, at, n=0, outcome=outcome, token_ns=(), ended_ns=at + MS, **fields)


def requests_of(n: int, is_lost: Callable[[int], bool], outcome: str = "failed", **fields: Any) -> ServingLog:
    of = [lost(k, outcome, **fields) if is_lost(k) else request(k, k * SECOND) for k in range(n)]
    return ServingLog([LoggedRun(of)])


def nobody_said() -> ServingLog:
    return ServingLog([LoggedRun(load=LoadConditions(arrival="poisson", rate_per_s=1.0))])


def retried(n: int, grows: bool, *, marked: bool = True) -> ServingLog:
    """Attempts of which some are retries: one in five throughout, or more and more of them, which fail as well."""

    def is_retry(k: int) -> bool:
        return k % 5 == 4 if not grows else k > 0 and (k % 10) < 8 * k / n

    def attempt(k: int) -> RequestRecord:
        if not is_retry(k):
            return lost(k) if is_retry(k + 1) else request(k, k * SECOND)
        of = f"r{k - 1}" if marked else None
        return lost(k, retry_of=of) if grows else request(k, k * SECOND, retry_of=of)

    return ServingLog([LoggedRun([attempt(k) for k in range(n)])])


def empty(n_empty: int) -> ServingLog:
    """Some of a hundred answers have no token."""
    of = [request(k, k * SECOND, n=0 if k < n_empty else 10) for k in range(100)]
    return ServingLog([LoggedRun(of)])


CASES = {
    "serving.errors": ThreeCases(
        fires=lambda: requests_of(100, lambda k: k % 20 == 0, error="503 Service Unavailable"),
        clear=lambda: requests_of(100, lambda _: False),
        untold=nobody_said,
    ),
    "serving.empty_answers": ThreeCases(
        fires=lambda: empty(10),
        clear=lambda: empty(0),
        untold=lambda: requests_of(20, lambda _: True),
    ),
    "serving.rejections": ThreeCases(
        fires=lambda: requests_of(100, lambda k: k % 10 == 0, "rejected"),
        clear=lambda: requests_of(100, lambda _: False),
        untold=nobody_said,
    ),
    "serving.retries": ThreeCases(
        fires=lambda: retried(100, grows=True),
        clear=lambda: requests_of(100, lambda _: False),
        untold=lambda: retried(100, grows=True, marked=False),
    ),
}


def test_errors_say_which_is_most_frequent(ask: Ask) -> None:
    finding = only_finding(ask("serving.errors", CASES["serving.errors"].fires()))
    assert figures(finding)["errors"] == pytest.approx(0.05)
    assert finding.claim == "Of 100 requests 5 failed or expired; most often (5 times): 503 Service Unavailable."
    assert finding.severity == "warning"


def test_a_tenth_is_critical(ask: Ask) -> None:
    assert only_finding(ask("serving.errors", requests_of(100, lambda k: k < 12, "expired"))).severity == "critical"


def test_an_answer_without_a_token_completed(ask: Ask) -> None:
    assert figures(only_finding(ask("serving.empty_answers", empty(10))))["empty"] == 0.1
    (answer,) = ask("serving.errors", empty(10))
    assert isinstance(answer, Clear)


def test_what_was_refused_did_not_fail(ask: Ask) -> None:
    (answer,) = ask("serving.errors", requests_of(100, lambda k: k < 50, "rejected"))
    assert isinstance(answer, Clear)


@pytest.mark.parametrize(("n_running", "n_free"), [(4, 10), (8, 0)])
def test_rejections_tell_whether_a_place_was_free(ask: Ask, n_running: int, n_free: int) -> None:
    (run,) = requests_of(100, lambda k: k % 10 == 5, "rejected").runs
    steps = [StepRecord(number=k, start_ns=k * SECOND, end_ns=k * SECOND + MS, n_running=n_running) for k in range(100)]
    full = LoggedRun(run.requests, steps, engine=EngineConditions(max_sequences=8))
    finding = only_finding(ask("serving.rejections", ServingLog([full])))
    assert figures(finding)["with a free place"] == n_free
    assert finding.next[0].startswith("Raise the limit" if n_free else "Add capacity")


def test_a_storm_is_told_from_steady_retries(ask: Ask) -> None:
    storm = only_finding(ask("serving.retries", retried(100, grows=True)))
    steady = only_finding(ask("serving.retries", retried(100, grows=False)))
    assert storm.title.startswith("A retry storm")
    assert (storm.severity, steady.severity) == ("critical", "warning")
    assert figures(steady)["retries"] == pytest.approx(0.2)
    assert float(figures(storm)["retries in the last third"]) > 2 * float(figures(storm)["retries in the first third"])


def test_a_retry_now_and_then_is_no_storm(ask: Ask) -> None:
    (run,) = requests_of(100, lambda k: k == 50).runs
    again = request(100, 100 * SECOND, retry_of="r50")
    (answer,) = ask("serving.retries", ServingLog([LoggedRun([*run.requests, again])]))
    assert isinstance(answer, Clear)


def test_failures_without_marks_may_have_been_retried(ask: Ask) -> None:
    (answer,) = ask("serving.retries", requests_of(100, lambda k: k < 50))
    assert isinstance(answer, CannotTell)
    assert "nobody retried, or the file does not say" in answer.because
