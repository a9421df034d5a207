"""Rooflines as a report has them: plain data, for every renderer and the stored case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.roofline import Bound, Side


@dataclass(frozen=True)
class RooflineCeiling:
    """One roof: the slope of a level of memory, or the flat top of a kind of work."""

    name: str  # 'DRAM', 'L2', 'L1', 'FP64', 'FP16 tensor', 'instructions', ...
    side: Side
    per_s: float
    unit: str  # 'bytes/s', 'FLOP/s', 'OP/s', 'inst/s'
    origin: str  # 'measured' | 'report' | 'derived' | 'datasheet'
    formula: str
    sm_clock_hz: float | None
    memory_clock_hz: float | None


@dataclass(frozen=True)
class RooflinePoint:
    """Work of one precision, or instructions, over the bytes of one level."""

    level: str  # name of a ceiling
    precision: str  # name of a ceiling
    intensity: float  # work per byte, in the unit of the work
    work_per_s: float
    attainable_work_per_s: float  # the roof above the point
    ridge_point: float  # unit as `intensity`


@dataclass(frozen=True)
class RooflineLimit:
    """What would take this share of the launch's time if nothing else did."""

    name: str
    side: Side
    share: float


@dataclass(frozen=True)
class RooflineRow:
    """Where a launch stands under the ceilings of its device: the point that speaks for it, then all of them."""

    level: str
    precision: str
    intensity: float
    work_unit: str  # 'FLOP', 'OP' or 'inst'
    work_per_s: float
    attainable_work_per_s: float
    ridge_point: float
    bound: Bound | None  # None where a point lies above its roof, or one side is not known
    headroom: float  # share of the time that could be won at most
    nearest: str  # the limit that leaves this headroom
    limits: Sequence[RooflineLimit]
    points: Sequence[RooflinePoint]
    ceilings: Sequence[RooflineCeiling]
    uncounted: Sequence[str]  # kinds of work that were not counted


@dataclass(frozen=True)
class KernelRoofline:
    """A kernel that was profiled, with the roofline of its median launch."""

    source: int
    launch: str  # id of the median launch
    short_name: str
    configuration: str
    count: int  # launches that were profiled
    share: float | None  # of the device's window where it has a place in a timeline, else of all profiled kernel time
    device_name: str | None
    sm_clock_hz: float | None  # while it was measured
    memory_clock_hz: float | None
    roofline: RooflineRow
