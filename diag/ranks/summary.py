"""What comparisons of ranks need of one rank: its steps, its collectives, its kernels by name. A few arrays each.

This is the boundary between two kinds of work. A summary needs the whole trace of its rank (`ranks/summarise.py`) and
is made where that lies. Everything that crosses ranks (`matching`, `clocks`, `arrivals`, `balance`) reads summaries
only, so that a job of any size has to gather no more than these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from diag.model.collective import Primitive
from diag.model.rank_lists import ranks as rank_list
from diag.timeline.intervals import Intervals, Times

OPS: tuple[str, ...] = (*Primitive, "barrier")
"""What a collective is; columns hold indices into this."""

SYNCHRONISING = tuple(
    map(
        OPS.index,
        (Primitive.ALL_REDUCE, Primitive.ALL_GATHER, Primitive.REDUCE_SCATTER, Primitive.ALL_TO_ALL, "barrier"),
    )
)
"""No rank can finish one of these before all have begun it, so that they end on all ranks nearly together."""

NONE = -1
"""Stands for a number that the trace does not give."""


@dataclass(frozen=True)
class Group:
    """The ranks that communicate with each other. Equal on all of them, though not each may know how many they are."""

    name: str
    size: int | None = field(default=None, compare=False)
    ranks: tuple[int, ...] | None = None  # in the job

    @property
    def label(self) -> str:
        if not self.ranks:
            return self.name if self.size is None else f"{self.name} ({self.size} ranks)"
        return f"{self.name} ({rank_list(self.ranks)})"


@dataclass(frozen=True, eq=False)
class Collectives:
    """Calls of one rank in parallel arrays, sorted by start. Times are those of the work, not of its launch."""

    group: NDArray[np.int32]  # index into RankSummary.groups
    op: NDArray[np.int8]  # index into OPS
    sequence: Times  # in its group, or NONE
    start_ns: Times
    end_ns: Times
    size_bytes: Times  # M, as nccl-tests counts it (diag/model/collective.py), or NONE
    received_bytes: Times  # by this rank, or NONE

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def duration_ns(self) -> Times:
        return self.end_ns - self.start_ns

    def select(self, selection: NDArray[np.bool_] | NDArray[np.intp]) -> Collectives:
        return Collectives(*(getattr(self, column.name)[selection] for column in fields(self)))


BEFORE = ("compute", "host_late", "launch_latency", "device_side", "not_captured")
"""What a rank's devices did between two of its collectives: the kernels, and the causes of an idle account."""


@dataclass(frozen=True, eq=False)
class Before:
    """For each collective of a rank, what happened since the end of the one before it (ns). Without a device, all of
    it is the host's.
    """

    compute_ns: Times
    host_late_ns: Times
    launch_latency_ns: Times
    device_side_ns: Times
    not_captured_ns: Times

    def of(self, part: str) -> Times:
        """One of BEFORE."""
        found: Times = getattr(self, f"{part}_ns")
        return found


@dataclass(frozen=True)
class HostTime:
    """What the launching thread did before collectives, while its device waited: the ranges that explain most."""

    total_ns: int
    ranges: Sequence[HostRange]


@dataclass(frozen=True)
class HostRange:
    pattern: str
    covered_ns: int  # of `HostTime.total_ns`


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Steps of a rank in parallel arrays, on its clock; measures of sets inside each step (ns)."""

    pattern: str | None  # None: no steps were found
    start_ns: Times
    end_ns: Times
    compute_ns: Times  # kernels and graphs that are no communication, as a union over its devices
    communication_ns: Times
    exposed_ns: Times  # communication that nothing of that overlaps
    idle_ns: Times  # nothing ran on any device

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def duration_ns(self) -> Times:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, eq=False)
class KernelTimes:
    """Kernels by full name in parallel arrays, communication left out. `median_ns` is of their durations."""

    names: Sequence[str]
    count: Times
    total_ns: Times
    median_ns: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RankCalls:
    """The collectives of one rank: all that it takes to find out how far its clock is off."""

    source: int
    pid: int
    rank: int | None
    tick_ns: int
    groups: Sequence[Group]
    calls: Collectives

    @property
    def label(self) -> str:
        return f"process {self.pid} of source {self.source}" if self.rank is None else f"rank {self.rank}"


@dataclass(frozen=True, eq=False)
class RankSummary(RankCalls):
    rank_origin: str | None
    world_size: int | None
    host: str | None
    span_ns: tuple[int, int]  # first and last of what its source recorded
    has_device: bool
    steps: StepTimes
    before: Before
    host_time: HostTime
    exposed: Intervals  # communication that no kernel overlaps; without a device, all of it
    communication_ns: int  # union of it
    kernels: KernelTimes
    sm_clock_hz: float | None = None  # mean while busy, where it was sampled
    device_name: str | None = None  # of its first device, as a driver names it

    @property
    def exposed_ns(self) -> int:
        return self.exposed.measure_ns
