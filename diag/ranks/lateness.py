"""Who was late, over all collectives of a job: how often, by how much, in which phase of a step, on which host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diag.ranks.arrivals import Arrivals
from diag.ranks.clocks import Clocks
from diag.ranks.side_by_side import SideBySide
from diag.ranks.summary import BEFORE, NONE, OPS, RankSummary
from diag.timeline.intervals import Intervals

Values = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Lateness:
    """Instances whose last rank is told, in parallel arrays; times are on the axis."""

    rank: Index  # that came last, as an index of summaries
    group: Index  # index of arrivals
    instance: Index
    call: Index  # of that rank
    usual_ns: Values  # median start of the others
    second_ns: Values  # start of the last but one
    last_ns: Values
    n_synchronising: int  # instances that could have told it

    def __len__(self) -> int:
        return len(self.rank)

    def select(self, chosen: NDArray[np.bool_]) -> Lateness:
        columns = {
            each.name: getattr(self, each.name)[chosen] for each in fields(self) if each.name != "n_synchronising"
        }
        return replace(self, **columns)

    @property
    def late_by_ns(self) -> Values:
        return self.last_ns - self.usual_ns

    def counts(self, n_ranks: int) -> NDArray[np.int64]:
        """In how many of them each rank came last."""
        return np.bincount(self.rank, minlength=n_ranks)


def lateness_of(arrivals: Sequence[Arrivals]) -> Lateness:
    columns: list[list[NDArray[Any]]] = [[np.empty(0, np.intp)] for _ in range(7)]
    for number, each in enumerate(arrivals):
        at = np.flatnonzero(each.is_told)
        last = each.last[at]
        last_ns = each.usual_ns[at] + each.late_by_ns[at]
        row = (
            each.last_ranks()[at],
            np.full(len(at), number),
            at,
            each.matched.call[last, at],
            each.usual_ns[at],
            last_ns - each.ahead_of_last_ns[at],
            last_ns,
        )
        for column, values in zip(columns, row, strict=True):
            column.append(values)
    n_synchronising = sum(int(each.matched.synchronises.sum()) for each in arrivals)
    rank, group, instance, call, usual_ns, second_ns, last_ns = (np.concatenate(column) for column in columns)
    return Lateness(rank, group, instance, call, usual_ns, second_ns, last_ns, n_synchronising)


def is_beyond_chance(count: int, of: int, chance: float, sigmas: float) -> bool:
    """Whether `count` of `of` is more than a share of `chance` gives, by so many standard deviations (binomial)."""
    return count - of * chance > sigmas * math.sqrt(of * chance * (1 - chance))


def excess_before(side: SideBySide, late: Lateness, ranks: Index) -> dict[str, float]:
    """What these ranks did, before the collectives in which they came last, beyond the median of the others (ns,
    summed)."""
    total = dict.fromkeys(BEFORE, 0.0)
    is_of = np.isin(late.rank, ranks)
    for number, each in enumerate(side.arrivals):
        chosen = np.zeros(each.matched.n_instances, bool)
        chosen[late.instance[is_of & (late.group == number)]] = True
        for part, ns in each.excess_before(side.summaries, chosen).items():
            total[part] += ns
    return total


def on_clock(clocks: Clocks, rank: int, starts_ns: Values, ends_ns: Values) -> Intervals:
    """Stretches of the axis as the rank's own clock shows them."""
    return Intervals.union_of(clocks.from_axis(rank, starts_ns), clocks.from_axis(rank, ends_ns))


def phases(side: SideBySide, late: Lateness) -> dict[tuple[int, str, int], float]:
    """How much of the lateness (ns) falls on each place in a step: (group, operation, place among the step's calls).

    Of ranks without steps the place is NONE.
    """
    places = [_places(summary) for summary in side.summaries]
    found: dict[tuple[int, str, int], float] = {}
    for rank, group, instance, call, ns in zip(
        late.rank.tolist(), late.group.tolist(), late.instance.tolist(), late.call.tolist(), late.late_by_ns.tolist(),
        strict=True,
    ):  # fmt: skip
        key = (group, OPS[side.arrivals[group].matched.op[instance]], int(places[rank][call]))
        found[key] = found.get(key, 0.0) + ns
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _places(summary: RankSummary) -> NDArray[np.int64]:
    """Of each call its place among those that began in the same step, from 0."""
    starts = summary.calls.start_ns
    step = np.searchsorted(summary.steps.start_ns, starts, side="right") - 1
    first = np.searchsorted(starts, summary.steps.start_ns)
    inside = step >= 0
    return np.where(inside, np.arange(len(starts)) - np.append(first, 0)[step], NONE)
