"""Copies over the link between host and device, by direction, and the rates that they reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline

LARGE_BYTES = 1 << 20
"""A copy of 1 MiB takes so much longer than to start one that its rate is that of the link or of memory."""

PINNED = gpu_work.MEMORY_KINDS.index("pinned")


@dataclass(frozen=True, eq=False)
class Direction:
    """The copies that a program asked for in one direction; those of unified memory are the driver's choice."""

    name: str
    device: DeviceTimeline
    is_copy: NDArray[np.bool_]  # of the device's operations

    @property
    def is_large(self) -> NDArray[np.bool_]:
        return np.asarray(self.is_copy & (self.device.ops.bytes >= LARGE_BYTES))

    @property
    def is_pinned(self) -> NDArray[np.bool_]:
        """The host's side of the copy is pinned memory."""
        ops = self.device.ops
        return np.asarray(self.is_copy & ((ops.src_memory == PINNED) | (ops.dst_memory == PINNED)))

    def bytes_per_s(self, selection: NDArray[np.bool_]) -> float | None:
        """Bytes over the union of the selected copies; None without any time."""
        time_ns = self.device.time_of(selection).measure_ns
        return self.device.bytes_of(selection) * 1e9 / time_ns if time_ns else None


def directions(device: DeviceTimeline) -> list[Direction]:
    """The directions in which the device's window has copies."""
    found = []
    for name, kinds in (("host→device", ("h2d", "h2a")), ("device→host", ("d2h", "a2h"))):
        codes = [gpu_work.COPY_KINDS.index(kind) for kind in kinds]
        is_copy = (device.ops.kind == gpu_work.COPY) & np.isin(device.ops.copy_kind, codes)
        if is_copy.any():
            found.append(Direction(name, device, is_copy))
    return found
