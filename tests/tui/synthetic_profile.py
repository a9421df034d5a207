"""A synthetic report of Nsight Compute that fills every section of the Launch screen: nothing in it was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.builders.cubin import cubin
from tests.builders.ncu_report import KernelLaunch, NcuReport, Said, Value
from tests.launches import profiles

START = 0x7F00_0000_1000
"""Address of the first instruction."""
LINES = ((0, 10), (16, 11), (48, 12))
"""Source line by offset; the last instruction is at 64."""

SPEED: Mapping[str, Value] = {
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": 35.0,
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 62.5,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 62.5,
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed": 35.0,
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 25.0,
    "l1tex__throughput.avg.pct_of_peak_sustained_active": 25.0,
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": 40.0,
}
MEMORY: Mapping[str, Value] = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 40_000_000,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 10_000_000,
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 0,
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": 0,
    "l1tex__t_sector_hit_rate.pct": 25.0,
    "lts__t_sector_hit_rate.pct": 50.0,
    "l1tex__m_xbar2l1tex_read_bytes.sum": 960_000_000,
    "lts__t_sectors_srcunit_tex_op_write.sum": 10_000_000,
    "dram__bytes_read.sum": 480_000_000,
    "dram__bytes_write.sum": 145_000_000,
    "lts__t_sectors_srcunit_tex_aperture_sysmem_lookup_miss.sum": 1000,
    "memory_l1_wavefronts_shared": 5_000_000,
    "memory_l1_wavefronts_shared_ideal": 4_000_000,
}
"""What went to other GPUs was not collected."""
OCCUPANCY: Mapping[str, Value] = {
    "sm__warps_active.avg.pct_of_peak_sustained_active": 40.0,
    "smsp__issue_active.avg.per_cycle_active": 0.3,
    "launch__registers_per_thread": 64,
    "launch__shared_mem_per_block_static": 8192,
    "launch__shared_mem_per_block_dynamic": 0,
    "launch__shared_mem_per_block_driver": 1024,
    "launch__shared_mem_config_size": 102400,
}
LATENCY: Mapping[str, Value] = {
    "smsp__average_warp_latency_per_inst_issued.ratio": 20.0,
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": 10.0,
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": 3.0,
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": 2.0,
}
SAMPLED: Mapping[str, Mapping[int, int]] = {
    "long_scoreboard": {START + 16: 60, START + 48: 20},
    "long_scoreboard_not_issued": {START + 16: 50, START + 48: 15},
    "barrier": {START + 48: 15},
    "selected": {START: 3, START + 64: 2},
}
SAMPLE = "smsp__pcsamp_warps_issue_stalled_{}"
RULES = (
    Said(
        "Warps wait for @section:WarpStateStats:memory@.", "CPIStall", "WarpStateStats", 4, "Long Scoreboard", (2, 12.5)
    ),
    Said("The memory system is busy.", "SOLBottleneck", "SpeedOfLight", 2),
)


def launch(name: str = "stencil(float *, int)", *, milliseconds: float = 1.0, per_cycle: float = 500.0) -> KernelLaunch:
    """Of FP32 work over 625 bytes per cycle of DRAM: `per_cycle` fused multiply-adds of threads."""
    counted = {
        **profiles.TIME,
        **profiles.dram(625.0),
        **profiles.l2(1600.0),
        **profiles.l1(2500.0),
        **profiles.vector("f", fma=per_cycle),
        **profiles.instructions(100.0),
    }
    samples: dict[str, Value] = {SAMPLE.format(state): sum(at.values()) for state, at in SAMPLED.items()}
    executed = {START + offset: 1000 for offset in range(0, 80, 16)}
    return KernelLaunch(
        {
            **counted, **SPEED, **MEMORY, **OCCUPANCY, **LATENCY, **samples,
            "gpu__time_duration.sum": round(milliseconds * 1e6),
            "smsp__pcsamp_sample_count": 100,
            "inst_executed": 5000,
            "launch__function_pcs": float(START),
        },
        name,
        instances={**{SAMPLE.format(state): at for state, at in SAMPLED.items()}, "inst_executed": executed},
        rules=RULES,
        cubin=5,
    )  # fmt: skip


PROFILE = NcuReport(
    [
        launch(milliseconds=2.0),
        launch(milliseconds=1.0),
        launch(milliseconds=3.0),
        launch("reduce(float *)", milliseconds=0.5, per_cycle=100.0),
    ],
    cubins={5: cubin({"stencil": (5, LINES), "reduce": (5, LINES)})},
)
"""Two kernels, of which the launch of 2 ms speaks for the first one."""

IMPOSSIBLE = replace(PROFILE, launches=[launch(per_cycle=6000.0)])
"""Twice the arithmetic that its bytes allow: a point above its roof."""
