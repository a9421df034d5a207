"""How far the clocks of ranks are apart, told by the ends of collectives that they carried out together.

An all-reduce, all-gather, reduce-scatter, all-to-all or barrier ends on no rank before all have begun it, and then on
all of them nearly together: `least_squares` finds the shifts and drifts under which these ends meet. The clock of the
lowest rank is the axis.

The error bar of a clock is twice the robust standard deviation of its ends plus half a tick. It does not shrink with
the number of instances: that ends come truly together is an assumption that no number of them can check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.ranks.least_squares import ClockFit, CommonEnds, fit_common_ends
from diag.ranks.matching import Matched, Matches
from diag.ranks.summary import RankCalls
from diag.timeline.intervals import Times

Values = NDArray[np.float64]
Index = NDArray[np.intp]

FEWEST_INSTANCES = 8
"""Of common ends that tell a shift: the deviation of fewer is no measure of anything."""

FEWEST_FOR_DRIFT = 16

SIGNIFICANT = 3.0
"""A drift is told when it is so many of its standard errors; drifts are fitted when that of any clock is."""

MOST_IMPOSSIBLE = 0.05
"""From this share on of instances that end somewhere before they begin elsewhere, calls were matched that are not
one."""

NOTHING_COMMON = "no two ranks recorded a collective that ends on all of them together"
TOO_FEW = "too few collectives that end together: {n} ({m} are needed)"
IMPOSSIBLE = (
    "calls that were taken for one do not belong together: {n} of {m} would end on a rank before another begins"
)


@dataclass(frozen=True, eq=False)
class Clocks:
    """The clocks of some ranks, parallel to their summaries."""

    reference: int | None  # the summary whose clock is the axis; None: no clocks could be compared
    pivot_ns: Times  # on each rank's own clock: where its shift is exact
    shift_ns: Values  # of that moment on the axis, from the reference's pivot on
    slope: Values  # to be added to 1: ns on the axis for each ns of the rank's clock
    slope_error: Values  # one standard error
    error_ns: Values  # NaN where a clock is not known against the reference's
    why_not: str | None = None  # no clocks could be compared

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        return np.isfinite(self.error_ns)

    def on_axis(self, ranks: Index, times_ns: Times) -> Values:
        """Times on the clocks of these ranks, a row for each, as ns on the axis from the reference's pivot on."""
        own = (times_ns - self.pivot_ns[ranks][:, None]).astype(np.float64)
        return np.asarray(own * (1 + self.slope[ranks])[:, None] + self.shift_ns[ranks][:, None])

    def from_axis(self, rank: int, times_ns: Values) -> Times:
        """Times on the axis as a rank's own clock shows them."""
        own = (times_ns - self.shift_ns[rank]) / (1 + self.slope[rank])
        return np.asarray(np.rint(own).astype(np.int64) + self.pivot_ns[rank])

    def drift(self, rank: int) -> float | None:
        """Seconds that a clock gains in a second against the reference's; None where that cannot be told from none."""
        slope = float(self.slope[rank])
        return -slope if abs(slope) > SIGNIFICANT * self.slope_error[rank] else None


def fit_clocks(summaries: Sequence[RankCalls], matches: Matches) -> Clocks:
    """The clocks of the largest set of ranks that collectives connect; the others stay unknown.

    Ranks that one source recorded have one clock.
    """
    matched = [group for group in matches.groups if group.synchronises.any()]
    if not matched:
        return _unknown(len(summaries), NOTHING_COMMON)
    clock = _clocks_of(summaries)
    chosen = _largest_connected(clock, matched)
    matched = [group for group in matched if clock[group.members[0]] in chosen]
    n_ends = sum(
        (np.bincount(clock[group.members], minlength=len(summaries)) > 0) * _n_ends(group) for group in matched
    )
    fewest = int(np.asarray(n_ends)[chosen].min())
    if fewest < FEWEST_INSTANCES:
        return _unknown(len(summaries), TOO_FEW.format(n=fewest, m=FEWEST_INSTANCES))
    pivot_ns = _pivots(clock, matched)
    place = np.full(int(clock.max()) + 1, -1)
    place[chosen] = np.arange(len(chosen))
    ends = [_common_ends(group, place[clock[group.members]], pivot_ns[group.members]) for group in matched]
    found = _fit(ends, len(chosen), with_slope=fewest >= FEWEST_FOR_DRIFT) if len(chosen) > 1 else _ONE_CLOCK
    is_known, at = place[clock] >= 0, np.maximum(place[clock], 0)
    half_tick_ns = np.array([summary.tick_ns / 2 for summary in summaries])
    clocks = Clocks(
        reference=int(np.flatnonzero(is_known & (at == 0))[0]),
        pivot_ns=pivot_ns,
        shift_ns=np.where(is_known, found.shift_ns[at], 0.0),
        slope=np.where(is_known, found.slope[at], 0.0),
        slope_error=np.where(is_known, found.slope_error[at], 0.0),
        error_ns=np.where(is_known, 2 * found.sigma_ns[at] + half_tick_ns, np.nan),
    )
    n_impossible, n_all = _impossible(clocks, matched)
    if n_impossible > MOST_IMPOSSIBLE * n_all:
        return _unknown(len(summaries), IMPOSSIBLE.format(n=n_impossible, m=n_all))
    return clocks


def _clocks_of(summaries: Sequence[RankCalls]) -> Index:
    """A number for the clock of each, in the order of the ranks."""
    numbers = {source: at for at, source in enumerate(dict.fromkeys(summary.source for summary in summaries))}
    return np.array([numbers[summary.source] for summary in summaries], np.intp)


def _unknown(n_ranks: int, why: str) -> Clocks:
    nothing = np.zeros(n_ranks)
    return Clocks(None, np.zeros(n_ranks, np.int64), nothing, nothing, nothing, np.full(n_ranks, np.nan), why)


_ONE_CLOCK = ClockFit(*(np.zeros(1),) * 4)


def _fit(ends: Sequence[CommonEnds], n_clocks: int, *, with_slope: bool) -> ClockFit:
    """With drifts only where at least one can be told from none: they cost certainty about the shifts."""
    if with_slope:
        found = fit_common_ends(ends, n_clocks, with_slope=True)
        if (np.abs(found.slope) > SIGNIFICANT * found.slope_error)[1:].any():
            return found
    return fit_common_ends(ends, n_clocks, with_slope=False)


def _n_ends(group: Matched) -> int:
    return int(group.synchronises.sum())


def _common_ends(group: Matched, clock: Index, pivot_ns: Times) -> CommonEnds:
    return CommonEnds(clock, (group.end_ns[:, group.synchronises] - pivot_ns[:, None]).astype(np.float64))


def _pivots(clock: Index, matched: Sequence[Matched]) -> Times:
    """The middle of each clock's ends, for every rank that has it."""
    ends: dict[int, list[Times]] = {}
    for group in matched:
        for member, row in zip(group.members.tolist(), group.end_ns, strict=True):
            ends.setdefault(int(clock[member]), []).append(row)
    middle = {
        of: int(np.partition(all_ := np.concatenate(rows), len(all_) // 2)[len(all_) // 2]) for of, rows in ends.items()
    }
    return np.array([middle.get(of, 0) for of in clock.tolist()], np.int64)


def _largest_connected(clock: Index, matched: Sequence[Matched]) -> Index:
    """The clocks of the largest set that groups connect, of several as large that of the lowest rank."""
    parent = list(range(int(clock.max()) + 1))

    def root(of: int) -> int:
        while parent[of] != of:
            parent[of] = of = parent[parent[of]]
        return of

    for group in matched:
        first, *others = clock[group.members].tolist()
        for other in others:
            low, high = sorted((root(first), root(other)))
            parent[high] = low
    roots = np.array([root(of) for of in range(len(parent))])
    sizes = np.bincount(roots)
    return np.flatnonzero(roots == int(np.argmax(sizes)))


def _impossible(clocks: Clocks, matched: Sequence[Matched]) -> tuple[int, int]:
    """Instances that end on some rank before they begin on another, by more than the errors; and all instances."""
    n_impossible = n_all = 0
    for group in matched:
        sync = group.synchronises
        first_end = clocks.on_axis(group.members, group.end_ns[:, sync]).min(axis=0)
        last_start = clocks.on_axis(group.members, group.start_ns[:, sync]).max(axis=0)
        error_ns = 2 * clocks.error_ns[group.members].max()
        n_impossible += int((last_start > first_end + error_ns).sum())
        n_all += int(sync.sum())
    return n_impossible, n_all
