"""One device as one process used it: its window, busy time and work, all as sets of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from diag.timeline import gpu_work
from diag.timeline.gpu_work import Calls, GpuOps
from diag.timeline.intervals import Intervals

Answer = TypeVar("Answer")

COMMUNICATION_KERNEL = re.compile(r"nccl|rccl|nvshmem|oneccl", re.IGNORECASE)

FEWEST_OPERATIONS = 10
"""With fewer operations than this, shares of the window say nothing (docs/definitions.md)."""


@dataclass(frozen=True)
class Copies:
    """Copies of one kind between one pair of memory kinds."""

    kind: str
    src: str
    dst: str
    count: int
    bytes: int
    time: Intervals

    @property
    def busy_ns(self) -> int:
        return self.time.measure_ns

    @property
    def crosses_link(self) -> bool:
        return gpu_work.COPY_KINDS.index(self.kind) in gpu_work.LINK_COPY_KINDS


@dataclass(frozen=True, eq=False)
class DeviceTimeline:
    """Work of one process on one device inside the window.

    The window runs from the first start to the last end of GPU work; a scope the user asked for narrows it. `ops` are
    those that touch the window, uncut; every set of time is cut to the window.
    """

    source_id: int
    process_id: int
    pid: int
    process_name: str | None
    device: int
    uuid: str | None
    hardware: str | None
    names: Mapping[int, str]
    ops: GpuOps
    calls: Calls
    launch: NDArray[np.int64]  # index into calls, or NONE
    all_ops: GpuOps  # also those outside the window
    all_launch: NDArray[np.int64]
    window: Intervals
    is_scoped: bool  # the window is the part that the user asked for
    range_name: str | None  # that part, where it is the time inside ranges
    others: Intervals  # work of other processes on the same hardware
    other_pids: tuple[int, ...]
    mig_instance: str | None  # the slice of a GPU that the device is
    host_span: tuple[int, int]  # first start and last end of anything the process did on the host

    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, what: str, work: Callable[[], Answer]) -> Answer:
        """The answer of `work`, which several rules ask for under this name and which is worked out the first time."""
        if what not in self._known:
            self._known[what] = work()
        answer: Answer = self._known[what]
        return answer

    @property
    def start_ns(self) -> int:
        return self.window.span[0]

    @property
    def end_ns(self) -> int:
        return self.window.span[1]

    @property
    def window_ns(self) -> int:
        return self.window.measure_ns

    @property
    def lead_ns(self) -> int:
        """Host time before the window; never idle. A part of a trace has none."""
        return 0 if self.is_scoped else max(0, self.start_ns - self.host_span[0])

    @property
    def tail_ns(self) -> int:
        return 0 if self.is_scoped else max(0, self.host_span[1] - self.end_ns)

    def name_of(self, name_id: int) -> str:
        """Of a kernel, or that it has none."""
        return self.names.get(name_id, "(name not captured)")

    @property
    def has_shares(self) -> bool:
        return len(self.ops) >= FEWEST_OPERATIONS and self.window_ns > 0

    def share(self, part: Intervals | int) -> float:
        measure_ns = part if isinstance(part, int) else part.measure_ns
        return measure_ns / self.window_ns if self.window_ns else 0.0

    def time_of(self, selection: NDArray[np.bool_]) -> Intervals:
        return Intervals.union_of(self.ops.start_ns[selection], self.ops.end_ns[selection]) & self.window

    @cached_property
    def busy(self) -> Intervals:
        return self.ops.union() & self.window

    @cached_property
    def idle(self) -> Intervals:
        return self.window - self.busy

    @cached_property
    def kernel_time(self) -> Intervals:
        return self.time_of(self.ops.kind == gpu_work.KERNEL)

    @cached_property
    def copy_time(self) -> Intervals:
        return self.time_of(self.ops.kind == gpu_work.COPY)

    @cached_property
    def memset_time(self) -> Intervals:
        return self.time_of(self.ops.kind == gpu_work.MEMSET)

    @cached_property
    def graph_time(self) -> Intervals:
        return self.time_of(self.ops.kind == gpu_work.GRAPH)

    @cached_property
    def is_communication(self) -> NDArray[np.bool_]:
        ids = np.unique(self.ops.name_id)
        wanted = [i for i in ids.tolist() if COMMUNICATION_KERNEL.search(self.names.get(i, ""))]
        return np.asarray((self.ops.kind == gpu_work.KERNEL) & np.isin(self.ops.name_id, wanted))

    @cached_property
    def communication_time(self) -> Intervals:
        return self.time_of(self.is_communication)

    @cached_property
    def exposed_communication(self) -> Intervals:
        return self.communication_time - self.time_of((self.ops.kind == gpu_work.KERNEL) & ~self.is_communication)

    @cached_property
    def link_copy_time(self) -> Intervals:
        is_link = np.isin(self.ops.copy_kind, gpu_work.LINK_COPY_KINDS)
        return self.time_of((self.ops.kind == gpu_work.COPY) & is_link)

    @cached_property
    def exposed_link_copies(self) -> Intervals:
        return self.link_copy_time - self.kernel_time

    @cached_property
    def copies(self) -> list[Copies]:
        """Copies by kind and memory kinds, longest first."""
        ops = self.ops.select(self.ops.kind == gpu_work.COPY)
        keys = np.column_stack((ops.copy_kind, ops.src_memory, ops.dst_memory))
        groups = []
        for key in np.unique(keys, axis=0) if len(ops) else []:
            of = ops.select((keys == key).all(axis=1))
            kind, src, dst = key.tolist()
            groups.append(
                Copies(
                    gpu_work.COPY_KINDS[kind],
                    gpu_work.MEMORY_KINDS[src],
                    gpu_work.MEMORY_KINDS[dst],
                    len(of),
                    self.bytes_in_window(of),
                    of.union() & self.window,
                )
            )
        return sorted(groups, key=lambda group: -group.busy_ns)

    def bytes_in_window(self, copies: GpuOps) -> int:
        """A copy that reaches over the window's edge counts with the part of its bytes that its time there suggests."""
        if not self.is_scoped:
            return int(copies.bytes.sum(dtype=np.float64))  # exact up to 9 PB, and no overflow beyond
        inside_ns = self.window.measure_within(copies.start_ns, copies.end_ns)
        return round(float((copies.bytes * (inside_ns / np.maximum(copies.duration_ns, 1))).sum()))

    def count(self, kind: int) -> int:
        return int((self.ops.kind == kind).sum())

    @property
    def launched_share(self) -> float:
        """Share of the operations whose launching call was captured."""
        return float((self.launch != gpu_work.NONE).mean()) if len(self.ops) else 0.0

    @property
    def unlaunched_share_of_kernels(self) -> float:
        """Share of the kernels whose launching call was not captured."""
        kernels = self.ops.kind == gpu_work.KERNEL
        return float((self.launch[kernels] == gpu_work.NONE).mean()) if kernels.any() else 0.0
