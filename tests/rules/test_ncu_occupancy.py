"""Warps that an SM lacks: by its resources, or because they are not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import NcuReport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
BUSY = "smsp__issue_active.avg.per_cycle_active"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
REGISTERS = "launch__registers_per_thread"
CARVE_OUT = "launch__shared_mem_config_size"
DYNAMIC = "launch__shared_mem_per_block_dynamic"

WAITING: Mapping[str, float] = {ACHIEVED: 18.0, BUSY: 0.2, SM: 20.0, MEMORY: 30.0}
"""An A100 with 12 of 64 warps: blocks of 128 threads with 160 registers each. 160 x 32 = 5,120 per warp, 16,384 / 5,120
= 3 warps in each of 4 parts: 12 warps are 3 blocks. The grid of 1,024 blocks has 3.2 waves of 108 x 3."""
LAUNCH: Mapping[str, int] = {
    REGISTERS: 160,
    "launch__shared_mem_per_block_static": 0,
    DYNAMIC: 0,
    "launch__shared_mem_per_block_driver": 1024,
    CARVE_OUT: 32768,
}


def profile(metrics: Mapping[str, float] = {}, *, blocks: int = 1024, threads: int = 128) -> NcuReport:
    together = {**LAUNCH, **WAITING, **metrics}
    return NcuReport.of(together, grid=(blocks, 1, 1), block=(threads, 1, 1))


def without(metric: str) -> NcuReport:
    (launch,) = profile().launches
    return replace(
        profile(), launches=[replace(launch, metrics={k: v for k, v in launch.metrics.items() if k != metric})]
    )


CASES = {
    "ncu.occupancy": ThreeCases(
        fires=profile,
        clear=lambda: profile({BUSY: 0.7}),
        untold=lambda: without(ACHIEVED),
    ),
}


def test_a_resource_that_keeps_warps_away_is_named_with_what_one_more_block_takes(ask: Ask) -> None:
    """3 blocks of 4 warps fit. For 4, a part of the SM holds 4 warps: 16,384 / 4 / 32 = 128 registers."""
    finding = only_finding(ask("ncu.occupancy", profile()))
    assert finding.title == "stencil fits 12 of 64 warps on an SM, bounded by registers"
    assert finding.next[0].startswith("4 blocks per SM fit with at most 128 registers per thread (now 160)")
    assert figures(finding)["theoretical occupancy"] == 12 / 64
    assert figures(finding)["blocks per SM by registers"] == 3


def test_no_more_can_be_won_than_issue_slots_peaks_and_warps_allow(ask: Ask) -> None:
    """Slots leave 80 %, the memory's peak 70 %, and 18 % of the warps could become 100 %: 70 % of 1 ms."""
    assert only_finding(ask("ncu.occupancy", profile())).recoverable_ns == 700_000
    assert only_finding(ask("ncu.occupancy", profile({BUSY: 0.5}))).recoverable_ns == 500_000
    few = profile({REGISTERS: 48, ACHIEVED: 60.0}, blocks=4096)  # 1,536 per warp: 10 x 4 = 40 warps, 62.5 %
    assert only_finding(ask("ncu.occupancy", few)).recoverable_ns == 400_000


def test_ties_are_all_named(ask: Ask) -> None:
    """40 KiB and the system's one: 4 blocks in 164. 4 warps of 128 registers in each part: 4 blocks."""
    tie = profile({REGISTERS: 128, DYNAMIC: 40960, CARVE_OUT: 167936, ACHIEVED: 24.0})
    finding = only_finding(ask("ncu.occupancy", tie))
    assert "bounded by registers and shared memory" in finding.title
    assert len([step for step in finding.next if "blocks per SM fit" in step]) == 2


def test_warps_that_are_allowed_and_not_there_are_another_fault(ask: Ask) -> None:
    """32 registers: all 64 warps fit, 30 % of them are there. 1 - 30 / 100 = 70 %, as the memory's peak leaves."""
    finding = only_finding(ask("ncu.occupancy", profile({REGISTERS: 32, ACHIEVED: 30.0}, blocks=4096)))
    assert finding.title == "stencil has 19.2 warps on an SM, where 64 fit"
    assert "raising the theoretical occupancy would not help" in finding.claim
    assert "warps end at different times" in finding.claim
    assert finding.recoverable_ns == 700_000


def test_where_the_grid_is_the_reason_that_is_said(ask: Ask) -> None:
    """Room for 108 x 16 blocks."""
    finding = only_finding(ask("ncu.occupancy", profile({REGISTERS: 32, ACHIEVED: 30.0}, blocks=216)))
    assert "the grid has 216 blocks, and the device room for 1,728" in finding.claim


@pytest.mark.parametrize(
    ("why", "report"),
    [
        ("issue slots are filled", profile({BUSY: 0.6})),
        ("memory is at its peak", profile({MEMORY: 85.0})),
        ("an SM pipeline is at its peak", profile({SM: 85.0})),
        ("all blocks are there already", profile(blocks=324)),
        ("most warps fit, and are there", profile({REGISTERS: 36, ACHIEVED: 78.0}, threads=64)),
    ],
)
def test_raising_it_would_not_help_where(why: str, report: NcuReport, ask: Ask) -> None:
    (answer,) = ask("ncu.occupancy", report)
    assert isinstance(answer, Clear), why


def test_registers_that_were_not_captured_are_named(ask: Ask) -> None:
    (answer,) = ask("ncu.occupancy", without(REGISTERS))
    assert isinstance(answer, CannotTell)
    assert answer.because == "launch__registers_per_thread was not collected (ncu --section LaunchStats)"


def test_issue_slots_are_asked_for_only_where_warps_are_missing(ask: Ask) -> None:
    (answer,) = ask("ncu.occupancy", without(BUSY))
    assert isinstance(answer, CannotTell)
    assert answer.because == "smsp__issue_active.avg.per_cycle_active was not collected (ncu --section SchedulerStats)"
    (launch,) = profile({REGISTERS: 32, ACHIEVED: 95.0}).launches
    full = NcuReport([replace(launch, metrics={k: v for k, v in launch.metrics.items() if k != BUSY})])
    (answer,) = ask("ncu.occupancy", full)
    assert isinstance(answer, Clear)


def test_where_it_is_not_known_how_many_clusters_fit_it_cannot_tell(ask: Ask) -> None:
    clusters = {f"launch__cluster_dim_{axis}": n for axis, n in (("x", 2), ("y", 1), ("z", 1))}
    (answer,) = ask("ncu.occupancy", profile(clusters))
    assert isinstance(answer, CannotTell)
    assert "launch__cluster_max_active" in answer.because
    finding = only_finding(ask("ncu.occupancy", profile({**clusters, "launch__cluster_max_active": 100})))
    assert figures(finding)["Clusters that the device holds at a time"] == 100


def test_of_an_unknown_device_nothing_is_said(ask: Ask) -> None:
    (answer,) = ask("ncu.occupancy", replace(profile(), device="NVIDIA X", attributes={}))
    assert isinstance(answer, CannotTell)
    assert "compute capability" in answer.because
