"""Lesson 5: what a kernel's own figures tell, and how each of them misleads alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter_ns
from typing import Any

from diag.learn.exercises.one_kernel import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.learn.ncu_profile import SyntheticLaunch, ncu_report

TARGET = "sm_90"
KERNEL = ("softmax", "online")

LANES, ELEMENT_BYTES, SECTOR_BYTES = 32, 4, 32
STRIDE = 8
"""Elements from one lane to the next: each reads from a sector of its own."""

EVERY = 16
"""Numbers of 4 bytes in a cache line of 64."""

ELEMENTS = {"tiny": 1 << 20, "small": 1 << 26, "full": 1 << 27}
REPEATS = 7


def prepare(lab: Lab) -> Sequence[Figure]:
    """The kernel as it is compiled here, for a GPU that need not be there."""
    lab.progress(f"compiling {KERNEL[0]} for {TARGET}")
    compiled = _inspected().compiled
    registers = f"of the machine code of {KERNEL[0]} {KERNEL[1]} for {TARGET}"
    return [
        Figure("registers", float(compiled.registers_per_thread), "registers", registers),
        Figure("threads", float(compiled.threads), "threads", "of a block, as it is launched"),
    ]


def measure(lab: Lab) -> Measured:
    occupancy = _inspected().occupancy
    assert occupancy is not None
    every_ns, each_ns = _reading(lab)
    file = lab.folder / "two-copies.ncu-rep"
    file.write_bytes(ncu_report([_copying("copy_rows", 1), _copying("copy_columns", STRIDE)], made_by="diag learn 5"))
    fits = f"{occupancy.blocks_per_sm} blocks x {occupancy.warps_per_sm // occupancy.blocks_per_sm} warps / 64 warps"
    return Measured(
        [
            Figure("occupancy", occupancy.theoretical_pct / 100, "share", fits),
            Figure("sectors", float(sectors(STRIDE)), "sectors", f"{LANES} lanes, each in a sector of its own"),
            Figure("every_one", each_ns, "ns", f"median of {REPEATS} sums over all numbers"),
            Figure("every_16th", every_ns, "ns", f"median of {REPEATS} sums over one number of each {EVERY}"),
            Figure("time_ratio", every_ns / each_ns, "x", f"one of {EVERY} / all of them"),
        ],
        [
            ("probe", "inspect", KERNEL[0], "--variant", KERNEL[1], "--dtype", "fp32", "--arch", TARGET),
            ("report", str(file)),
        ],
    )


def sectors(stride: int) -> int:
    """That one request of a warp touches, whose lanes read 4 bytes each, `stride` elements apart, aligned.

    >>> sectors(1), sectors(2), sectors(8), sectors(100)
    (4, 8, 32, 32)
    """
    return min(LANES, -(-LANES * stride * ELEMENT_BYTES // SECTOR_BYTES))


def _inspected() -> Any:
    from diag.kernels.catalogue import operators
    from diag.probes.static_analysis import inspect

    operator = operators()[KERNEL[0]]
    variants = [each for each in operator.variants if each.name == KERNEL[1]]
    (variant,) = inspect(operator, variants, [TARGET], "fp32").variants
    return variant.kernels[0]


def _reading(lab: Lab) -> tuple[float, float]:
    """Times in ns to sum one of each 16 numbers, and all of them, by one thread of a CPU or by a GPU."""
    import torch

    from diag.learn.threads import one_thread

    lab.progress("reading memory")
    with one_thread():
        numbers = torch.ones(ELEMENTS[lab.scale], device=lab.device)
        return _took_ns(numbers[::EVERY].sum), _took_ns(numbers.sum)


def _took_ns(read: Callable[[], Any]) -> float:
    """Median, after one run that is not counted; `item` waits until the result is there."""
    read().item()
    took = []
    for _ in range(REPEATS):
        began = perf_counter_ns()
        read().item()
        took.append(perf_counter_ns() - began)
    return float(median(took))


COPIED = 1 << 24
"""Elements that each of the two made-up kernels reads."""
DRAM_BYTES_PER_S = 1.4e12


def _copying(name: str, stride: int) -> SyntheticLaunch:
    """It waits for memory alone: its time is that of the sectors that its requests touch."""
    requests = COPIED // LANES
    touched, least = requests * sectors(stride), requests * sectors(1)
    return SyntheticLaunch(
        f"{name}(float const*, float*)",
        {
            "gpu__time_duration.sum": round(1e9 * touched * SECTOR_BYTES / DRAM_BYTES_PER_S),
            "memory_l2_theoretical_sectors_global": touched,
            "memory_l2_theoretical_sectors_global_ideal": least,
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": requests,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": touched,
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 90.0,
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": 8.0,
        },
        blocks=COPIED // 256,
        threads=256,
    )


LESSON = Lesson(
    number=5,
    slug="one_kernel",
    questions=(
        Question("occupancy", "%", close=1.05),
        Question("sectors", "sectors", close=1.05),
        Question("time_ratio", "x", close=1.5),
    ),
    measure=measure,
    exercise=exercise,
    prepare=prepare,
)
