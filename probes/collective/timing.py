"""How a step of several ranks is timed: they begin together, and it ends when the last of them has its result.

Every rank holds the same times, so that all of them take the same number of steps.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from diag.probes.collective.world import World
from diag.probes.measure import HEAD_START_CYCLES, MOST, Plan, Times, is_steady
from diag.probes.nvtx_ranges import nvtx_range
from diag.probes.probe import Step

FEWEST = 5
"""Steps, however long one takes."""


def timed(world: World, step: Step, plan: Plan, name: str) -> Times:
    """Warms up, then measures. `name` is that of the NVTX range around each step."""
    with nvtx_range(f"warm-up {name}"):
        _warm_up(world, step, plan.warm_up_s)
    took: list[float] = []
    while len(took) < FEWEST or (sum(took) < plan.seconds * 1e9 and len(took) < MOST):
        with nvtx_range(name):
            took.append(_once_ns(world, step))
    return Times(took)


def _warm_up(world: World, step: Step, seconds: float) -> None:
    took: Sequence[float] = [_once_ns(world, step)]
    while sum(took) < seconds * 1e9 and len(took) < MOST and not is_steady(took):
        took = [*took, _once_ns(world, step)]


def _once_ns(world: World, step: Step) -> float:
    """The largest over ranks, from the barrier on which all of them began."""
    world.barrier()
    if world.device == "cuda":
        return world.largest(_on_device_ns(step))
    begun = time.perf_counter_ns()
    step()
    return world.largest(time.perf_counter_ns() - begun)


def _on_device_ns(step: Step) -> float:
    """Between two events on the stream that waits for the collective's own.

    The device is kept busy before the first one, until the host has enqueued the step.
    """
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    cuda: Any = torch.cuda
    cuda._sleep(HEAD_START_CYCLES)
    start.record()
    step()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e6
