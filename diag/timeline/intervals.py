"""Sets of time: unions of half-open integer-nanosecond intervals `[start, end)`.

All shares and idle times of a report are measures of such sets, so that overlapping work is never counted twice.
Every operation is O(n log n) or better on sorted int64 arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Times = NDArray[np.int64]
Integers = NDArray[np.signedinteger[Any]]
"""Ids and codes of any width."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """A set of nanoseconds as sorted, disjoint, non-empty, non-touching intervals: `starts_ns[i] < ends_ns[i]`.

    Build one with `Intervals.union_of`; the constructor trusts its arguments.
    """

    starts_ns: Times
    ends_ns: Times

    @classmethod
    def empty(cls) -> Intervals:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def single(cls, start_ns: int, end_ns: int) -> Intervals:
        return cls.union_of([start_ns], [end_ns])

    @classmethod
    def union_of(cls, starts_ns: ArrayLike, ends_ns: ArrayLike) -> Intervals:
        """The union of any intervals, in any order; those with end <= start are empty and vanish."""
        starts = np.asarray(starts_ns, np.int64)
        ends = np.asarray(ends_ns, np.int64)
        real = ends > starts
        if not real.all():
            starts, ends = starts[real], ends[real]
        if not len(starts):
            return cls.empty()
        if (starts[1:] < starts[:-1]).any():
            order = np.argsort(starts, kind="stable")
            starts, ends = starts[order], ends[order]
        reach = np.maximum.accumulate(ends)
        first = np.concatenate(([True], starts[1:] > reach[:-1]))
        last = np.concatenate((first[1:], [True]))
        return cls(starts[first], reach[last])

    def __len__(self) -> int:
        return len(self.starts_ns)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts_ns.tolist(), self.ends_ns.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Intervals)
            and np.array_equal(self.starts_ns, other.starts_ns)
            and np.array_equal(self.ends_ns, other.ends_ns)
        )

    def __or__(self, other: Intervals) -> Intervals:
        return Intervals.union_of(
            np.concatenate((self.starts_ns, other.starts_ns)), np.concatenate((self.ends_ns, other.ends_ns))
        )

    def __and__(self, other: Intervals) -> Intervals:
        if not self or not other:
            return Intervals.empty()
        starts_ns, ends_ns, _ = self.pieces_within(other.starts_ns, other.ends_ns)
        return Intervals(starts_ns, ends_ns)

    def __sub__(self, other: Intervals) -> Intervals:
        if not self or not other:
            return self
        return self & other.gaps(int(self.starts_ns[0]), int(self.ends_ns[-1]))

    @property
    def lengths_ns(self) -> Times:
        return self.ends_ns - self.starts_ns

    @property
    def measure_ns(self) -> int:
        return int(self.lengths_ns.sum())

    @property
    def span(self) -> tuple[int, int]:
        """First start and last end; (0, 0) for the empty set."""
        return (int(self.starts_ns[0]), int(self.ends_ns[-1])) if self else (0, 0)

    def clip(self, start_ns: int, end_ns: int) -> Intervals:
        return self & Intervals.single(start_ns, end_ns)

    def gaps(self, start_ns: int, end_ns: int) -> Intervals:
        """What of `[start_ns, end_ns)` is not in the set."""
        edges = np.concatenate(([start_ns], self.ends_ns)), np.concatenate((self.starts_ns, [end_ns]))
        return Intervals.union_of(np.clip(edges[0], start_ns, end_ns), np.clip(edges[1], start_ns, end_ns))

    def no_shorter_than(self, length_ns: int) -> Intervals:
        """Those intervals of the set that last at least so long."""
        long = self.lengths_ns >= length_ns
        return Intervals(self.starts_ns[long], self.ends_ns[long])

    def contains(self, times_ns: ArrayLike) -> NDArray[np.bool_]:
        """For each time, whether it lies in the set."""
        times = np.asarray(times_ns, np.int64)
        at = np.searchsorted(self.starts_ns, times, side="right") - 1
        return (at >= 0) & (times < self.ends_ns[np.maximum(at, 0)]) if self else np.zeros(times.shape, bool)

    def measure_within(self, starts_ns: ArrayLike, ends_ns: ArrayLike) -> Times:
        """For each query `[start, end)`, how many of its nanoseconds lie in the set. Queries may overlap."""
        return np.asarray(self._measure_before(ends_ns) - self._measure_before(starts_ns), np.int64)

    def pieces_within(self, starts_ns: Times, ends_ns: Times) -> tuple[Times, Times, NDArray[np.intp]]:
        """The set cut up by the queries: starts and ends of every non-empty piece and the query that it lies in.

        Queries must be sorted by start; they may touch but not overlap.
        """
        first = np.searchsorted(self.ends_ns, starts_ns, side="right")
        stop = np.searchsorted(self.starts_ns, ends_ns, side="left")
        counts = np.maximum(stop - first, 0)
        query = np.repeat(np.arange(len(counts)), counts)
        member = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        return (
            np.maximum(self.starts_ns[member], starts_ns[query]),
            np.minimum(self.ends_ns[member], ends_ns[query]),
            query,
        )

    def _measure_before(self, times_ns: ArrayLike) -> Times:
        times = np.asarray(times_ns, np.int64)
        if not self:
            return np.zeros(times.shape, np.int64)
        at = np.searchsorted(self.starts_ns, times, side="right")
        total_before = np.concatenate(([0], np.cumsum(self.lengths_ns)))
        last = np.maximum(at - 1, 0)
        overshoot = np.where(at > 0, np.maximum(self.ends_ns[last] - times, 0), 0)
        return np.asarray(total_before[at] - overshoot, np.int64)


def covered_once(starts_ns: Times, ends_ns: Times) -> Intervals:
    """The set of nanoseconds that lie in exactly one of the intervals."""
    union = Intervals.union_of(starts_ns, ends_ns)
    if union.measure_ns == int((ends_ns - starts_ns).sum()):  # nothing overlaps: the usual case, and no need to sort
        return union
    times = np.concatenate((starts_ns, ends_ns))
    order = np.argsort(times, kind="stable")
    depth = np.cumsum(np.repeat([1, -1], len(starts_ns))[order])
    alone = depth[:-1] == 1
    return Intervals.union_of(times[order][:-1][alone], times[order][1:][alone])


def union_of_all(parts: Iterable[Intervals]) -> Intervals:
    parts = [Intervals.empty(), *parts]
    return Intervals.union_of(
        np.concatenate([part.starts_ns for part in parts]), np.concatenate([part.ends_ns for part in parts])
    )


def measure_by_label(starts_ns: Times, ends_ns: Times, labels: Integers) -> dict[int, int]:
    """Union measure of the intervals of each label. All labels are measured in one sort."""
    order = np.lexsort((starts_ns, labels))
    starts, ends, groups = starts_ns[order], ends_ns[order], labels[order]
    if not len(starts):
        return {}
    new_group = np.concatenate(([True], groups[1:] != groups[:-1]))
    group_index = np.cumsum(new_group) - 1
    # Shift each group behind the one before it, so that one running maximum serves all of them.
    low = int(starts.min())
    shift = group_index * (int(ends.max()) - low + 1) - low
    union = Intervals.union_of(starts + shift, ends + shift)
    firsts = np.flatnonzero(new_group)
    bounds_ns = shift[firsts] + low
    sizes = union.measure_within(bounds_ns, np.append(bounds_ns[1:], np.iinfo(np.int64).max))
    return dict(zip(groups[firsts].tolist(), sizes.tolist(), strict=True))
