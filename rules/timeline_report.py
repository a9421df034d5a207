"""Rows of the report about timelines: devices, kernels, ranges, operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diag.model.ceilings import Origin
from diag.model.roofline import Bound
from diag.rules.roofline_report import RooflineRow
from diag.timeline.device import FEWEST_OPERATIONS


@dataclass(frozen=True)
class CopyRow:
    """All copies of one kind between one pair of memory kinds."""

    kind: str
    src: str
    dst: str
    count: int
    bytes: int
    busy_ns: int  # union


@dataclass(frozen=True)
class DeviceRow:
    """The account of one (process, device). All `_ns` but the window's edges are measures of unions within it."""

    source: int
    process: int
    process_name: str | None
    device: int
    uuid: str | None
    name: str | None
    window: tuple[int, int]
    window_ns: int
    is_scoped: bool  # the window is the part that the user asked for
    lead_ns: int
    tail_ns: int
    startup_ns: int | None  # part of the window before steady state; None where none is in sight
    busy_ns: int
    busy_is_upper_bound: bool  # graph launches recorded as one row hide the gaps inside
    busy_is_lower_bound: bool  # graph launches of which nothing was recorded look like idle time
    idle_ns: int
    kernel_ns: int
    copy_ns: int
    memset_ns: int
    graph_ns: int
    comm_ns: int
    exposed_comm_ns: int
    n_kernels: int
    n_copies: int
    n_memsets: int
    n_graphs: int
    copies: Sequence[CopyRow]

    @property
    def has_shares(self) -> bool:
        """Whether there is enough work for shares of the window to mean anything."""
        n_operations = self.n_kernels + self.n_copies + self.n_memsets + self.n_graphs
        return n_operations >= FEWEST_OPERATIONS and self.window_ns > 0

    def share(self, measure_ns: int) -> float:
        return measure_ns / self.window_ns if self.window_ns else 0.0


@dataclass(frozen=True)
class HardwareRow:
    """A physical device that several processes of one source used: their work together, never added up."""

    source: int
    uuid: str
    name: str | None
    processes: tuple[int, ...]  # pids
    window_ns: int  # first start to last end over all of them
    busy_ns: int  # union over all of them
    idle_ns: int


@dataclass(frozen=True)
class OccupancyRow:
    """Theoretical occupancy of a kernel in the configuration that takes most of its time."""

    theoretical_pct: float
    limits: Mapping[str, int | None]  # blocks per SM by 'blocks', 'registers', 'shared_memory', 'warps', 'barriers'
    limiters: Sequence[str]  # those of them that bound it
    configurations: int  # different blocks with which the kernel was launched


@dataclass(frozen=True)
class KernelRow:
    """All launches of one kernel by one process on one device."""

    source: int
    process: int
    device: int
    name: str
    short_name: str
    count: int
    total_ns: int  # sum of durations
    median_ns: int
    min_ns: int
    max_ns: int
    share_of_kernel_time: float  # of the sum over all kernels of that device
    share_of_window: float  # union of its launches over the window
    occupancy: OccupancyRow | None = None  # None where the device or the launch is not known
    roofline: RooflineRow | None = None  # of its profile, in the configuration that takes most of the time


@dataclass(frozen=True)
class RangeRow:
    """All instances of one range pattern, with the device time of the work launched inside them."""

    source: int
    process: int
    device: int
    name: str
    count: int
    host_ns: int  # sum of durations, recursion counted once
    gpu_ns: int  # union of the operations launched inside
    gpu_sum_ns: int  # their sum


@dataclass(frozen=True)
class OperatorRow:
    """Calls of one PyTorch operator with the same shapes: their work, *modelled* from the shapes, and measured time."""

    source: int
    process: int
    device: int
    name: str
    shapes: str
    dtype: str | None
    kind: str  # 'gemm' | 'convolution' | 'attention' | 'norm' | 'elementwise' | 'reduction'
    count: int
    gpu_ns: int  # union of what these calls launched
    share_of_window: float
    flops: int  # of all calls together
    bytes: int | None  # the least that must move; None where a type is not known
    flops_per_s: float
    bytes_per_s: float | None
    intensity: float | None  # FLOP per byte
    formula: str  # of the FLOPs of one call
    nearest: str | None = None  # roof of the device: 'DRAM', 'BF16 tensor'; None where none is known
    roof_share: float | None = None  # of the time that it would take at that roof, had it all of it
    bound: Bound | None = None
    roof_origin: Origin | None = None  # of `nearest`
