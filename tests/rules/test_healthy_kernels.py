"""Kernels as they are found in good programs: rules that see one of their metrics only must not call them faulty.

Figures are round, of the size that Nsight Compute reports for such kernels on an A100 or H100.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from diag.launches.kernel import profiled_kernels
from diag.rules import engine, running, thresholds
from diag.rules.finding import Answer, CannotTell, Finding
from diag.store.case import Case
from tests.builders.imported import imported
from tests.builders.ncu_report import KernelLaunch, NcuReport, Value
from tests.rules.asking import Analyse, Ask

OF_PEAK = ".avg.pct_of_peak_sustained_elapsed"
OF_ACTIVE = ".avg.pct_of_peak_sustained_active"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
L2 = "lts__t_sectors_srcunit_tex_op_{}.sum"
LOCAL = "smsp__sass_inst_executed_op_local_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}.sum"
OPERATIONS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
READ, WRITTEN, FILLED = "dram__bytes_read.sum", "dram__bytes_write.sum", "l1tex__m_xbar2l1tex_read_bytes.sum"
BUSY, LATENCY = "smsp__issue_active.avg.per_cycle_active", "smsp__average_warp_latency_per_inst_issued.ratio"
MB = 1_000_000

H100: Mapping[str, Value] = {
    "compute_capability_major": 9,
    "compute_capability_minor": 0,
    "multiprocessor_count": 132,
}

REASONS = [
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "misc",
    "mio_throttle",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
]

QUIET: Mapping[str, Value] = {
    "gpu__time_duration.sum": 1_000_000,
    "smsp__cycles_elapsed.avg.per_second": 1.4e9,
    "dram__cycles_elapsed.avg.per_second": 1.2e9,
    "dram__bytes.sum.peak_sustained": 1280.0,
    "sm__cycles_active.avg": 1.36e6,
    "sm__cycles_active.max": 1.38e6,
    "sm__cycles_elapsed.max": 1.4e6,
    BUSY: 0.2,
    "smsp__warps_eligible.avg.per_cycle_active": 0.4,
    "smsp__warps_active.avg.per_cycle_active": 12.0,
    "smsp__maximum_warps_avg_per_active_cycle": 16,
    "smsp__warps_active.avg.peak_sustained": 16,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 95.0,
    "smsp__thread_inst_executed_per_inst_executed.ratio": 32.0,
    "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": 31.0,
    "smsp__inst_executed.sum": 1e8,
    "launch__registers_per_thread": 32,
    "launch__shared_mem_per_block_static": 0,
    "launch__shared_mem_per_block_dynamic": 0,
    "launch__shared_mem_config_size": 32_768,
    "lts__throughput" + OF_PEAK: 40.0,
    "l1tex__throughput" + OF_ACTIVE: 40.0,
    "l1tex__t_sector_hit_rate.pct": 0.0,
    "sm__mio_inst_issued" + OF_PEAK: 10.0,
    "profiler__replayer_bytes_mem_accessible.avg": 40_000 * MB,
    LATENCY: 30.0,
    "memory_l1_wavefronts_shared": 0,
    "memory_l1_wavefronts_shared_ideal": 0,
    "memory_l2_theoretical_sectors_global": 0,
    "memory_l2_theoretical_sectors_global_ideal": 0,
    **{f"sm__pipe_{pipe}_cycles_active{OF_ACTIVE}": 5.0 for pipe in ("alu", "fma")},
    **{f"sm__pipe_{pipe}_cycles_active{OF_ACTIVE}": 0.0 for pipe in ("fp64", "tensor")},
    **{OPERATIONS.format(f"{of}{kind}"): 0.0 for of in "fdh" for kind in ("add", "mul", "fma")},
    **{LOCAL.format(kind): 0 for kind in ("ld", "st")},
    **{SECTORS.format(memory, kind): 0 for memory in ("local", "global") for kind in ("ld", "st")},
    **{L2.format(f"{kind}{hit}"): 0 for kind in ("red", "atom_dot_alu", "atom_dot_cas") for hit in ("", "_lookup_hit")},
    **{f"lts__t_sectors_srcunit_tex_aperture_{memory}_lookup_miss.sum": 0 for memory in ("sysmem", "peer")},
    **{STALL.format(reason): 1.0 for reason in REASONS},
}
"""A kernel of 1 ms that does nothing much, with all that the rules ask for."""


def reaching(sm: float, memory: float, dram: float, *, read: int, written: int = 0) -> dict[str, Value]:
    """Speeds of light, and MB of device memory; all that is read was asked for, and came through L1."""
    return {
        "sm__throughput" + OF_PEAK: sm,
        "gpu__compute_memory_throughput" + OF_PEAK: memory,
        "gpu__dram_throughput" + OF_PEAK: dram,
        "dram__bytes.sum.per_second": (read + written) * MB * 1e3,
        READ: read * MB,
        WRITTEN: written * MB,
        FILLED: read * MB,
        L2.format("read"): read * MB // 32,
        L2.format("read_lookup_hit"): 0,
        L2.format("write"): written * MB // 32,
    }


def kernel(metrics: Mapping[str, Value], blocks: int = 864, *, on: str = "A100") -> NcuReport:
    launch = KernelLaunch({**QUIET, **metrics}, grid=(blocks, 1, 1))
    if on == "A100":
        return NcuReport([launch])
    return NcuReport([launch], device="NVIDIA H100 80GB HBM3", attributes=H100)


SPILLS: Mapping[str, Value] = {LOCAL.format("ld"): 2_000, SECTORS.format("local", "ld"): 16_000}

HEALTHY = {
    "a product at 90 % of the tensor pipe": kernel(
        {
            **reaching(90.0, 45.0, 20.0, read=300),
            f"sm__pipe_tensor_cycles_active{OF_ACTIVE}": 92.0,
            STALL.format("math_pipe_throttle"): 14.0,
            "memory_l1_wavefronts_shared": 1e8,
            "memory_l1_wavefronts_shared_ideal": 9.9e7,
        }
    ),
    "a copy at 92 % of device memory": kernel(
        {
            **reaching(12.0, 92.0, 92.0, read=715, written=715),
            STALL.format("long_scoreboard"): 13.0,
            "memory_l2_theoretical_sectors_global": 4.47e7,
            "memory_l2_theoretical_sectors_global_ideal": 4.47e7,
        },
        blocks=65_536,
    ),
    "memory that is filled": kernel(
        {
            **reaching(8.0, 88.0, 88.0, read=0, written=1_370),
            READ: 2 * MB,  # of other clients
            STALL.format("lg_throttle"): 10.0,
            STALL.format("drain"): 4.0,
            BUSY: 0.04,
        },
        blocks=65_536,
    ),
    "FP64 on a device made for it": kernel(
        {
            **reaching(92.0, 20.0, 15.0, read=230),
            f"sm__pipe_fp64_cycles_active{OF_ACTIVE}": 95.0,
            OPERATIONS.format("dfma"): 0.9 * 32 * 108,
            "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained": 32 * 108.0,
            "device__attribute_single_to_double_precision_perf_ratio": 2,
            STALL.format("math_pipe_throttle"): 14.0,
        }
    ),
    "integers only": kernel(
        {**reaching(94.0, 3.0, 1.0, read=15), f"sm__pipe_alu_cycles_active{OF_ACTIVE}": 96.0, BUSY: 0.9}
    ),
    "a persistent product that copies with the tensor memory accelerator": kernel(
        {
            **reaching(88.0, 55.0, 30.0, read=1_000),
            **SPILLS,
            FILLED: 4_000 * MB,
            f"sm__pipe_tensor_cycles_active{OF_ACTIVE}": 90.0,
            STALL.format("long_scoreboard"): 13.0,
            BUSY: 0.1,
        },
        blocks=132,
        on="H100",
    ),
    "the tensor memory accelerator at the limit of device memory": kernel(
        {
            **reaching(30.0, 90.0, 90.0, read=3_000),
            **SPILLS,
            "memory_l2_theoretical_sectors_global": 40_000,
            "memory_l2_theoretical_sectors_global_ideal": 10_000,
            STALL.format("long_scoreboard"): 13.0,
            BUSY: 0.1,
        },
        blocks=132,
        on="H100",
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_wrong_with(name: str, report_on: Analyse) -> None:
    report = report_on(HEALTHY[name])
    assert [finding.title for finding in report.findings if finding.severity != "info"] == []
    assert report.verdict.title == "No fault found in what was captured"


def test_a_metric_that_is_missing_makes_no_fault(tmp_path: Path) -> None:
    """What was collected of the product must be enough for a fault, or the answer is that it cannot be told."""
    with imported(HEALTHY["a product at 90 % of the tensor pipe"], tmp_path) as case:
        before = answers(case)
        for metric in QUIET.keys() - {"gpu__time_duration.sum"}:
            case.db.execute("SAVEPOINT whole")
            case.db.execute(_FORGET, (metric,))
            for rule_id, answer in answers(case).items():
                assert type(answer) in (type(before[rule_id]), CannotTell), f"{rule_id} without {metric}"
            case.db.execute("ROLLBACK TO whole")


_FORGET = "DELETE FROM launch_metric WHERE metric_id IN (SELECT id FROM metric WHERE name = ?)"


def answers(case: Case) -> dict[str, Answer]:
    """Of each rule about the only kernel of a case."""
    (kernel,), limits = profiled_kernels(case, case.sources[0].id), thresholds.load()
    rules = [rule for rule in engine.rules().values() if isinstance(rule, engine.KernelRule)]
    return {rule.id: next(running.run_on_kernel(rule, kernel, limits.get(rule.id, {}))) for rule in rules}


def test_a_reduction_waits_at_its_barriers(report_on: Analyse) -> None:
    """Far from every limit; the symptoms that weigh more give way to what warps wait for."""
    waits = {STALL.format("barrier"): 20.0, "smsp__warps_active.avg.per_cycle_active": 15.0}
    report = report_on(kernel({**reaching(14.0, 22.0, 18.0, read=280), **waits, LATENCY: 38.0, BUSY: 0.14}))
    assert report.verdict.title.startswith("Warps of stencil wait for 57.9 % of their time: synchronisation")


def test_no_rule_promises_more_than_the_busier_side_leaves(ask: Ask) -> None:
    """A histogram at 75 % of device memory: a quarter of its millisecond is what the same work can win."""
    waits = {STALL.format("lg_throttle"): 25.0, LATENCY: 42.0, BUSY: 0.2}
    report = kernel({**reaching(15.0, 75.0, 75.0, read=100, written=1_000), **waits})
    for rule_id in ("ncu.speed_of_light", "ncu.roofline", "ncu.issue_slots", "ncu.stalls", "ncu.occupancy"):
        for answer in ask(rule_id, report):
            assert not isinstance(answer, Finding) or (answer.recoverable_ns or 0) <= 250_000, rule_id
