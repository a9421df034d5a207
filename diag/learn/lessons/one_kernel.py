"""Lesson 5: speed of light, sectors, occupancy and stalls of one kernel, and how each misleads alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diag.learn.exercises.one_kernel import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.learn.profiles import Kernel, product, reading, sectors_of, write
from diag.learn.threads import one_thread
from diag.model.inspection import InspectedKernel

if TYPE_CHECKING:
    from torch import Tensor

    from diag.kernels.operator import DType

STRIDE = {"cpu": 16, "cuda": 8}
"""In numbers of 4 bytes: a cache line of 64 bytes, a sector of 32."""
FEW_NUMBERS, LEAST_NUMBERS, MOST_NUMBERS = 1 << 18, 1 << 25, 1 << 28
"""For tests; and between which they are twice what the caches hold."""
REPEATS = {"tiny": 3, "small": 9, "full": 15}

OPERATOR, VARIANT, TARGET = "softmax", "online", "sm_90"
DTYPE: DType = "fp16"
"""Of the kernel that is compiled."""

PROFILED_STRIDE, PROFILED_NUMBERS = 8, 1 << 26
"""Of the synthetic profile."""


@dataclass(frozen=True)
class Summed:
    """Times of the sum of all numbers of a tensor, and of every `stride`-th."""

    numbers: int
    stride: int
    all_ns: float
    strided_ns: float


def measure(lab: Lab) -> Measured:
    summed = _summed(lab)
    lab.progress(f"compiling {OPERATOR} for {TARGET}")
    kernel = compiled()
    profile = write(kernels(), lab.folder / "three.ncu-rep")
    inspect = ("probe", "inspect", OPERATOR, "--variant", VARIANT, "--arch", TARGET, "--dtype", DTYPE)
    return Measured(figures(summed, kernel), [inspect, ("report", str(profile))])


def figures(summed: Summed, kernel: InspectedKernel) -> list[Figure]:
    occupancy, code = kernel.occupancy, kernel.compiled
    assert occupancy is not None, "a kernel that runs fits"
    used = 4 * summed.numbers / summed.stride
    best = "least of the times"
    return [
        Figure("sectors", sectors_of(16), "sectors", "of 32 bytes that 32 addresses, 64 bytes apart, lie in; counted"),
        Figure("contiguous_sectors", sectors_of(1), "sectors", "the same for addresses 4 bytes apart"),
        Figure("all_rate", 4e9 * summed.numbers / summed.all_ns, "bytes/s", f"4 bytes x {summed.numbers:,} / {best}"),
        Figure("strided_rate", 1e9 * used / summed.strided_ns, "bytes/s", f"bytes that are used / {best}"),
        Figure("stride_ratio", summed.all_ns / summed.strided_ns, "x", f"all / every {summed.stride}th"),
        Figure("registers", code.registers_per_thread, "registers", "of a thread, by the compiler"),
        Figure("occupancy", occupancy.theoretical_pct / 100, "share", f"by {', '.join(occupancy.limiters)}"),
        Figure("waves", kernel.waves or 0.0, "waves", "blocks / (132 SMs x blocks that fit on one)"),
    ]


def _summed(lab: Lab) -> Summed:
    import torch

    stride, numbers = STRIDE[lab.device], _numbers(lab)
    lab.progress("summing numbers")
    with one_thread():
        x = torch.ones(numbers, device=lab.device)
        took_ns = _least_ns(lab, {"all": x, "strided": x[::stride]})
    return Summed(numbers, stride, took_ns["all"], took_ns["strided"])


def _numbers(lab: Lab) -> int:
    from diag.probes.machine import cache_bytes

    if lab.scale == "tiny":
        return FEW_NUMBERS
    twice = 2 * cache_bytes(lab.device) // 4
    return min(max(twice, LEAST_NUMBERS), MOST_NUMBERS) // 32 * 32


def _least_ns(lab: Lab, tensors: Mapping[str, Tensor]) -> Mapping[str, float]:
    """To sum each, in turn: what disturbs comes and goes, and only ever adds."""
    import torch

    took_ns: dict[str, list[int]] = {name: [] for name in tensors}
    for _ in range(1 + REPEATS[lab.scale]):
        for name, tensor in tensors.items():
            start_ns = time.perf_counter_ns()
            torch.sum(tensor).item()
            took_ns[name].append(time.perf_counter_ns() - start_ns)
    return {name: min(each[1:]) for name, each in took_ns.items()}


def compiled() -> InspectedKernel:
    """Raises ToolMissing without Triton."""
    from diag.kernels.catalogue import operators
    from diag.kernels.compilation import check_installed
    from diag.probes.static_analysis import inspect

    check_installed()
    operator = operators()[OPERATOR]
    variants = [each for each in operator.variants if each.name == VARIANT]
    (variant,) = inspect(operator, variants, [TARGET], DTYPE).variants
    (kernel,) = variant.kernels
    return kernel


def kernels() -> list[Kernel]:
    """Three that look alike good by one figure each, of which one is not."""
    strided = reading("first", PROFILED_STRIDE, PROFILED_NUMBERS // PROFILED_STRIDE)
    return [strided, reading("second", 1, PROFILED_NUMBERS), product("third", strided.took_ns)]


LESSON = Lesson(
    number=5,
    slug="one_kernel",
    questions=(
        Question("sectors", "sectors", close=1.0),
        Question("stride_ratio", "x", close=1.5),
        Question("occupancy", "%", close=1.1),
    ),
    measure=measure,
    exercise=exercise,
)
