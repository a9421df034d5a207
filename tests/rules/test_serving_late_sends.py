"""A load generator that is late."""

from __future__ import annotations

import msgspec
import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def sent_late(delay_ns: int, *, is_known: bool = True) -> ServingLog:
    """TTFT is 100 ms from sending."""
    of = [
        request(k, k * SECOND + delay_ns, ttft_ns=100 * MS, intended_ns=k * SECOND if is_known else None)
        for k in range(40)
    ]
    return ServingLog([LoggedRun(of)])


CASES = {
    "capture.late_sends": ThreeCases(
        fires=lambda: sent_late(100 * MS),
        clear=lambda: sent_late(1 * MS),
        untold=lambda: sent_late(100 * MS, is_known=False),
    ),
}


def test_it_says_what_the_latencies_hide(ask: Ask) -> None:
    finding = only_finding(ask("capture.late_sends", sent_late(300 * MS)))
    seen = figures(finding)
    assert seen["hidden"] == pytest.approx(0.75)
    assert (seen["TTFT P95 from sending"], seen["TTFT P95 as intended"]) == (100 * MS, 400 * MS)


def test_requests_that_did_not_complete_are_in_no_mean(ask: Ask) -> None:
    (run,) = sent_late(300 * MS).runs
    failed = [msgspec.structs.replace(each, outcome="failed") for each in run.requests]
    (answer,) = ask("capture.late_sends", ServingLog([LoggedRun(failed)]))
    assert isinstance(answer, CannotTell)


def test_a_timers_millisecond_is_no_lateness(ask: Ask) -> None:
    of = [request(k, k * SECOND + MS, ttft_ns=5 * MS, intended_ns=k * SECOND) for k in range(40)]
    (answer,) = ask("capture.late_sends", ServingLog([LoggedRun(of)]))
    assert isinstance(answer, Clear)
