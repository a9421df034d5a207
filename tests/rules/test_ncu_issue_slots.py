"""Schedulers without a warp that is ready."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, only_finding
from tests.rules.test_ncu_speed_of_light import MEMORY, SM

BUSY = "smsp__issue_active.avg.per_cycle_active"
ELIGIBLE = "smsp__warps_eligible.avg.per_cycle_active"
ACTIVE = "smsp__warps_active.avg.per_cycle_active"
THEORETICAL = "smsp__maximum_warps_avg_per_active_cycle"
DEVICE = "smsp__warps_active.avg.peak_sustained"


def issuing(busy: float, **changes: Value) -> NcuReport:
    """Sixteen warps per scheduler, as many as there can be, on a device that is far from any limit."""
    metrics: dict[str, Value] = {
        BUSY: busy,
        ELIGIBLE: 0.4,
        ACTIVE: 15.0,
        THEORETICAL: 16.0,
        DEVICE: 16.0,
        SM: 30.0,
        MEMORY: 40.0,
    }
    return NcuReport.of({**metrics, **changes})


def without_sol() -> NcuReport:
    return NcuReport.of({BUSY: 0.3, ELIGIBLE: 0.4, ACTIVE: 15.0, THEORETICAL: 16.0, DEVICE: 16.0})


CASES = {
    "ncu.issue_slots": ThreeCases(fires=lambda: issuing(0.3), clear=lambda: issuing(0.6), untold=without_sol),
}


def test_empty_slots_are_what_could_be_won(ask: Ask) -> None:
    finding = only_finding(ask("ncu.issue_slots", issuing(0.45)))
    assert finding.recoverable_ns == 550_000


def test_no_more_than_the_busier_side_leaves_could_be_won(ask: Ask) -> None:
    """A histogram issues in a fifth of the cycles, but memory is at 75 % of its peak."""
    assert only_finding(ask("ncu.issue_slots", issuing(0.2, **{MEMORY: 75.0}))).recoverable_ns == 250_000


@pytest.mark.parametrize("at_limit", [{MEMORY: 80.0}, {SM: 91.0}])
def test_empty_slots_are_no_loss_at_a_limit_of_the_device(ask: Ask, at_limit: dict[str, float]) -> None:
    """A tensor-core product issues little and keeps its pipe busy; so does a copy with its memory."""
    (answer,) = ask("ncu.issue_slots", issuing(0.2, **at_limit))
    assert isinstance(answer, Clear)


@pytest.mark.parametrize(
    ("warps", "says"),
    [
        ({ACTIVE: 0.9}, ["less than one warp"]),
        ({ACTIVE: 12.7}, ["end at different times"]),
        ({ACTIVE: 12.0, THEORETICAL: 12.0}, ["allows fewer warps than the device"]),
        ({ACTIVE: 4.0, THEORETICAL: 12.0}, ["end at different times", "allows fewer warps"]),
        ({ACTIVE: 12.8}, ["warps enough: they wait"]),
    ],
)
def test_what_keeps_warps_from_being_ready_is_told(ask: Ask, warps: dict[str, float], says: list[str]) -> None:
    finding = only_finding(ask("ncu.issue_slots", issuing(0.3, **warps)))
    assert all(part in finding.claim for part in says)
    assert len(finding.next) == len(says)


def test_the_share_of_cycles_without_a_ready_warp_does_as_well(ask: Ask) -> None:
    report = issuing(0.3)
    (launch,) = report.launches
    metrics = {name: value for name, value in launch.metrics.items() if name != BUSY}
    other = NcuReport.of({**metrics, "smsp__issue_inst0.avg.pct_of_peak_sustained_active": 70.0})
    assert only_finding(ask("ncu.issue_slots", other)).recoverable_ns == 600_000
