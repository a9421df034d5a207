"""Time that an injected fault takes: on the host's monotonic clock, or between two events of a GPU's stream."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch


def elapsed_ns(work: Callable[[], object]) -> int:
    """How long the host is in a piece of work."""
    start_ns = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - start_ns


def repeated_ns(work: Callable[[], object], budget_ns: int) -> int:
    """Repeats a piece of work for about so long; for how long it was, 0 where the budget is 0."""
    start_ns = now_ns = time.perf_counter_ns()
    while now_ns < start_ns + budget_ns:
        work()
        now_ns = time.perf_counter_ns()
    return now_ns - start_ns if budget_ns else 0


def usual_ns(work: Callable[[], object], repeats: int = 5) -> int:
    """Median of several runs, after one that warms up; at least 1."""
    work()
    return max(int(statistics.median(elapsed_ns(work) for _ in range(repeats))), 1)


class StreamClock:
    """Sums the time between pairs of CUDA events on the current stream, without waiting for it in the loop."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Any, Any]] = []

    def time(self, work: Callable[[], object]) -> None:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        self._pairs.append((start, end))

    def total_ns(self) -> int:
        """Waits for all that was timed."""
        torch.cuda.synchronize()
        milliseconds: float = sum(start.elapsed_time(end) for start, end in self._pairs)
        return round(milliseconds * 1e6)


def usual_gpu_ns(work: Callable[[], object], repeats: int = 5) -> int:
    """Median time of asynchronous work until the device is done with it; at least 1."""

    def whole() -> None:
        work()
        torch.cuda.synchronize()

    torch.cuda.synchronize()
    return usual_ns(whole, repeats)
