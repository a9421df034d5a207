"""Exercise 5: a profile of a few kernels of which one loses time inside. The profiles are synthetic, and say so."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from diag.learn.lesson import Figure, Incident, Lab
from diag.learn.ncu_profile import SyntheticLaunch, Value, ncu_report

SECTORS, IDEAL_SECTORS = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
WAVEFRONTS, IDEAL_WAVEFRONTS = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
L1_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}.sum"
LOCAL = "smsp__sass_inst_executed_op_local_{}.sum"
FP64 = "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active"
SLOWDOWN = "device__attribute_single_to_double_precision_perf_ratio"
DURATION = "gpu__time_duration.sum"

COUNTED = 1_000_000
"""Sectors or wavefronts of a kernel."""

LOST = (0.45, 0.8)
"""Part of its time that the sick kernel loses, at least and at most."""


@dataclass(frozen=True)
class ProfileFault:
    rule: str
    metrics: Callable[[float], Mapping[str, Value]]
    """Of a kernel that loses this part of its time to the fault; 0: of a healthy one."""


def strided(part: float) -> Mapping[str, Value]:
    return {SECTORS: COUNTED, IDEAL_SECTORS: round(COUNTED * (1 - part))}


def conflicts(part: float) -> Mapping[str, Value]:
    return {WAVEFRONTS: COUNTED, IDEAL_WAVEFRONTS: round(COUNTED * (1 - part))}


def spills(part: float) -> Mapping[str, Value]:
    """Each local access of a warp takes 4 sectors."""
    local = round(part * COUNTED) // 8 * 8
    return {
        LOCAL.format("ld"): local // 8,
        LOCAL.format("st"): local // 8,
        L1_SECTORS.format("local", "ld"): local // 2,
        L1_SECTORS.format("local", "st"): local // 2,
        L1_SECTORS.format("global", "ld"): COUNTED - local,
        L1_SECTORS.format("global", "st"): 0,
    }


def fp64(part: float) -> Mapping[str, Value]:
    """FP64 at a 64th of the rate of FP32: all but a 64th of the pipe's time is lost."""
    return {FP64: 100 * part / (1 - 1 / 64), SLOWDOWN: 64}


FAULTS: Mapping[str, ProfileFault] = {
    "strided": ProfileFault("ncu.coalescing", strided),
    "conflicts": ProfileFault("ncu.bank_conflicts", conflicts),
    "spills": ProfileFault("ncu.spills", spills),
    "fp64": ProfileFault("ncu.fp64", fp64),
}


def exercise(lab: Lab, draw: random.Random) -> Incident:
    name = draw.choice(sorted(FAULTS))
    part = draw.uniform(*LOST)
    file = lab.folder / "profile.ncu-rep"
    file.write_bytes(profile(FAULTS[name], part, draw))
    lost = Figure("lost", part, "share", "of the time of the one sick kernel, as the profile was made")
    return Incident(name, [("report", str(file))], FAULTS[name].rule, (lost,))


def profile(fault: ProfileFault, part: float, draw: random.Random) -> bytes:
    """Four kernels, of which one, drawn, loses this part of its time."""
    sick = draw.randrange(4)
    launches = [
        SyntheticLaunch(
            f"layer{number}(float const*, float*)",
            {DURATION: draw.randrange(800_000, 1_600_000), **fault.metrics(part if number == sick else 0.0)},
            blocks=1024,
            threads=256,
        )
        for number in range(4)
    ]
    return ncu_report(launches, made_by="diag learn --exercise 5")
