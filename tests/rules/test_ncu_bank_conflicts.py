"""How often the lanes of a warp want different words of one bank of shared memory."""

from __future__ import annotations

import pytest

from diag.rules.finding import Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

WAVEFRONTS, IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
STAGE = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"

CASES = {
    "ncu.bank_conflicts": ThreeCases(
        fires=lambda: NcuReport.of({WAVEFRONTS: 32_000, IDEAL: 1_000}),
        clear=lambda: NcuReport.of({WAVEFRONTS: 1_050, IDEAL: 1_000}),
        untold=lambda: NcuReport.of({STAGE: 50.0}),
    ),
}


def waiting(short_scoreboard: float, throttle: float) -> dict[str, Value]:
    """Of ten cycles of a warp between two instructions that it issues."""
    return {
        "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio": short_scoreboard,
        "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio": throttle,
        "smsp__average_warp_latency_per_inst_issued.ratio": 10.0,
    }


def test_without_shared_memory_there_is_no_conflict(ask: Ask) -> None:
    assert isinstance(ask("ncu.bank_conflicts", NcuReport.of({WAVEFRONTS: 0, IDEAL: 0}))[0], Clear)


def test_vector_accesses_need_several_wavefronts(ask: Ask) -> None:
    """LDS.128 of 32 lanes are 512 bytes, 4 wavefronts of 128: 8,844,480 of them had 32 each, 8 for one."""
    hardware: dict[str, Value] = {
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 283_023_360,
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 247_645_440,
    }
    finding = only_finding(ask("ncu.bank_conflicts", NcuReport.of(hardware)))
    assert figures(finding)["wavefronts for one"] == pytest.approx(8.0)
    assert finding.confidence == "medium"
    assert finding.recoverable_ns == 875_000


def test_what_can_be_won_is_the_excess_of_what_shared_memory_takes_of_the_stage(ask: Ask) -> None:
    report = NcuReport.of({WAVEFRONTS: 4_000, IDEAL: 1_000, STAGE: 90.0, SHARED: 60.0, **waiting(1.0, 1.0)})
    assert only_finding(ask("ncu.bank_conflicts", report)).recoverable_ns == 500_000  # 3/4 * 60/90 of 1 ms


def test_below_the_limit_waiting_caps_it(ask: Ask) -> None:
    report = NcuReport.of({WAVEFRONTS: 4_000, IDEAL: 1_000, STAGE: 30.0, SHARED: 30.0, **waiting(3.0, 1.0)})
    assert only_finding(ask("ncu.bank_conflicts", report)).recoverable_ns == 300_000  # 3/4 * (3 + 1) / 10


def test_the_worst_instruction_is_named(ask: Ask) -> None:
    """Of 3,100 wavefronts in excess, 3,000 come from a load that takes 16 turns for one."""
    report = NcuReport.of(
        {WAVEFRONTS: 3_700, IDEAL: 600},
        instances={WAVEFRONTS: {0x10: 3_200, 0x20: 500}, IDEAL: {0x10: 200, 0x20: 400}},
    )
    finding = only_finding(ask("ncu.bank_conflicts", report))
    assert "96.8 % of the excess comes from the instruction at 0x10, 16.0 for one" in finding.claim
    assert figures(finding)["excess of the instruction at 0x10"] == 3_000
