"""How well the lanes of a warp share the sectors of global memory that they touch."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding

SECTORS, IDEAL = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
L1, MEMORY = (
    "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
)
LOADS, STORES = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_{}_pipe_lsu_mem_global_op_st.sum"


def waiting(long_scoreboard: float, throttle: float = 0.0, latency: float = 10.0) -> dict[str, Value]:
    """Cycles of a warp between two instructions that it issues, and those of them that wait for memory."""
    return {
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": long_scoreboard,
        "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio": throttle,
        "smsp__average_warp_latency_per_inst_issued.ratio": latency,
    }


def touching(sectors: int, ideal: int, **more: Value) -> NcuReport:
    return NcuReport.of({SECTORS: sectors, IDEAL: ideal, **more})


CASES = {
    "ncu.coalescing": ThreeCases(
        fires=lambda: touching(32_000, 4_000),
        clear=lambda: touching(4_100, 4_000),
        untold=lambda: NcuReport.of({L1: 50.0}),
    ),
}

# ---- what the excess can cost --------------------------------------------------------------------------------------

# 32 lanes of 4 bytes, 128 bytes apart: 32 sectors per request instead of 4, 7/8 of them excess.
STRIDED: Mapping[str, Value] = {SECTORS: 32_000, IDEAL: 4_000}


def test_a_unit_at_its_limit_sets_the_pace(ask: Ask) -> None:
    finding = only_finding(ask("ncu.coalescing", NcuReport.of({**STRIDED, L1: 92.0, MEMORY: 70.0, **waiting(2.0)})))
    assert finding.recoverable_ns == 875_000  # 7/8 of 1 ms


def test_below_it_the_excess_costs_its_part_of_what_warps_wait(ask: Ask) -> None:
    report = NcuReport.of({**STRIDED, L1: 40.0, MEMORY: 30.0, **waiting(5.5, throttle=0.5)})
    assert only_finding(ask("ncu.coalescing", report)).recoverable_ns == 525_000  # 7/8 * (5.5 + 0.5) / 10


def test_or_of_how_busy_the_unit_is_if_that_is_more(ask: Ask) -> None:
    report = NcuReport.of({**STRIDED, L1: 40.0, MEMORY: 72.0, **waiting(1.0)})
    assert only_finding(ask("ncu.coalescing", report)).recoverable_ns == 630_000  # 7/8 * 0.72


def test_of_other_traffic_the_excess_is_a_small_part(ask: Ask) -> None:
    """28,000 sectors in excess, beside 10 million that the tensor memory accelerator copies: 0.28 % of all."""

    def copying(sectors: int) -> NcuReport:
        copied = {"l1tex__m_xbar2l1tex_read_bytes.sum": 32 * sectors}
        return NcuReport.of({**STRIDED, L1: 92.0, MEMORY: 90.0, **waiting(5.0), **copied})

    assert isinstance(ask("ncu.coalescing", copying(10_000_000))[0], Clear)
    assert only_finding(ask("ncu.coalescing", copying(56_000))).recoverable_ns == 500_000


def test_nothing_caps_it_where_waiting_was_not_collected(ask: Ask) -> None:
    finding = only_finding(ask("ncu.coalescing", NcuReport.of({**STRIDED, L1: 40.0})))
    assert finding.recoverable_ns == 875_000
    assert "nothing caps it" in finding.counterfactual


# ---- instructions --------------------------------------------------------------------------------------------------

# At 0x100 a load of 8 bytes a lane: 500 requests of 28 lanes, 12 sectors each where 7 would do. At 0x200 a perfect
# store: 1,000 requests of 4. At 0x300 an atomic, of which no kind is told.
PER_INSTRUCTION = NcuReport.of(
    {
        SECTORS: 10_100,
        IDEAL: 7_600,
        "inst_executed": 11_599,
        "thread_inst_executed_true": 46_100,
        "memory_access_size_type": 0,
        "memory_access_type": 0,
    },
    instances={
        SECTORS: {0x100: 6_000, 0x200: 4_000, 0x300: 100},
        IDEAL: {0x100: 3_500, 0x200: 4_000, 0x300: 100},
        "inst_executed": {0x100: 500, 0x200: 1_000, 0x300: 100, 0x400: 9_999},
        "thread_inst_executed_true": {0x100: 14_000, 0x200: 32_000, 0x300: 100},
        "memory_access_size_type": {0x100: 64, 0x200: 32, 0x300: 32},
        "memory_access_type": {0x100: 2, 0x200: 4},
    },
)


def test_loads_and_stores_are_told_apart_and_the_worst_instruction_is_named(ask: Ask) -> None:
    finding = only_finding(ask("ncu.coalescing", PER_INSTRUCTION))
    found = figures(finding)
    assert found["excess"] == pytest.approx(2_500 / 10_100)
    assert found["excess of loads"] == pytest.approx(2_500 / 6_000)
    assert found["excess of stores"] == 0
    assert found["excess of the instruction at 0x100"] == 2_500
    assert found["bytes per sector that lanes of the instruction at 0x100 ask for"] == pytest.approx(14_000 * 8 / 6_000)
    assert "100.0 % of the excess comes from the instruction at 0x100: 12.00 sectors per request" in finding.claim
    assert "fill 7.00" in finding.claim


def test_its_rows_are_those_of_the_instructions(ask: Ask, query: Query) -> None:
    evidence = {e.label: e for e in only_finding(ask("ncu.coalescing", PER_INSTRUCTION)).evidence}
    rows = query(PER_INSTRUCTION, evidence["excess of loads"])
    assert ("0x100", SECTORS, 6_000) in rows
    assert len(rows) == 3 + 3 + 4 + 3 + 3 + 2


# ---- without counts per instruction --------------------------------------------------------------------------------


def per_request(loads: float, stores: float, *, width_bits: int = 32, lanes: float | None = 32.0) -> NcuReport:
    """1,000 requests each way, all accesses this wide; `lanes` is the mean number that takes part."""
    metrics: dict[str, Value] = {
        LOADS.format("requests"): 1_000,
        LOADS.format("sectors"): int(1_000 * loads),
        STORES.format("requests"): 1_000 if stores else 0,
        STORES.format("sectors"): int(1_000 * stores),
        **{f"smsp__sass_inst_executed_op_memory_{bits}b.sum": 0 for bits in (8, 16, 32, 64, 128)},
        f"smsp__sass_inst_executed_op_memory_{width_bits}b.sum": 2_000,
    }
    if lanes is not None:
        metrics["smsp__thread_inst_executed_per_inst_executed.ratio"] = lanes
    return NcuReport.of(metrics)


def test_four_sectors_per_request_are_ideal_for_four_bytes_a_lane_only(ask: Ask) -> None:
    assert isinstance(ask("ncu.coalescing", per_request(4.0, 4.0))[0], Clear)
    assert isinstance(ask("ncu.coalescing", per_request(8.0, 8.0, width_bits=64))[0], Clear)
    finding = only_finding(ask("ncu.coalescing", per_request(8.0, 4.0)))
    assert finding.recoverable_ns == 500_000  # 4 of 8 sectors are excess
    assert "at least 50.0 %" in finding.title
    assert "loads" in finding.claim
    assert finding.confidence == "medium"


def test_few_sectors_may_be_too_many_for_few_lanes(ask: Ask) -> None:
    """Four sectors would do for 32 lanes; of the 8 that took part each may have had its own."""
    for report in (per_request(4.0, 4.0, lanes=8.0), per_request(4.0, 4.0, lanes=None)):
        (answer,) = ask("ncu.coalescing", report)
        assert isinstance(answer, CannotTell)
        assert answer.because == f"{SECTORS}, {IDEAL} were not collected (ncu --section SourceCounters)"


def test_tables_tell_of_loads_and_stores_only(ask: Ask) -> None:
    """32 sectors per request of 4 bytes a lane, but a hundred times as much comes by as copies."""
    report = per_request(32.0, 4.0)
    local = {f"l1tex__t_sectors_pipe_lsu_mem_local_op_{kind}.sum": 0 for kind in ("ld", "st")}
    sectors = sum(float(report.launches[0].metrics[each.format("sectors")]) for each in (LOADS, STORES))
    copied = {"l1tex__m_xbar2l1tex_read_bytes.sum": 3_200 * sectors}
    (answer,) = ask("ncu.coalescing", NcuReport.of({**report.launches[0].metrics, **local, **copied}))
    assert isinstance(answer, CannotTell)


def test_a_direction_without_accesses_is_not_missing(ask: Ask) -> None:
    assert isinstance(ask("ncu.coalescing", per_request(4.0, 0.0))[0], Clear)


def test_newer_versions_count_the_bytes_used(ask: Ask) -> None:
    """A quarter of each sector that is stored, as in a transpose that writes columns of doubles."""
    counted: dict[str, Value] = {
        f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{kind}.pct": used
        for kind, used in (("ld", 100.0), ("st", 25.0))
    }
    finding = only_finding(ask("ncu.coalescing", NcuReport.of(counted)))
    assert finding.recoverable_ns == 750_000
    assert "stores" in finding.claim
