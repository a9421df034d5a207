"""Startup apart from steady state: what a process does once, before its work repeats.

Contexts, modules, lazily loaded kernels, compilation, buffers: a run of minutes pays for them once, a capture of a
second may consist of little else. Startup is claimed only where such one-time work is in the trace; a capture that
begins in the middle of a run has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from diag.timeline import gpu_work
from diag.timeline.device import FEWEST_OPERATIONS, DeviceTimeline
from diag.timeline.gpu_work import GpuOps
from diag.timeline.intervals import Intervals
from diag.timeline.naming import where_named
from diag.timeline.overhead import Overhead

ONE_TIME_CALL = re.compile(
    r"^(cu|cuda|hip)(Init|CtxCreate|DevicePrimaryCtxRetain|SetDevice|ModuleLoad|ModuleGetFunction|LibraryLoad|"
    r"LibraryGetKernel|KernelGetFunction|Malloc(?!.*Async)|MemAlloc(?!.*Async)|HostAlloc|MemHostAlloc|MemAllocHost|"
    r"HostRegister|MemHostRegister|StreamCreate|StreamBeginCapture|StreamEndCapture|GraphInstantiate)"
)
"""CUDA and HIP calls that a program in steady state has no need to make."""

ONE_TIME_OVERHEAD = ("module loading", "lazy loading", "jit")

KNOWN_SHARE = 0.95
"""The work repeats from when the kernels of this share of all launches have been launched once; own choice."""


@dataclass(frozen=True, eq=False)
class Startup:
    """The part of a device's window before steady state, and the rest. Both are sets of time within the window."""

    time: Intervals
    steady: Intervals
    is_told: bool
    """Whether steady state is in sight at all: False where nothing repeats after the last one-time work."""

    @classmethod
    def none(cls, device: DeviceTimeline, *, is_told: bool) -> Startup:
        return cls(Intervals.empty(), device.window, is_told)


def find_startup(device: DeviceTimeline, reported: Overhead) -> Startup:
    """Startup ends with the last one-time work of the process that began before the device's work repeats.

    One-time work are calls, and what the driver `reported` (rows of ONE_TIME_OVERHEAD).
    """
    calls = device.calls.select(where_named(ONE_TIME_CALL, device.calls.name_id, device.names))
    starts_ns = np.concatenate((calls.start_ns, reported.start_ns))
    ends_ns = np.concatenate((calls.end_ns, reported.end_ns))
    first_ns = int(device.all_ops.start_ns[0])
    end_ns = int(ends_ns[starts_ns <= _repeats_from_ns(device.all_ops)].max(initial=first_ns))
    after = device.all_ops.select(device.all_ops.start_ns >= end_ns)
    if not _repeats(after):
        return Startup.none(device, is_told=False)
    time = device.window & Intervals.single(first_ns, end_ns)
    return Startup(time, device.window - time, is_told=True)


def _repeats_from_ns(ops: GpuOps) -> int:
    """When the names that make up KNOWN_SHARE of the operations had all occurred. Operations are sorted by start."""
    _, first, counts = np.unique(_what(ops), return_index=True, return_counts=True)
    by_time = np.argsort(first)
    known = np.cumsum(counts[by_time]) >= KNOWN_SHARE * counts.sum()
    return int(ops.start_ns[first[by_time][np.argmax(known)]])


def _repeats(ops: GpuOps) -> bool:
    """Copies alone are loading, however many: in steady state something is computed again and again."""
    computing = ops.select((ops.kind == gpu_work.KERNEL) | (ops.kind == gpu_work.GRAPH))
    return len(ops) >= FEWEST_OPERATIONS and _occurs_twice(ops) and len(computing) > 0 and _occurs_twice(computing)


def _occurs_twice(ops: GpuOps) -> bool:
    """On average over the names."""
    return len(ops) >= 2 * len(np.unique(_what(ops)))


def _what(ops: GpuOps) -> gpu_work.Column:
    """What an operation is: a kernel by its name, other work by its kind."""
    return np.where(ops.kind == gpu_work.KERNEL, ops.name_id.astype(np.int64), -2 - ops.kind.astype(np.int64))
