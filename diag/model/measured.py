"""Ceilings that were measured: which of them holds for what, and on which device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling
from diag.model.ceilings import Arithmetic, Ceiling, Level
from diag.model.hardware import Gpu

SAME_CLOCK_SHARE = 0.03
"""Clocks that differ by less are the same one: they come in steps of 15 MHz, and are read a moment before or after."""


def best_rate(
    ceilings: Sequence[MeasuredCeiling],
    *,
    arithmetic: Arithmetic | None = None,
    level: Level | None = None,
    access: str | None = None,
) -> MeasuredCeiling | None:
    """The highest rate of an arithmetic, or at a level of memory by any access or the one that is named.

    None where nothing of the kind was measured. Raises ValueError unless either arithmetic or level is given.
    """
    if (arithmetic is None) == (level is None):
        raise ValueError("ask for the best rate of an arithmetic or at a level, not of both")
    possible = [
        each
        for each in ceilings
        if each.ceiling.arithmetic == arithmetic
        and each.ceiling.level == level
        and access in (None, each.ceiling.access)
    ]
    return max(possible, key=lambda each: each.ceiling.per_s, default=None)


@dataclass(frozen=True)
class Known:
    """Benchmarks that came with the evidence, and earlier ones of this user, which count where those say nothing."""

    given: Sequence[Benchmark] = ()
    earlier: Sequence[Benchmark] = ()

    def of(self, gpu: Gpu) -> Sequence[MeasuredCeiling]:
        """What was measured on this device, or else on another one of the same product; empty where nothing was."""
        return _of(self.given, gpu) or _of(self.earlier, gpu)


def _of(benchmarks: Sequence[Benchmark], gpu: Gpu) -> Sequence[MeasuredCeiling]:
    same = [each for each in benchmarks if _is_device(each.machine, gpu)]
    alike = same or [each for each in benchmarks if _is_product(each.machine, gpu)]
    return [ceiling for each in alike for ceiling in each.ceilings]


def _is_device(machine: Machine, gpu: Gpu) -> bool:
    return machine.kind == "cuda" and _identity(machine.uuid) == _identity(gpu.uuid) is not None


def _identity(uuid: str | None) -> str | None:
    """Tools write it with and without prefix and dashes.

    >>> _identity("GPU-6f1b0c2e-11AA") == _identity("6f1b0c2e11aa")
    True
    """
    return uuid.removeprefix("GPU-").replace("-", "").lower() if uuid else None


def _is_product(machine: Machine, gpu: Gpu) -> bool:
    """Of as many SMs, too: an instance of MIG has the name of the whole device."""
    if machine.kind != "cuda" or gpu.name is None or gpu.compute_capability is None:
        return False
    is_whole = gpu.sm_count in (None, machine.n_units)
    return is_whole and (machine.name, machine.compute_capability) == (gpu.name, gpu.compute_capability)


def at_clocks(
    ceiling: MeasuredCeiling | None, *, sm_clock_hz: float | None, memory_clock_hz: float | None
) -> Ceiling | None:
    """The ceiling if it holds at these clocks: of device memory its own, else that of the SMs. Unknown ones do not."""
    if ceiling is None:
        return None
    found = ceiling.ceiling
    is_dram = found.level == "dram"
    then, now = (found.memory_clock_hz, memory_clock_hz) if is_dram else (found.sm_clock_hz, sm_clock_hz)
    if not then or not now:
        return None
    return found if abs(now / then - 1) <= SAME_CLOCK_SHARE else None
