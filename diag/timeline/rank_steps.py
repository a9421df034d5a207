"""Ranks of one job side by side: how long each took for each step, and what of that its devices were idle or waiting.

Clocks are not asked: a step is known by its place in the order, and a rank is late when its step is long. Who comes
last in collectives, on one axis of all clocks, is found in `diag/ranks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.timeline.intervals import Intervals, union_of_all
from diag.timeline.joined import traces_of
from diag.timeline.steps import find_steps
from diag.timeline.trace import Trace

Values = NDArray[np.float64]

FEWEST_STEPS = 2
LEAST_COVER = 0.5
"""Of steps to be shown side by side; what a rule claims of steps wants more of them."""


@dataclass(frozen=True, eq=False)
class RankSteps:
    """One rank. All columns are parallel to its steps, in ns."""

    source: int
    rank: int | None  # as the file says it
    label: str
    pattern: str | None  # of the steps; None where none were found
    start_ns: NDArray[np.int64]
    duration_ns: Values
    idle_ns: Values  # of its devices together: nothing of the rank ran on any
    communication_ns: Values  # union over its devices

    def __len__(self) -> int:
        return len(self.duration_ns)


@dataclass(frozen=True, eq=False)
class RankTable:
    """The ranks in their order, with the steps that all of them have."""

    ranks: Sequence[RankSteps]

    @cached_property
    def steps(self) -> int:
        return min((len(rank) for rank in self.ranks), default=0)

    def values(self, what: str) -> Values:
        """'duration_ns', 'idle_ns' or 'communication_ns' as a matrix of ranks × steps."""
        return np.array([getattr(rank, what)[: self.steps] for rank in self.ranks]).reshape(len(self.ranks), self.steps)

    def beyond_usual(self, what: str) -> Values:
        """For each rank and step what it took beyond the median of all ranks in that step."""
        values = self.values(what)
        return np.asarray(values - np.median(values, axis=0)) if values.size else values

    @cached_property
    def skew_ns(self) -> Values:
        """Of each step the longest less the shortest: what the fastest rank waits for where all meet at its end."""
        durations = self.values("duration_ns")
        return np.asarray(durations.max(axis=0) - durations.min(axis=0)) if durations.size else np.empty(0)

    @property
    def slowest(self) -> NDArray[np.int64]:
        """For each rank in how many of the shared steps it took longer than every other."""
        durations = self.values("duration_ns")
        is_longest = durations == durations.max(axis=0, initial=0)
        return np.asarray((is_longest & (is_longest.sum(axis=0) == 1)).sum(axis=1))


def ranks_of(case: Case) -> RankTable:
    """The ranks of a case as views show them."""
    return rank_table(traces_of(case), fewest=FEWEST_STEPS, least_cover=LEAST_COVER)


def rank_table(traces: Sequence[Trace], *, fewest: float, least_cover: float) -> RankTable:
    """The ranks of several traces; `fewest` and `least_cover` are those of `find_steps`.

    Of steps called alike everywhere only those count; a rank whose steps have another name keeps them.
    """
    ranks = [_steps_of(trace, fewest, least_cover) for trace in traces]
    return RankTable(sorted(ranks, key=lambda rank: (rank.rank is None, rank.rank or 0, rank.source)))


def _steps_of(trace: Trace, fewest: float, least_cover: float) -> RankSteps:
    source = trace.source
    label = f"source {source.id}" if source.rank is None else f"rank {source.rank}"
    rank = RankSteps(source.id, source.rank, label, None, *(np.empty(0, np.int64),), *(np.empty(0),) * 3)
    if trace.main_thread is None:
        return rank
    steps = find_steps(trace.threads[trace.main_thread], fewest=fewest, least_cover=least_cover)
    if steps is None:
        return rank
    busy = union_of_all(device.busy for device in trace.devices)
    talk = union_of_all(device.communication_time for device in trace.devices)
    durations = steps.duration_ns.astype(np.float64)

    def inside(when: Intervals) -> Values:
        return when.measure_within(steps.start_ns, steps.end_ns).astype(np.float64)

    return replace(
        rank,
        pattern=steps.pattern,
        start_ns=steps.start_ns,
        duration_ns=durations,
        idle_ns=durations - inside(busy) if trace.devices else np.full(len(steps), np.nan),
        communication_ns=inside(talk) if trace.devices else np.full(len(steps), np.nan),
    )
