"""Exercise 5: a profile of three kernels, of which one loses time inside, and two only look as if they did."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from diag.learn import profiles
from diag.learn.lesson import Figure, Incident, Lab
from diag.learn.profiles import (
    FP64_PIPE,
    FP64_SLOWDOWN,
    L1_SECTORS,
    LOCAL,
    REQUESTS,
    SECTORS,
    WAVEFRONTS,
    Kernel,
    Value,
)

RESIDENT, OVER = 504, 96
"""Blocks that fit on the device at a time, and that are left for the last wave."""
EMPTY = 1 - (RESIDENT + OVER) / (2 * RESIDENT)
"""Share of the places of two waves."""

Sick = Callable[[Kernel, float], Kernel]
"""Of a healthy kernel, one that loses about such a part of its work; 0: as healthy."""


def exercise(lab: Lab, draw: random.Random) -> Incident:
    fault = draw.choice(sorted(FAULTS))
    rule, sick = FAULTS[fault]
    part = EMPTY if sick is tail_wave else draw.uniform(0.4, 0.8)
    file = profiles.write(kernels(sick, part, draw), lab.folder / "three.ncu-rep")
    injected = Figure("injected", part, "share", "synthetic: " + FORMULAS[fault])
    return Incident(fault, [("report", str(file))], rule, (injected,))


def kernels(sick: Sick, part: float, draw: random.Random) -> list[Kernel]:
    """In a drawn order, under names that tell nothing."""
    whole = draw.uniform(0.5e6, 2e6)
    usual = Kernel("", whole, sm=0.45, memory=0.5, busy=0.5, achieved=0.9, waits=0.25)
    found = [sick(usual, part), profiles.product("", whole), profiles.reading("", 1, 1 << 24)]
    draw.shuffle(found)
    return [replace(each, name=name) for each, name in zip(found, ("first", "second", "third"), strict=True)]


def strided(kernel: Kernel, part: float) -> Kernel:
    return _with(kernel, {SECTORS: round(4 * REQUESTS / (1 - part))})


def bank_conflicts(kernel: Kernel, part: float) -> Kernel:
    return _with(kernel, {WAVEFRONTS: round(REQUESTS / (1 - part))})


def spills(kernel: Kernel, part: float) -> Kernel:
    """Of local memory, each access of a warp takes 4 sectors: half of them are loads."""
    accesses = round(part * REQUESTS) // 2
    counted: dict[str, Value] = {L1_SECTORS.format("global", "ld"): 4 * (REQUESTS - 2 * accesses)}
    for kind in ("ld", "st"):
        counted[LOCAL.format(kind)] = accesses
        counted[L1_SECTORS.format("local", kind)] = 4 * accesses
    return _with(kernel, counted)


def fp64(kernel: Kernel, part: float) -> Kernel:
    """All but a 64th of the time of its pipe would not be needed in FP32."""
    return _with(kernel, {FP64_PIPE: 100 * part / (1 - 1 / FP64_SLOWDOWN)})


def tail_wave(kernel: Kernel, part: float) -> Kernel:
    """One full wave, and a second one of a few blocks; healthy, it is a whole number of them."""
    return replace(kernel, blocks=RESIDENT + OVER, achieved=0.6) if part else replace(kernel, blocks=2 * RESIDENT)


def _with(kernel: Kernel, counted: Mapping[str, Value]) -> Kernel:
    return replace(kernel, more=counted)


FAULTS: Mapping[str, tuple[str, Sick]] = {
    "strided": ("ncu.coalescing", strided),
    "bank_conflicts": ("ncu.bank_conflicts", bank_conflicts),
    "spills": ("ncu.spills", spills),
    "fp64": ("ncu.fp64", fp64),
    "tail_wave": ("ncu.waves", tail_wave),
}

FORMULAS: Mapping[str, str] = {
    "strided": "1 - ideal sectors / sectors",
    "bank_conflicts": "1 - ideal wavefronts / wavefronts",
    "spills": "local sectors / all sectors",
    "fp64": "use of the FP64 pipe x (1 - 1/64)",
    "tail_wave": "places of the two waves that stay empty",
}
