"""Rows of a timeline as a picture needs them: how busy each column is, with what, and where the next gap begins.

A *track* is one row: a stream, a host thread's calls, its ranges of one depth, a counter. Its slices are sorted arrays,
so that a window is two binary searches and a column's busy time is a difference of prefix sums, exact at any zoom. Only
where a column covers more than a few *bins*, into which a long track was summed up when it was imported, are they used
instead: the first picture of a million slices then reads none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diag.timeline.intervals import Intervals, Times

TrackKind = Literal["stream", "calls", "os_calls", "ranges", "start_end", "marks", "counter"]

ACTIVITIES = ("kernel", "copy", "memset", "graph", "communication", "range", "call", "os_call")
"""What a slice can be, by its code."""

BIN_COUNT = 1 << 14
"""Bins of a long track, over the time of its source."""

LEAST_BINNED = 1 << 16
"""Slices. A shorter track is summed up as fast as its bins are read."""

BINS_PER_COLUMN = 4
"""Of at least so many bins a column is summed up without slices; its edges are then off by a quarter of it at most."""


@dataclass(frozen=True)
class Track:
    """What a row of the timeline is of. Times are those of its source."""

    id: int
    source: int
    kind: TrackKind
    process: int | None  # id in the case
    device: int | None  # ordinal; of a counter the source's own number of the GPU
    context: int | None
    stream: int | None
    thread: int | None  # id in the case
    depth: int  # of nested ranges; 0 is outermost
    series: int | None  # of a counter
    count: int  # slices, or samples
    start_ns: int
    end_ns: int
    busy_ns: int  # union of the slices


@dataclass(frozen=True, eq=False)
class Columns:
    """A stretch of a track in columns, in parallel arrays. -1 where nothing is."""

    busy_ns: Times  # union of what lies in the column
    count: NDArray[np.int64]  # slices that start in it
    name_id: NDArray[np.int64]  # of the slice that takes most of it
    activity: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Slices:
    """In parallel arrays, sorted by start. They may overlap."""

    start_ns: Times
    end_ns: Times
    name_id: NDArray[np.int32]
    activity: NDArray[np.int8]  # index into ACTIVITIES
    row_id: NDArray[np.int64]  # in the table that the track's kind is of (`ROWS_OF`); -1: kept as columns only

    def __len__(self) -> int:
        return len(self.start_ns)

    def select(self, selection: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Slices:
        return Slices(*(getattr(self, field.name)[selection] for field in fields(self)))

    @property
    def is_long(self) -> bool:
        return len(self) >= LEAST_BINNED

    @cached_property
    def union(self) -> Intervals:
        return Intervals.union_of(self.start_ns, self.end_ns)

    @cached_property
    def _reach_ns(self) -> Times:
        """Latest end of all slices up to each one."""
        return np.asarray(np.maximum.accumulate(self.end_ns))

    def touching(self, start_ns: int, end_ns: int) -> slice:
        """Where the slices stand that may touch `[start_ns, end_ns)`; of those that overlap some may not."""
        first = int(self.first_reaching(start_ns))
        return slice(first, max(first, int(np.searchsorted(self.start_ns, end_ns, side="left"))))

    def first_reaching(self, times_ns: ArrayLike) -> NDArray[np.int64]:
        """For each time the index of the first slice that ends after it."""
        return np.asarray(np.searchsorted(self._reach_ns, times_ns, side="right"))

    def at(self, time_ns: int) -> int | None:
        """Index of the slice at this time that started last."""
        around = self.touching(time_ns, time_ns + 1)
        here = np.flatnonzero(self.end_ns[around] > time_ns)
        return around.start + int(here[-1]) if len(here) else None

    def columns(self, edges_ns: Times) -> Columns:
        """`edges_ns`: the borders of the columns, rising, one more than there are columns."""
        around = self.touching(int(edges_ns[0]), int(edges_ns[-1]))
        starts, ends = self.start_ns[around], self.end_ns[around]
        count = np.diff(np.searchsorted(self.start_ns, edges_ns))
        longest = _longest_within(starts, ends, edges_ns)
        busy_ns = self.union.measure_within(edges_ns[:-1], edges_ns[1:])
        return _columns(busy_ns, count, longest, self.name_id[around], self.activity[around])


def _columns(
    busy_ns: Times,
    count: NDArray[np.int64],
    longest: NDArray[np.int64],
    name_id: NDArray[np.int32],
    activity: NDArray[np.int8],
) -> Columns:
    """`longest`: for each column an index into the last two, or -1."""
    found = longest >= 0
    names, activities = np.full(len(longest), -1, np.int64), np.full(len(longest), -1, np.int8)
    names[found], activities[found] = name_id[longest[found]], activity[longest[found]]
    return Columns(busy_ns, count, names, activities)


def _longest_within(starts: Times, ends: Times, edges: Times) -> NDArray[np.int64]:
    """For each column the index of the slice that takes most of it, or -1: of those that start in it, and the last
    one before it."""
    columns = len(edges) - 1
    longest, taken = np.full(columns, -1, np.int64), np.zeros(columns, np.int64)
    if not len(starts):
        return longest
    first = np.searchsorted(starts, edges)
    before = np.maximum(first[:-1] - 1, 0)
    reaching = np.where(first[:-1] > 0, np.minimum(ends[before], edges[1:]) - edges[:-1], 0)
    inside = np.flatnonzero(first[1:] > first[:-1])
    if len(inside):
        # Cut to its column, so that a long slice that begins at the right edge does not stand for all of it.
        bounds = slice(int(first[0]), int(first[-1]))
        column = np.repeat(np.arange(columns), np.diff(first))
        lengths = np.minimum(ends[bounds], edges[column + 1]) - starts[bounds]
        heads = first[inside] - first[0]
        taken[inside] = np.maximum.reduceat(lengths, heads)
        is_longest = np.flatnonzero(lengths == taken[column])
        longest[column[is_longest[::-1]]] = is_longest[::-1] + first[0]
    through = (reaching > 0) & (reaching >= taken)
    return np.where(through, before, longest)


@dataclass(frozen=True, eq=False)
class Bins:
    """A track summed up in `BIN_COUNT` equal parts of `[start_ns, end_ns)`, in parallel arrays."""

    start_ns: int
    end_ns: int
    busy_ns: Times
    count: NDArray[np.int64]
    name_id: NDArray[np.int32]
    activity: NDArray[np.int8]
    first: NDArray[np.int64]  # index of the first slice that reaches into the bin

    @classmethod
    def of(cls, slices: Slices, start_ns: int, end_ns: int) -> Bins:
        edges_ns = equal_parts(start_ns, end_ns, BIN_COUNT)
        columns = slices.columns(edges_ns)
        return cls(
            start_ns,
            end_ns,
            columns.busy_ns,
            columns.count,
            columns.name_id.astype(np.int32),
            columns.activity,
            slices.first_reaching(edges_ns[:-1]),
        )

    def suffice_for(self, edges_ns: Times) -> bool:
        columns = len(edges_ns) - 1
        column_ns = (int(edges_ns[-1]) - int(edges_ns[0])) / columns
        return column_ns * BIN_COUNT >= BINS_PER_COLUMN * (self.end_ns - self.start_ns)

    def slices_within(self, start_ns: int, end_ns: int) -> slice:
        """Where those that may touch `[start_ns, end_ns)` stand, but slices of no length where the last bin ends."""
        edges_ns = self._edges_ns
        first = min(max(int(np.searchsorted(edges_ns, start_ns, side="right")) - 1, 0), BIN_COUNT - 1)
        stop = min(int(np.searchsorted(edges_ns, end_ns, side="left")), BIN_COUNT)
        return slice(int(self.first[first]), int(_sums(self.count)[stop]))

    @cached_property
    def _edges_ns(self) -> Times:
        return equal_parts(self.start_ns, self.end_ns, BIN_COUNT)

    def columns(self, edges_ns: Times) -> Columns:
        """As `Slices.columns`, each bin counted to the column in which it starts."""
        bin_edges_ns = self._edges_ns
        at = np.searchsorted(bin_edges_ns[:-1], edges_ns)
        longest = _longest_within(bin_edges_ns[:-1], bin_edges_ns[:-1] + self.busy_ns, edges_ns)
        busy_ns = np.minimum(np.diff(_sums(self.busy_ns)[at]), np.diff(edges_ns))
        return _columns(busy_ns, np.diff(_sums(self.count)[at]), longest, self.name_id, self.activity)


@dataclass(frozen=True, eq=False)
class Samples:
    """A counter in parallel arrays, sorted by time: a value holds until the next one."""

    time_ns: Times
    value: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time_ns)

    def columns(self, edges_ns: Times) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Least and largest value that held in each column, `edges_ns` as for slices; NaN where none did."""
        first = np.maximum(np.searchsorted(self.time_ns, edges_ns[:-1], side="right") - 1, 0)
        stop = np.searchsorted(self.time_ns, edges_ns[1:], side="left")
        least, most = np.full(len(first), np.nan), np.full(len(first), np.nan)
        known = np.flatnonzero(stop > first)
        if len(known):
            pairs = np.column_stack((first[known], stop[known])).ravel()
            padded = np.append(self.value, self.value[-1])  # the last pair may end behind the last value
            least[known] = np.minimum.reduceat(padded, pairs)[::2]
            most[known] = np.maximum.reduceat(padded, pairs)[::2]
        return least, most


def equal_parts(start_ns: int, end_ns: int, count: int) -> Times:
    """Borders of `count` equal parts of `[start_ns, end_ns)`, rounded to whole nanoseconds: what `columns` takes.

    Times since 1970 are beyond the integers that a float64 holds: only distances are divided. Those of years are, too,
    so that the last border is set: what lies there must not be lost.
    """
    parts = np.arange(count + 1, dtype=np.float64) * ((end_ns - start_ns) / count)
    edges_ns = start_ns + np.rint(parts).astype(np.int64)
    edges_ns[-1] = end_ns
    return np.asarray(edges_ns)


def _sums(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(values)))


def merged(parts: Sequence[Slices]) -> Slices:
    """Slices of several tracks as those of one."""
    if len(parts) == 1:
        return parts[0]
    together = Slices(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Slices)))
    return together.select(np.argsort(together.start_ns, kind="stable"))
