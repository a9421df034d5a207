"""A device as one process used it: when it was busy, its gaps, and what a stretch of it holds (docs/definitions.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.timeline.intervals import Intervals, Times
from diag.timeline.track import ACTIVITIES, Slices

NAMELESS = -2
"""Less the code of the activity it stands for the name of an operation that has none, as copies have."""


@dataclass(frozen=True, eq=False)
class DeviceTime:
    """`busy` is the union over all streams; the window runs from the first start to the last end."""

    busy: Intervals
    window: tuple[int, int]

    @cached_property
    def gaps(self) -> Intervals:
        return self.busy.gaps(*self.window)

    def busy_between(self, edges_ns: Times) -> Times:
        """Busy nanoseconds of each column."""
        first = int(np.searchsorted(self.busy.ends_ns, edges_ns[0], side="right"))
        stop = int(np.searchsorted(self.busy.starts_ns, edges_ns[-1], side="left"))
        near = Intervals(self.busy.starts_ns[first:stop], self.busy.ends_ns[first:stop])
        return near.measure_within(edges_ns[:-1], edges_ns[1:])

    def gap_at(self, time_ns: int) -> tuple[int, int] | None:
        at = int(np.searchsorted(self.gaps.starts_ns, time_ns, side="right")) - 1
        if at < 0 or time_ns >= self.gaps.ends_ns[at]:
            return None
        return int(self.gaps.starts_ns[at]), int(self.gaps.ends_ns[at])

    def next_gap(self, time_ns: int, shortest_ns: float, *, forward: bool) -> tuple[int, int] | None:
        """The first gap of at least this length that begins after the time, or the last one that begins before it."""
        starts_ns, ends_ns = self.gaps.starts_ns, self.gaps.ends_ns
        side = starts_ns > time_ns if forward else starts_ns < time_ns
        found = np.flatnonzero(side & (ends_ns - starts_ns >= shortest_ns))
        if not len(found):
            return None
        at = found[0 if forward else -1]
        return int(starts_ns[at]), int(ends_ns[at])

    def longest_gaps(self, most: int) -> list[tuple[int, int]]:
        """Longest first."""
        order = np.argsort(-self.gaps.lengths_ns, kind="stable")[:most]
        return list(zip(self.gaps.starts_ns[order].tolist(), self.gaps.ends_ns[order].tolist(), strict=True))


@dataclass(frozen=True)
class Measured:
    """A stretch of a device's window. All `_ns` are measures of unions within it."""

    start_ns: int  # of the stretch that was asked for
    end_ns: int
    window_ns: int  # of it that lies in the device's window: busy and idle
    busy_ns: int
    kernel_ns: int
    copy_ns: int
    memset_ns: int
    graph_ns: int
    comm_ns: int
    exposed_comm_ns: int
    counts: dict[str, int]  # operations that touch it, by activity; communication are kernels, too
    top: Sequence[tuple[int, int, int]]  # id of the name or NAMELESS, sum of times, count

    @property
    def idle_ns(self) -> int:
        return self.window_ns - self.busy_ns


def measured(parts: Iterable[Slices], window: tuple[int, int], start_ns: int, end_ns: int, most: int) -> Measured:
    """What the streams of a device hold of `[start_ns, end_ns)`; `parts` have at least what touches it."""
    around = [part.select(_touching(part, start_ns, end_ns)) for part in parts]
    starts, ends, names, activity = (
        np.concatenate([getattr(part, column) for part in around])
        for column in ("start_ns", "end_ns", "name_id", "activity")
    )
    inside = Intervals.single(max(start_ns, window[0]), min(end_ns, window[1]))

    def time_of(chosen: NDArray[np.bool_]) -> Intervals:
        return Intervals.union_of(starts[chosen], ends[chosen]) & inside

    def of(*names: str) -> NDArray[np.bool_]:
        return np.isin(activity, [ACTIVITIES.index(name) for name in names])

    talk = time_of(of("communication"))
    lengths = np.maximum(np.minimum(ends, end_ns) - np.maximum(starts, start_ns), 0)
    return Measured(
        start_ns=start_ns,
        end_ns=end_ns,
        window_ns=inside.measure_ns,
        busy_ns=time_of(np.ones(len(starts), bool)).measure_ns,
        kernel_ns=time_of(of("kernel", "communication")).measure_ns,
        copy_ns=time_of(of("copy")).measure_ns,
        memset_ns=time_of(of("memset")).measure_ns,
        graph_ns=time_of(of("graph")).measure_ns,
        comm_ns=talk.measure_ns,
        exposed_comm_ns=(talk - time_of(of("kernel"))).measure_ns,
        counts={name: int(of(name).sum()) for name in ACTIVITIES},
        top=top_names(np.where(names < 0, NAMELESS - activity, names), lengths, most),
    )


def top_names(name_id: NDArray[np.int32], lengths_ns: Times, most: int) -> list[tuple[int, int, int]]:
    """Names by the sum of their times, longest first: id, sum, count."""
    ids, inverse, counts = np.unique(name_id, return_inverse=True, return_counts=True)
    sums = np.zeros(len(ids), np.int64)
    np.add.at(sums, inverse, lengths_ns)
    order = np.argsort(-sums, kind="stable")[:most]
    return [(int(ids[at]), int(sums[at]), int(counts[at])) for at in order]


def _touching(slices: Slices, start_ns: int, end_ns: int) -> NDArray[np.bool_]:
    """Also what has no duration and lies inside."""
    starts, ends = slices.start_ns, slices.end_ns
    return np.asarray((starts < end_ns) & ((ends > start_ns) | ((starts == ends) & (starts >= start_ns))))
