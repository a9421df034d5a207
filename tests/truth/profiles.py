"""Synthetic reports of Nsight Compute: one kernel with a fault among healthy ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from tests.builders.ncu_report import KernelLaunch, NcuReport, Value

SECTORS, IDEAL_SECTORS = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
WAVEFRONTS, IDEAL_WAVEFRONTS = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
L1_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}.sum"
LOCAL = "smsp__sass_inst_executed_op_local_{}.sum"
FP64 = "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active"
SLOWDOWN = "device__attribute_single_to_double_precision_perf_ratio"


@dataclass(frozen=True)
class ProfileFault:
    rule: str
    metrics: Callable[[float], Mapping[str, Value]]
    """Of a kernel that loses this part of its time to the fault; 0: of a healthy one."""


@dataclass(frozen=True)
class Made:
    report: NcuReport
    name: str
    injected: float
    """Share of all profiled kernel time."""


def make(fault: ProfileFault, dose: float, seed: int, *, is_sick: bool) -> Made:
    """The sick kernel loses a drawn part of its time, and takes as much of the whole as makes the dose."""
    draw = Random(seed)
    part = draw.uniform(max(dose, 0.2), 0.85)
    name = f"{draw.choice(('gather', 'pack', 'blur', 'solve'))}_{seed % 997}"
    whole_ns = draw.randrange(2_000_000, 9_000_000)
    sick_ns = round(whole_ns * dose / part)
    healthy = [_launch(f"layer{n}", (whole_ns - sick_ns) // 3, fault.metrics(0)) for n in range(3)]
    launch = _launch(name, sick_ns, fault.metrics(part if is_sick else 0))
    at = draw.randrange(4)
    launches = [*healthy[:at], launch, *healthy[at:]]
    total_ns = sum(int(each.metrics["gpu__time_duration.sum"]) for each in launches)
    return Made(NcuReport(launches), name, part * sick_ns / total_ns if is_sick else 0.0)


def _launch(name: str, took_ns: int, metrics: Mapping[str, Value]) -> KernelLaunch:
    return KernelLaunch({"gpu__time_duration.sum": took_ns, **metrics}, name=name)


def _strided(part: float) -> Mapping[str, Value]:
    return {SECTORS: 1_000_000, IDEAL_SECTORS: round(1_000_000 * (1 - part))}


def _conflicts(part: float) -> Mapping[str, Value]:
    return {WAVEFRONTS: 1_000_000, IDEAL_WAVEFRONTS: round(1_000_000 * (1 - part))}


def _spills(part: float) -> Mapping[str, Value]:
    """Each local access of a warp takes 4 sectors."""
    local, total = round(part * 1_000_000) // 8 * 8, 1_000_000
    return {
        LOCAL.format("ld"): local // 8,
        LOCAL.format("st"): local // 8,
        L1_SECTORS.format("local", "ld"): local // 2,
        L1_SECTORS.format("local", "st"): local // 2,
        L1_SECTORS.format("global", "ld"): total - local,
        L1_SECTORS.format("global", "st"): 0,
    }


def _fp64(part: float) -> Mapping[str, Value]:
    """FP64 at a 64th of the rate of FP32: all but a 64th of the pipe's time is lost."""
    return {FP64: 100 * part / (1 - 1 / 64), SLOWDOWN: 64}


FAULTS: Mapping[str, ProfileFault] = {
    "strided access": ProfileFault("ncu.coalescing", _strided),
    "bank conflicts": ProfileFault("ncu.bank_conflicts", _conflicts),
    "spills": ProfileFault("ncu.spills", _spills),
    "FP64 by accident": ProfileFault("ncu.fp64", _fp64),
}
