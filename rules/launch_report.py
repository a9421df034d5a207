"""Launches as a report has them: plain data, for every renderer and the stored case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diag.model.roofline import Bound
from diag.rules.roofline_report import RooflineRow


@dataclass(frozen=True)
class Clocks:
    """At which clocks a launch was measured."""

    sm_hz: float | None
    memory_hz: float | None
    is_locked: bool | None  # to base clock, by the profiler


@dataclass(frozen=True)
class SpeedOfLight:
    """Throughput of the busiest part of each, in percent of its peak; None where it was not collected."""

    sm_pct: float | None
    memory_pct: float | None
    dram_pct: float | None


@dataclass(frozen=True)
class LaunchOccupancyRow:
    """Warps that fit on an SM, and that were there on average, in percent of those that it has room for."""

    theoretical_pct: float
    achieved_pct: float | None  # None where it was not collected
    limits: Mapping[str, int | None]  # as in OccupancyRow
    limiters: Sequence[str]
    waves: (
        float | None
    )  # times that the grid fills the device; None where its SMs, or the clusters that fit, are not known


@dataclass(frozen=True)
class StallRow:
    """One reason for which the warps of a launch waited."""

    stall_class: str  # 'memory_latency', 'shared_mio', 'execution', 'synchronisation', 'fetch_control', ...
    reason: str  # in ncu's words
    share: float
    share_of: str  # 'latency': of the time between two instructions of a warp; 'samples': of all its samples


@dataclass(frozen=True)
class VendorRule:
    """What one of NVIDIA's own rules said of a launch when it was profiled."""

    rule: str
    section: str | None
    name: str | None
    type: str
    title: str | None
    message: str
    speedup_pct: float | None
    speedup_kind: str | None


@dataclass(frozen=True)
class InTimeline:
    """Where a profiled kernel stands in a timeline: its launches there, together."""

    source: int
    process: int
    device: int
    count: int
    total_ns: int
    confidence: str
    how: str


@dataclass(frozen=True)
class LaunchRow:
    """One launch as Nsight Compute measured it: serialised and under the profiler's clocks, not as the run had it."""

    id: str
    spoken_for_by: str  # id of the launch whose metrics speak for all launches of its kernel alike
    source: int
    number: int  # the ID that ncu prints
    kind: str  # 'kernel' | 'range' | 'graph'
    process: int | None
    device: int | None
    device_name: str | None
    context: int | None
    stream: int | None
    name: str
    short_name: str
    duration_ns: float | None
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    configuration: str  # grid and block in CUDA's launch syntax
    cluster: tuple[int, int, int] | None
    registers_per_thread: int | None
    clocks: Clocks
    cache_control: str | None
    replay: str | None
    passes: int | None
    ranges: Sequence[str]  # NVTX ranges around it, outermost first
    sol: SpeedOfLight
    bound: Bound | None
    roofline: RooflineRow | None
    occupancy: LaunchOccupancyRow | None  # None where the device or the launch is not known
    stalls: Sequence[StallRow]
    vendor_rules: Sequence[VendorRule]
    timeline: InTimeline | None
