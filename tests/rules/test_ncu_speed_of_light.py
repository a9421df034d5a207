"""How near a kernel comes to what its device can do, and which side binds it."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.builders.ncu_report import KernelLaunch, NcuReport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def reaching(sm: float, memory: float, **more: float | str) -> NcuReport:
    return NcuReport.of({SM: sm, MEMORY: memory, **more})


CASES = {
    "ncu.speed_of_light": ThreeCases(
        fires=lambda: reaching(20.0, 30.0),
        clear=lambda: reaching(20.0, 85.0),
        untold=lambda: NcuReport.of({SM: 20.0}),
    ),
}


def test_what_could_be_won_is_the_distance_to_the_busier_side(ask: Ask) -> None:
    finding = only_finding(ask("ncu.speed_of_light", reaching(20.0, 30.0)))
    assert finding.recoverable_ns == 700_000
    assert finding.share == 0.7


@pytest.mark.parametrize(
    ("sm", "memory", "binds"),
    [(59.9, 59.9, "latency"), (60.0, 49.9, "compute"), (62.0, 72.1, "memory"), (79.9, 69.9, "compute")],
)
def test_the_side_that_is_ahead_binds(ask: Ask, sm: float, memory: float, binds: str) -> None:
    finding = only_finding(ask("ncu.speed_of_light", reaching(sm, memory)))
    assert finding.title == f"stencil is {binds}-bound at {max(sm, memory):.1f} % of the device's peak"


@pytest.mark.parametrize(("sm", "memory"), [(75.0, 66.0), (60.0, 50.1), (80.0, 10.0), (95.0, 96.0)])
def test_a_balanced_kernel_and_one_at_its_limit_are_clear(ask: Ask, sm: float, memory: float) -> None:
    (answer,) = ask("ncu.speed_of_light", reaching(sm, memory))
    assert isinstance(answer, Clear)


def test_the_busiest_unit_of_each_side_is_named(ask: Ask) -> None:
    of_peak = ".avg.pct_of_peak_sustained_elapsed"
    units = {"sm__issue_active": 12.0, "sm__pipe_alu_cycles_active": 20.0, "dram__cycles_active": 30.0}
    report = reaching(
        20.0,
        30.0,
        **{f"{unit}{of_peak}": pct for unit, pct in units.items()},
        **{f"breakdown:{SM}": f"sm__issue_active{of_peak},sm__pipe_alu_cycles_active{of_peak},idc__x{of_peak}"},
        **{f"breakdown:{MEMORY}": f"dram__cycles_active{of_peak}"},
    )
    finding = only_finding(ask("ncu.speed_of_light", report))
    assert "20.0 % of their peak, busiest the ALU pipe; " in finding.claim
    assert "30.0 % of its own, busiest device memory." in finding.claim
    assert figures(finding)["busiest: the ALU pipe"] == 20.0


def test_without_a_breakdown_known_units_are_looked_for(ask: Ask) -> None:
    report = reaching(20.0, 30.0, **{"lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 29.0})
    assert "busiest L2 lookups (sectors)" in only_finding(ask("ncu.speed_of_light", report)).claim


def test_a_grid_smaller_than_the_device_is_said(ask: Ask) -> None:
    metrics = {"gpu__time_duration.sum": 1_000_000, SM: 20.0, MEMORY: 30.0}
    small = NcuReport([KernelLaunch(metrics, grid=(16, 1, 1))])
    sms = NcuReport([KernelLaunch({**metrics, "device__attribute_multiprocessor_count": 108}, grid=(16, 1, 1))])
    assert "16 blocks for 108 SMs" in only_finding(ask("ncu.speed_of_light", small)).claim
    assert "16 blocks for 108 SMs" in only_finding(ask("ncu.speed_of_light", sms)).claim
