"""Synthetic reports of Nsight Compute: one kernel with a fault among healthy ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from diag.learn.exercises import one_kernel
from diag.learn.exercises.one_kernel import ProfileFault
from tests.builders.ncu_report import KernelLaunch, NcuReport, Value


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


FAULTS: Mapping[str, ProfileFault] = {
    "strided access": one_kernel.FAULTS["strided"],
    "bank conflicts": one_kernel.FAULTS["conflicts"],
    "spills": one_kernel.FAULTS["spills"],
    "FP64 by accident": one_kernel.FAULTS["fp64"],
}
