"""Data that moves through the memory system more often than it must."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from diag.launches.kernel import profiled_kernels
from diag.rules import engine, running, thresholds
from diag.rules.finding import Answer, CannotTell, Clear, Finding
from tests.builders.imported import imported
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

GB = 1_000_000_000
REACH = "profiler__replayer_bytes_mem_accessible.avg"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
READ = "dram__bytes_read.sum"
ASKED, HELD = "lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"

WRITTEN, STORED = "dram__bytes_write.sum", "lts__t_sectors_srcunit_tex_op_write.sum"
RED = "lts__t_sectors_srcunit_tex_op_red{}.sum"
ATOMICS = ("red", "atom_dot_alu", "atom_dot_cas")
NO_ATOMICS: Mapping[str, Value] = {
    f"lts__t_sectors_srcunit_tex_op_{atomic}{hit}.sum": 0 for atomic in ATOMICS for hit in ("", "_lookup_hit")
}

# An A100 has 108 SMs: all of 1 GB for each of them is 108 GB.


def filling(gigabytes: int, more: Mapping[str, Value], *, l2: float = 20.0, wait: float = 5.0) -> NcuReport:
    """A kernel whose L1 caches fetch so much; warps wait for memory during `wait` of ten cycles."""
    return NcuReport.of(
        {
            "l1tex__m_xbar2l1tex_read_bytes.sum": gigabytes * GB,
            "l1tex__t_sector_hit_rate.pct": 0.0,
            "lts__throughput.avg.pct_of_peak_sustained_elapsed": l2,
            "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": wait,
            "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio": 0.0,
            "smsp__average_warp_latency_per_inst_issued.ratio": 10.0,
            **more,
        }
    )


def reading(gigabytes: int, more: Mapping[str, Value], *, dram: float = 90.0, missed: int | None = None) -> NcuReport:
    """A kernel that reads so much of device memory; `missed` GB of it were asked for and not in L2 (None: all)."""
    sectors = (gigabytes if missed is None else missed) * GB // 32
    asked = {ASKED: sectors + 1_000, HELD: 1_000, **NO_ATOMICS}
    return NcuReport.of({DRAM: dram, READ: gigabytes * GB, WRITTEN: 0, **asked, **more})


CASES = {
    "ncu.l1_hit_rate": ThreeCases(
        fires=lambda: filling(432, {REACH: GB}),
        clear=lambda: filling(432, {REACH: GB}, wait=1.0),
        untold=lambda: filling(432, {}),
    ),
    "ncu.dram_traffic": ThreeCases(
        fires=lambda: reading(4, {REACH: GB}),
        clear=lambda: reading(4, {REACH: GB}, dram=20.0),
        untold=lambda: NcuReport.of({DRAM: 90.0}),
    ),
}

# ---- from L2 into L1 -----------------------------------------------------------------------------------------------


def test_that_all_of_it_came_four_times_is_proven_by_the_allocation(ask: Ask) -> None:
    finding = only_finding(ask("ncu.l1_hit_rate", filling(432, {REACH: GB})))
    assert figures(finding)["fetches per SM"] == 4  # 432 GB / (108 * 1 GB)
    assert finding.recoverable_ns == 375_000  # 3/4 of 1 ms, of which warps wait half
    assert finding.confidence == "high"


def test_an_l2_at_its_limit_sets_the_pace(ask: Ask) -> None:
    assert only_finding(ask("ncu.l1_hit_rate", filling(432, {REACH: GB}, l2=85.0, wait=0.5))).recoverable_ns == 750_000


def test_the_instructions_of_the_sms_stay(ask: Ask) -> None:
    """Of the 375 µs that the bytes could cost, the SMs leave 200."""
    busy = {REACH: GB, "sm__throughput.avg.pct_of_peak_sustained_elapsed": 80.0}
    finding = only_finding(ask("ncu.l1_hit_rate", filling(432, busy)))
    assert finding.recoverable_ns == pytest.approx(200_000, abs=1)
    assert "the SMs are at 80.0 % of their peak" in finding.counterfactual


def test_a_busy_l2_is_enough_where_nobody_waits(ask: Ask) -> None:
    assert only_finding(ask("ncu.l1_hit_rate", filling(432, {REACH: GB}, l2=65.0, wait=0.5))).recoverable_ns == 487_500


def test_a_hit_rate_of_zero_is_no_fault_of_what_streams(ask: Ask) -> None:
    """Each SM reads its part of 1 GB once: 1 GB comes from L2, a hundredth of what would prove anything."""
    assert isinstance(ask("ncu.l1_hit_rate", filling(1, {REACH: GB}, wait=9.0))[0], Clear)


def with_caches(control: str | None, report: NcuReport, folder: Path) -> Answer:
    """The answer where it is known whether caches were flushed before each pass."""
    rule = engine.rules()["ncu.l1_hit_rate"]
    assert isinstance(rule, engine.KernelRule)
    with imported(report, folder) as case:
        case.db.execute("UPDATE launch SET cache_control = ?", (control,))
        (kernel,) = profiled_kernels(case, 1)
        (answer,) = running.run_on_kernel(rule, kernel, thresholds.load()["ncu.l1_hit_rate"])
    return answer


# Of 80 GB within reach the kernel read half a GB of device memory and wrote as much itself.
SMALL_PART = filling(432, {REACH: 80 * GB, READ: GB // 2, "l1tex__m_l1tex2xbar_write_bytes.sum": GB // 2})


@pytest.mark.parametrize(("control", "confidence"), [("all", "high"), (None, "medium")])
def test_what_came_into_empty_caches_bounds_the_footprint(control: str | None, confidence: str, tmp_path: Path) -> None:
    answer = with_caches(control, SMALL_PART, tmp_path)
    assert isinstance(answer, Finding)
    assert figures(answer)["fetches per SM"] == 4
    assert answer.confidence == confidence


def test_what_came_into_warm_caches_does_not(tmp_path: Path) -> None:
    assert isinstance(with_caches("none", SMALL_PART, tmp_path), Clear)  # 432 / (108 * 80) proves nothing


def test_memory_beyond_the_device_has_no_bound(ask: Ask) -> None:
    beyond = {"lts__t_sectors_srcunit_tex_aperture_sysmem_lookup_miss.sum": 5}
    assert isinstance(ask("ncu.l1_hit_rate", filling(432, {REACH: GB, **beyond}))[0], CannotTell)


def test_it_needs_the_number_of_sms(ask: Ask) -> None:
    report = filling(432, {REACH: GB})
    (answer,) = ask("ncu.l1_hit_rate", NcuReport(report.launches, device=None, attributes={}))
    assert isinstance(answer, CannotTell)
    assert answer.because == "the number of SMs of the device is not known"


# ---- from device memory into L2 ------------------------------------------------------------------------------------


def test_what_is_read_beyond_all_that_is_within_reach_was_read_before(ask: Ask) -> None:
    finding = only_finding(ask("ncu.dram_traffic", reading(4, {REACH: GB})))
    assert finding.recoverable_ns == 750_000
    assert "was read before" in finding.title


def test_what_nobody_asked_for_came_along(ask: Ask) -> None:
    """Every second sector is used: L2 fetches 64 bytes where 32 are wanted."""
    finding = only_finding(ask("ncu.dram_traffic", reading(4, {REACH: 40 * GB, STORED: 0}, missed=2)))
    assert finding.recoverable_ns == 500_000
    assert "came along" in finding.title
    assert finding.confidence == "medium"


def test_stores_of_parts_of_sectors_may_be_why_more_is_read(ask: Ask) -> None:
    stored = {REACH: 40 * GB, STORED: 2 * GB // 32}
    assert only_finding(ask("ncu.dram_traffic", reading(4, stored, missed=2))).confidence == "low"


def test_what_reductions_work_on_was_asked_for(ask: Ask) -> None:
    """A histogram in device memory loads next to nothing, and L2 reads all that it adds to."""
    reductions = {REACH: 40 * GB, RED.format(""): 4 * GB // 32, RED.format("_lookup_hit"): 0}
    assert isinstance(ask("ncu.dram_traffic", reading(4, reductions, missed=0))[0], Clear)


def test_without_reductions_counted_nobody_knows_what_was_asked_for(ask: Ask) -> None:
    report = reading(4, {REACH: 40 * GB}, missed=2)
    without = {name: value for name, value in report.launches[0].metrics.items() if "op_red" not in name}
    (answer,) = ask("ncu.dram_traffic", NcuReport.of(without))
    assert isinstance(answer, CannotTell)
    assert "lts__t_sectors_srcunit_tex_op_red.sum" in answer.because


def test_the_reads_of_a_kernel_that_writes_are_a_small_part(ask: Ask) -> None:
    """It fills 4 GB; 40 MB were read beside, a hundredth of all traffic."""
    filled = {WRITTEN: 4 * GB, READ: GB // 25, REACH: 40 * GB}
    assert isinstance(ask("ncu.dram_traffic", reading(0, filled))[0], Clear)


def test_excess_is_a_part_of_all_traffic(ask: Ask) -> None:
    """3 of 4 GB were read before, of 6 GB that moved."""
    assert only_finding(ask("ncu.dram_traffic", reading(4, {REACH: GB, WRITTEN: 2 * GB}))).recoverable_ns == 500_000


def test_below_the_limit_the_excess_costs_its_part_of_the_busy_time(ask: Ask) -> None:
    waits: dict[str, Value] = {
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 1.0,
        "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio": 0.0,
        "smsp__average_warp_latency_per_inst_issued.ratio": 10.0,
    }
    report = reading(4, {REACH: GB, **waits}, dram=60.0)
    assert only_finding(ask("ncu.dram_traffic", report)).recoverable_ns == pytest.approx(450_000, abs=1)  # 3/4 * 0.6


def test_a_kernel_that_streams_is_clear_whatever_its_hit_rate(ask: Ask) -> None:
    report = reading(2, {REACH: 3 * GB, "lts__t_sector_hit_rate.pct": 0.0})
    assert isinstance(ask("ncu.dram_traffic", report)[0], Clear)


def test_without_the_memory_within_reach_nothing_is_clear(ask: Ask) -> None:
    (answer,) = ask("ncu.dram_traffic", reading(2, {}))
    assert isinstance(answer, CannotTell)
    assert "profiler__replayer_bytes_mem_accessible.avg" in answer.because
    assert isinstance(ask("ncu.dram_traffic", reading(2, {}, dram=20.0))[0], Clear)
