"""Grids that leave SMs without work: too few blocks, or a last wave that is nearly empty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.model.occupancy import tail_loss
from diag.rules import kernel_profiler, queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.kernel_occupancy import NO_CONFIGURATION, unknown_limits
from diag.rules.tables import kernels_by_name
from diag.rules.thresholds import Limits
from diag.timeline.configurations import Configurations
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals, covered_once
from diag.timeline.trace import Trace


@device_rule("kernels.grid")
def idle_sms(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Grids that leave SMs idle.

    Asks      How much of the window do SMs stand idle while a kernel runs, because its grid has fewer blocks than there
              are SMs, or because its last wave is only partly full?
    Decides   Too small: blocks < SMs, loss = 1 - blocks / SMs. Tail: more than one wave of capacity = SMs x blocks that
              fit on one, loss = 1 - blocks / (ceil(blocks / capacity) x capacity), if that is `tail_loss` or more. Time
              lost = loss x the time in which the kernel is the only one on the device; fires at `share` of the window.
              Grids that are a multiple of the number of SMs were sized for the device (persistent kernels, grid-stride
              loops) and have no tail here. Communication is left out.
    Matters   A device is as fast as the SMs that work. In a tail most of them wait for the last blocks.
    Do        Too small: more blocks of less work each, split the reduction (split-K), batch several calls, run
              independent kernels at the same time on several streams. Tail: smaller blocks, or a grid that fits the
              capacity with a loop over the rest (persistent kernel).
    Refute    Launch the kernel with twice the blocks of half the work: if it takes as long, idle SMs were no limit.
    """
    gpu = trace.gpu_of(device)
    if not gpu.sm_count:
        untold = unknown_limits(device) if kernel_profiler.is_amd(device) else "the number of SMs is not in the trace"
        yield CannotTell(subject_of(device), untold)
        return
    if trace.case.value(_GREEN, (device.process_id, device.device)):
        yield CannotTell(subject_of(device), "a green context has a part of the SMs, and how many is not known")
        return
    shapes = trace.configurations_of(device)
    if not shapes.is_captured:
        yield CannotTell(subject_of(device), NO_CONFIGURATION)
        return
    if gpu.limits is None:
        yield CannotTell(subject_of(device), f"tail waves: {unknown_limits(device)}")
    losses = _losses(trace, device, shapes, gpu.sm_count, limits["tail_loss"])
    share = device.share(losses.lost_ns)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    yield _finding(device, losses, share, gpu.sm_count)


@dataclass(frozen=True, eq=False)
class Losses:
    """What idle SMs cost each operation of a device, in parallel with its operations."""

    lost: NDArray[np.float64]  # ns that the kernel would be shorter by, at most
    blocks: NDArray[np.int64]
    capacity: NDArray[np.int64]  # blocks that the device holds at a time; 0: not known
    is_small: NDArray[np.bool_]  # fewer blocks than SMs
    alone: Intervals  # when exactly one kernel runs

    @property
    def lost_ns(self) -> int:
        return int(self.lost.sum())

    @property
    def is_mostly_small(self) -> bool:
        return float(self.lost[self.is_small].sum()) * 2 >= float(self.lost.sum())


def _losses(trace: Trace, device: DeviceTimeline, shapes: Configurations, sm_count: int, least_tail: float) -> Losses:
    limits = trace.gpu_of(device).limits
    occupancies = shapes.occupancies(limits) if limits else [None] * len(shapes)
    capacity = np.array([o.blocks_per_sm * sm_count if o else 0 for o in occupancies], np.int64)
    is_small = (shapes.blocks > 0) & (shapes.blocks < sm_count)
    tails = [
        tail_loss(blocks, holds) if holds and blocks % sm_count else 0.0
        for blocks, holds in zip(shapes.blocks.tolist(), capacity.tolist(), strict=True)
    ]
    tail = np.array(tails, np.float64)
    loss = np.where(is_small, 1 - shapes.blocks / sm_count, np.where(tail >= least_tail, tail, 0.0))
    kernels, of = shapes.kernels, shapes.of
    starts_ns, ends_ns = device.ops.start_ns[kernels], device.ops.end_ns[kernels]
    alone = covered_once(starts_ns, ends_ns) & device.window
    lost = np.zeros(len(device.ops), np.float64)
    lost[kernels] = loss[of] * alone.measure_within(starts_ns, ends_ns)
    lost[device.is_communication] = 0.0
    return Losses(
        lost,
        _spread(shapes.blocks, shapes, len(lost)),
        _spread(capacity, shapes, len(lost)),
        _spread(is_small.astype(np.int64), shapes, len(lost)) == 1,
        alone,
    )


def _spread(of_configuration: NDArray[np.int64], shapes: Configurations, n_ops: int) -> NDArray[np.int64]:
    """A figure of each configuration as one of each operation; 0 for what is no kernel."""
    spread = np.zeros(n_ops, np.int64)
    spread[shapes.kernels] = of_configuration[shapes.of]
    return spread


def _finding(device: DeviceTimeline, losses: Losses, share: float, sm_count: int) -> Finding:
    small = losses.is_mostly_small
    at = _worst(device, np.where(losses.is_small == small, losses.lost, 0.0))
    row = kernels_by_name(device)[int(device.ops.name_id[at])]
    blocks, capacity = int(losses.blocks[at]), int(losses.capacity[at])
    affected = losses.lost > 0
    sql = queries.operations(
        device,
        "grid_x * grid_y * grid_z AS blocks, name_id, start_ns, end_ns",
        "kind = 'kernel'",
        f"name_id = {int(device.ops.name_id[at]):d}",
    )
    of_small_ns, of_tails_ns = (int(losses.lost[of].sum()) for of in (losses.is_small, ~losses.is_small))
    return Finding(
        title=f"Grids too small for the device: {row.short_name} has {units.count(blocks, 'block')} for {sm_count} SMs"
        if small
        else f"Tail waves: the last wave of {row.short_name} leaves SMs idle",
        claim=f"SMs without work cost up to {units.time(losses.lost_ns)} ({units.share(share)} of the window) in "
        f"{units.count(int(affected.sum()), 'launch')} that run alone. "
        + (
            f"{row.short_name} has {units.count(blocks, 'block')} for {sm_count} SMs: "
            f"{units.count(sm_count - blocks, 'SM')} cannot take part."
            if small
            else f"{row.short_name} runs {blocks:,} blocks in waves of {capacity:,}: the last of "
            f"{-(-blocks // capacity)} waves has {(blocks - 1) % capacity + 1:,}."
        ),
        subject=subject_of(device, kernel=row.name),
        share=share,
        recoverable_ns=losses.lost_ns,
        confidence="medium" if small else "low",
        level=None if small or share < 0.02 else "warning",
        counterfactual=f"If the same work were spread evenly over all SMs, the window would be at most "
        f"{units.time(losses.lost_ns)} shorter; kernels that last only as long as their start take, or that wait for "
        "memory, win less.",
        evidence=[
            Evidence("lost to grids with fewer blocks than SMs", of_small_ns, "ns", "(1 - blocks / SMs) x time alone"),
            Evidence(
                "lost to tail waves",
                of_tails_ns,
                "ns",
                "(1 - blocks / (ceil(blocks / capacity) x capacity)) x time alone",
            ),
            Evidence(f"blocks of {row.short_name}", blocks, "count", "grid of the launch that loses most", sql),
            Evidence("SMs", sm_count, "count", "of the device"),
            *([Evidence("capacity", capacity, "count", "SMs x blocks that fit on one")] if capacity else []),
        ],
        refute="Launch with twice the blocks of half the work: if it takes as long, idle SMs were not the limit.",
        next=[_MORE_BLOCKS if small else _NO_TAIL, _SIDE_BY_SIDE],
        extent=losses.alone & device.time_of(affected),
    )


_MORE_BLOCKS = "Give the kernel more blocks of less work each: split the reduction (split-K), or batch several calls."
_NO_TAIL = "Use smaller blocks, or a grid of the capacity's size with a loop over the rest (persistent kernel)."
_SIDE_BY_SIDE = "Run kernels that do not depend on each other at the same time, on several streams or in a CUDA graph."


def _worst(device: DeviceTimeline, lost: NDArray[np.float64]) -> int:
    """The costliest launch of the kernel that costs most."""
    names, of = np.unique(device.ops.name_id, return_inverse=True)
    name = names[np.argmax(np.bincount(of, lost, len(names)))]
    return int(np.argmax(np.where(device.ops.name_id == name, lost, -1.0)))


_GREEN = "SELECT 1 FROM context WHERE process_id = ? AND device = ? AND is_green = 1"
