"""Copies over the link between host and device, by direction, and the rates that they reach."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import Column, GpuOps
from diag.timeline.intervals import Intervals

LARGE_BYTES = 1 << 20
"""A copy of 1 MiB takes so much longer than to start one that its rate is that of the link or of memory."""

PINNED = gpu_work.MEMORY_KINDS.index("pinned")

_DIRECTIONS = {
    "host→device": [gpu_work.COPY_KINDS.index(kind) for kind in ("h2d", "h2a")],
    "device→host": [gpu_work.COPY_KINDS.index(kind) for kind in ("d2h", "a2h")],
}


@dataclass(frozen=True, eq=False)
class LinkCopies:
    """Copies of one direction that a program asked for; those of unified memory are the driver's choice."""

    direction: str
    device: DeviceTimeline
    ops: GpuOps
    launch: Column  # index into the device's calls, or NONE

    def __len__(self) -> int:
        return len(self.ops)

    def select(self, selection: NDArray[np.bool_]) -> LinkCopies:
        return replace(self, ops=self.ops.select(selection), launch=self.launch[selection])

    @property
    def large(self) -> LinkCopies:
        return self.select(self.ops.bytes >= LARGE_BYTES)

    @property
    def pinned(self) -> LinkCopies:
        """Those whose side on the host is pinned memory."""
        return self.select((self.ops.src_memory == PINNED) | (self.ops.dst_memory == PINNED))

    @property
    def time(self) -> Intervals:
        return self.ops.union() & self.device.window

    @property
    def bytes(self) -> int:
        return self.device.bytes_in_window(self.ops)

    @property
    def median_bytes(self) -> int:
        return int(np.median(self.ops.bytes))

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes over the union of the copies; None without any time."""
        time_ns = self.time.measure_ns
        return self.bytes * 1e9 / time_ns if time_ns else None


def copies_by_direction(device: DeviceTimeline) -> list[LinkCopies]:
    """The copies of the device's window in each direction that has some."""
    at = np.flatnonzero((device.ops.kind == gpu_work.COPY) & np.isin(device.ops.copy_kind, gpu_work.LINK_COPY_KINDS))
    copies, launch = device.ops.select(at), device.launch[at]
    found = []
    for name, kinds in _DIRECTIONS.items():
        of = np.isin(copies.copy_kind, kinds)
        if of.any():
            found.append(LinkCopies(name, device, copies.select(of), launch[of]))
    return found
