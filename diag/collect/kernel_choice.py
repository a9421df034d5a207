"""Which kernels of a recorded run are worth the time that Nsight Compute takes, and which of their launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MOST_KERNELS = 5
MOST_LAUNCHES = 20
ENOUGH_SHARE = 0.9
"""Of what could be won: kernels beyond it are not worth their replays."""


@dataclass(frozen=True)
class KernelTime:
    """All launches of the kernels that share a function name."""

    function: str
    total_ns: int
    recoverable_ns: int | None = None
    """An upper bound, where a finding gives one."""

    @property
    def at_most_ns(self) -> int:
        """That could be won: no more than the time that the kernel takes."""
        return self.total_ns if self.recoverable_ns is None else min(self.recoverable_ns, self.total_ns)


@dataclass(frozen=True)
class Selection:
    """Kernels to profile, and which of their launches, counted over these kernels alone."""

    functions: Sequence[str]
    skip: int
    count: int


def select(kernels: Sequence[KernelTime], launches: Sequence[str]) -> Selection | None:
    """The kernels by which most can be won, in few launches; None where there are none.

    `launches`: the function name of every launch, in their order.
    """
    chosen = worth_it([kernel for kernel in kernels if kernel.function in set(launches)])
    while chosen:
        skip, count = shortest_stretch(launches, chosen)
        if count <= MOST_LAUNCHES or len(chosen) == 1:
            return Selection(chosen, skip, count)
        chosen = chosen[:-1]
    return None


def worth_it(kernels: Sequence[KernelTime]) -> list[str]:
    """Functions, the one by which most can be won first."""
    ranked = sorted(kernels, key=lambda kernel: (-kernel.at_most_ns, kernel.function))
    whole_ns = sum(kernel.at_most_ns for kernel in ranked)
    chosen: list[str] = []
    won_ns = 0
    for kernel in ranked[:MOST_KERNELS]:
        if won_ns >= ENOUGH_SHARE * whole_ns:
            break
        chosen.append(kernel.function)
        won_ns += kernel.at_most_ns
    return chosen


def shortest_stretch(launches: Sequence[str], chosen: Collection[str]) -> tuple[int, int]:
    """(skip, count) of the fewest launches in a row that hold every chosen function; of equal ones the last.

    Both count chosen functions alone, as ncu does with its filter. The last, because a run warms up.

    >>> shortest_stretch(["fill", "gemm", "gemm", "copy", "norm", "gemm", "norm"], ["gemm", "norm"])
    (3, 2)
    """
    matching = [name for name in launches if name in chosen]
    best = (0, len(matching))
    inside: Counter[str] = Counter()
    start = 0
    for end, name in enumerate(matching, 1):
        inside[name] += 1
        while inside[matching[start]] > 1:
            inside[matching[start]] -= 1
            start += 1
        if len(inside) == len(set(chosen)) and end - start <= best[1]:
            best = (start, end - start)
    return best
