"""Of each collective: what it took, who waited for whom, and for how long.

The *latency* of an instance is the shortest of its durations over the ranks: the rank that came last did not wait, so
what it saw is the work itself. What another rank took beyond that, it waited. Latency and waiting compare durations,
for which clocks need not agree. Who came *last* compares starts on the common axis, and is told only where the last
start is behind the others' median by more than the clocks' errors.

When not all ranks of a group were recorded, the last one may not be among them: latency is then an upper bound and
waiting a lower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.ranks.clocks import Clocks
from diag.ranks.matching import Matched, Matches
from diag.ranks.summary import BEFORE, RankSummary
from diag.timeline.intervals import Intervals, Times

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The instances of one group. Matrices are members × instances, as in `matched`."""

    matched: Matched
    start_ns: Values  # on the axis; NaN where a clock is not known
    error_ns: Values  # of each member's clock

    @cached_property
    def latency_ns(self) -> Times:
        """Of each instance."""
        return np.asarray(self.matched.duration_ns.min(axis=0))

    @cached_property
    def waiting_ns(self) -> Times:
        return np.asarray(np.where(self.matched.synchronises, self.matched.duration_ns - self.latency_ns, 0))

    @cached_property
    def last(self) -> Index:
        """Which member started last, of each instance."""
        return np.asarray(np.argmax(np.nan_to_num(self.start_ns, nan=-np.inf), axis=0))

    @cached_property
    def usual_ns(self) -> Values:
        """Of each instance, the median start of all members but the last, on the axis."""
        others = self.start_ns.copy()
        np.put_along_axis(others, self.last[None, :], np.nan, axis=0)
        ordered = np.sort(others, axis=0)[:-1]  # NaN is sorted to the end
        n = len(ordered)
        return np.asarray((ordered[(n - 1) // 2] + ordered[n // 2]) / 2)

    @cached_property
    def late_by_ns(self) -> Values:
        """Of each instance: the last start less the median of the others."""
        return self._last_start_ns - self.usual_ns

    @cached_property
    def ahead_of_last_ns(self) -> Values:
        """Of each instance: the last start less the one before it. What would be won if that rank alone were in
        time."""
        if len(self.matched.members) < 2:
            return np.zeros(self.matched.n_instances)
        return np.asarray(self._last_start_ns - np.sort(self.start_ns, axis=0)[-2])

    @property
    def _last_start_ns(self) -> Values:
        return np.asarray(np.take_along_axis(self.start_ns, self.last[None, :], axis=0)[0])

    @cached_property
    def is_told(self) -> Mask:
        """Of each instance, whether it is known who came last: of those that synchronise, beyond the clocks' errors."""
        error_ns = self.error_ns[self.last] + np.median(self.error_ns)
        return np.asarray(self.matched.synchronises & (self.late_by_ns > error_ns))

    def last_ranks(self) -> Index:
        """`last`, as indices of summaries."""
        return self.matched.members[self.last]

    def excess_before(self, summaries: Sequence[RankSummary], chosen: Mask) -> dict[str, float]:
        """Of the chosen instances, what the last rank did before each beyond the median of the others (ns, summed), by
        what it was (BEFORE).
        """
        at = np.flatnonzero(chosen)
        call, last = self.matched.call[:, at], self.last[at]
        found = {}
        for part in BEFORE:
            rows = enumerate(self.matched.members.tolist())
            values = np.stack([summaries[member].before.of(part)[call[row]] for row, member in rows]).astype(np.float64)
            own = np.take_along_axis(values, last[None, :], axis=0)[0]
            np.put_along_axis(values, last[None, :], np.nan, axis=0)
            found[part] = float((own - np.nanmedian(values, axis=0)).sum()) if len(at) else 0.0
        return found


def arrivals_of(matches: Matches, clocks: Clocks) -> list[Arrivals]:
    found = []
    for group in matches.groups:
        known = clocks.is_known[group.members]
        start_ns = clocks.on_axis(group.members, group.start_ns)
        start_ns[~known] = np.nan
        if not known.all():  # who came last of some says nothing of all
            start_ns[:] = np.nan
        found.append(Arrivals(group, start_ns, clocks.error_ns[group.members]))
    return found


def waiting_of(rank: int, arrivals: Sequence[Arrivals]) -> Intervals:
    """When a rank waited in collectives, on its own clock: it does so first, and then the work is done."""
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for each in arrivals:
        for row in np.flatnonzero(each.matched.members == rank).tolist():
            starts.append(each.matched.start_ns[row])
            ends.append(each.matched.start_ns[row] + each.waiting_ns[row])
    return Intervals.union_of(np.concatenate(starts), np.concatenate(ends))
