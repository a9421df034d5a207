"""How steps are timed: warmed up until steady, then one by one, each from buffers that no cache holds any more.

On a GPU the time of a step is that between two CUDA events around it. Before them the device is kept busy for a
moment, so that the host has enqueued the step by the time the first event is reached: what is measured is then the
work, not its launch. From the call until the result is there is measured apart. On a CPU both are one, and a step
during which another program had one of our cores is left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import median
from typing import Any, Protocol

from diag.probes.calibration import host
from diag.probes.calibration.sampling import percentile
from diag.probes.nvtx_ranges import nvtx_range
from diag.probes.probe import Device, Scale, Step

STEADY = 0.05
"""Two groups of steps whose medians differ by less show no trend."""
GROUP = 5
HEAD_START_CYCLES = 400_000
"""About 0.2 ms: several times what enqueueing a kernel takes."""


FEWEST = 3
"""Steps, however long one takes."""
MOST = 1000
PATIENCE = 5
"""So many times as long as planned it takes at most to get FEWEST steps that nothing disturbs."""


@dataclass(frozen=True)
class Plan:
    """How long to warm up at most, and to measure."""

    warm_up_s: float
    seconds: float


PLANS: dict[Scale, Plan] = {"tiny": Plan(0.02, 0.02), "small": Plan(1.0, 0.7), "full": Plan(2.0, 2.0)}


@dataclass(frozen=True)
class Times:
    """Of single steps, in the order in which they ran."""

    device_ns: Sequence[float]  # on a CPU: of the call
    end_to_end_ns: Sequence[float] = ()  # from the call until its result is there; empty on a CPU
    n_disturbed: int = 0  # steps during which another program had a core
    are_disturbed: bool = False  # next to all were, so that they could not be left out

    @property
    def median_ns(self) -> float:
        return median(self.device_ns)

    def percentile_ns(self, share: float) -> float:
        return percentile(self.device_ns, share)


class Clock(Protocol):
    def once_ns(self, step: Step) -> float:
        """From the call of a step until its result is there."""
        ...

    def times(self, steps: Iterator[Step], plan: Plan, name: str) -> Times: ...


class CpuClock:
    """Counts nanoseconds by the monotonic clock."""

    def once_ns(self, step: Step) -> float:
        return host.once_ns(step)

    def times(self, steps: Iterator[Step], plan: Plan, name: str) -> Times:
        """Where next to all steps were disturbed, all of them count; where most were, the others had it no better."""
        every: list[float] = []
        left_alone: list[float] = []
        begun = time.monotonic()
        while len(every) < MOST:
            enough = plan.seconds * (1 if len(left_alone) >= FEWEST else PATIENCE)
            if len(every) >= FEWEST and time.monotonic() - begun >= enough:
                break
            with nvtx_range(name):
                took, was_alone = host.timed(lambda: self.once_ns(next(steps)))
            every.append(took)
            if was_alone:
                left_alone.append(took)
        n_disturbed = len(every) - len(left_alone)
        if len(left_alone) < FEWEST:
            return Times(every, n_disturbed=n_disturbed, are_disturbed=True)
        return Times(left_alone, n_disturbed=n_disturbed, are_disturbed=n_disturbed > len(left_alone) + 1)


class CudaClock:
    """Times between CUDA events, and by the monotonic clock up to a synchronisation."""

    def __init__(self) -> None:
        import torch

        self._cuda: Any = torch.cuda

    def once_ns(self, step: Step) -> float:
        self._cuda.synchronize()
        begun = time.perf_counter_ns()
        step()
        self._cuda.synchronize()
        return time.perf_counter_ns() - begun

    def times(self, steps: Iterator[Step], plan: Plan, name: str) -> Times:
        end_to_end: list[float] = []
        device: list[float] = []
        ends = time.monotonic() + plan.seconds
        while len(device) < FEWEST or (time.monotonic() < ends and len(device) < MOST):
            with nvtx_range(name):
                end_to_end.append(self.once_ns(next(steps)))
            device.append(self._on_device_ns(next(steps)))
        return Times(device, end_to_end)

    def _on_device_ns(self, step: Step) -> float:
        start, end = (self._cuda.Event(enable_timing=True) for _ in range(2))
        self._cuda._sleep(HEAD_START_CYCLES)  # it touches no memory: the caches stay as the step before left them
        start.record()
        step()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e6


def clock_of(device: Device) -> Clock:
    return CpuClock() if device == "cpu" else CudaClock()


def timed(steps: Sequence[Step], clock: Clock, plan: Plan, name: str) -> Times:
    """Warms up, then measures. `name` is that of the NVTX range around each step."""
    turns = cycle(steps)
    with nvtx_range(f"warm-up {name}"):
        warm_up(turns, clock, plan.warm_up_s)
    return clock.times(turns, plan, name)


def warm_up(steps: Iterator[Step], clock: Clock, seconds: float) -> int:
    """Runs steps until they are steady or the time is up, once at least; returns how many."""
    ends = time.monotonic() + seconds
    took = [clock.once_ns(next(steps))]
    while time.monotonic() < ends and not is_steady(took):
        took.append(clock.once_ns(next(steps)))
    return len(took)


def is_steady(took_ns: Sequence[float]) -> bool:
    """
    >>> is_steady([9, 5, 2, 1, 1, 1, 1, 1, 1, 1]), is_steady([1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    (False, True)
    """
    if len(took_ns) < 2 * GROUP:
        return False
    before, after = median(took_ns[-2 * GROUP : -GROUP]), median(took_ns[-GROUP:])
    return abs(after - before) < STEADY * before
