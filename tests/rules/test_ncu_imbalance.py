"""SMs that are done while others still work."""

from __future__ import annotations

from typing import Any

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, only_finding

ACTIVE = "sm__cycles_active.{}"
ELAPSED = "gpc__cycles_elapsed.max"


def active(average: float, *, duration_ns: int = 1_000_000, more: Any = None, **launch: Any) -> NcuReport:
    """Cycles that an SM is active, of 1,000 that elapse."""
    metrics: dict[str, Value] = {ACTIVE.format("avg"): average, ELAPSED: 1000.0, "gpu__time_duration.sum": duration_ns}
    return NcuReport.of({**metrics, **(more or {})}, **launch)


CASES = {
    "ncu.imbalance": ThreeCases(
        fires=lambda: active(800.0), clear=lambda: active(951.0), untold=lambda: NcuReport.of({ELAPSED: 1000.0})
    ),
}


def test_the_time_without_work_is_what_could_be_won(ask: Ask) -> None:
    assert only_finding(ask("ncu.imbalance", active(800.0))).recoverable_ns == pytest.approx(200_000, abs=1)


def test_no_more_than_the_busier_side_leaves_could_be_won(ask: Ask) -> None:
    busy = {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 90.0}
    finding = only_finding(ask("ncu.imbalance", active(800.0, more=busy)))
    assert finding.recoverable_ns == pytest.approx(100_000, abs=1)


def test_the_longest_sm_stands_for_the_launch_where_it_is_known(ask: Ask) -> None:
    """It is active for 900 cycles, an SM on average for 800."""
    more = {ACTIVE.format("max"): 900.0, "sm__cycles_elapsed.max": 1000.0}
    assert only_finding(ask("ncu.imbalance", active(800.0, more=more))).recoverable_ns == 100_000


def test_what_the_last_wave_leaves_idle_is_shown_beside_it(ask: Ask) -> None:
    finding = only_finding(ask("ncu.imbalance", active(800.0, more={"launch__waves_per_multiprocessor": 1.5})))
    assert "1.50 waves of blocks: equal blocks would leave up to 25.0 % idle." in finding.claim


@pytest.mark.parametrize(
    ("report", "because"),
    [
        (active(800.0, grid=(100, 1, 1)), "100 blocks for 108 SMs: that some are idle follows from the grid"),
        (active(800.0, duration_ns=19_999), "the launch takes 20.0 µs: starting and ending it leaves SMs idle, too"),
    ],
)
def test_idle_sms_may_say_nothing_of_balance(ask: Ask, report: NcuReport, because: str) -> None:
    (answer,) = ask("ncu.imbalance", report)
    assert isinstance(answer, CannotTell)
    assert answer.because == because


def test_a_twentieth_is_no_matter(ask: Ask) -> None:
    (answer,) = ask("ncu.imbalance", active(950.1))
    assert isinstance(answer, Clear)
