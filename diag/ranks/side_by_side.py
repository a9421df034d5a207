"""The ranks of one job side by side: what crosses them, worked out of their summaries alone, each thing once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from diag.ranks.arrivals import Arrivals, arrivals_of, waiting_of
from diag.ranks.clocks import Clocks, fit_clocks
from diag.ranks.matching import Matches, match
from diag.ranks.summary import RankCalls, RankSummary
from diag.timeline.intervals import Intervals

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Ranks in their order. Each has another number; what says a number that another source has is left out."""

    summaries: Sequence[RankSummary]
    repeated: Sequence[RankSummary] = ()  # of a rank that a source before them has
    unnumbered: Sequence[RankSummary] = ()  # nothing says which rank they are

    @cached_property
    def matches(self) -> Matches:
        return match(self.summaries)

    @cached_property
    def clocks(self) -> Clocks:
        return fit_clocks(self.summaries, self.matches)

    @cached_property
    def arrivals(self) -> Sequence[Arrivals]:
        return arrivals_of(self.matches, self.clocks)

    @property
    def is_job(self) -> bool:
        """Whether there is anything to set side by side."""
        return len(self.summaries) + len(self.repeated) > 1

    @cached_property
    def world_size(self) -> int | None:
        """Ranks of the whole job, as the sources say it."""
        return max((summary.world_size for summary in self.summaries if summary.world_size), default=None)

    @cached_property
    def waiting(self) -> Sequence[Intervals]:
        """Of each rank, when it waited in collectives, on its own clock."""
        return [waiting_of(rank, self.arrivals) for rank in range(len(self.summaries))]

    @cached_property
    def n_steps(self) -> int:
        """That all ranks have; steps are known by their place."""
        return min((len(summary.steps) for summary in self.summaries), default=0)

    def steps(self, what: str) -> Values:
        """A column of `StepTimes`, or its `duration_ns`, as a matrix of ranks × shared steps."""
        rows = [getattr(summary.steps, what)[: self.n_steps] for summary in self.summaries]
        return np.array(rows, np.float64).reshape(len(rows), self.n_steps)

    def span_ns(self, rank: int) -> tuple[int, int]:
        """The part of a rank's record that is judged: its steps, else from its first collective to its last, else all
        of it; on its own clock.
        """
        summary = self.summaries[rank]
        if len(summary.steps):
            return int(summary.steps.start_ns[0]), int(summary.steps.end_ns[-1])
        if len(summary.calls):
            return int(summary.calls.start_ns[0]), int(summary.calls.end_ns.max())
        return summary.span_ns


Calls = TypeVar("Calls", bound=RankCalls)


def numbered(ranks: Iterable[Calls]) -> tuple[list[Calls], list[Calls]]:
    """Those that say which rank they are, each once and in that order, and those whose rank another source has."""
    first: dict[int | None, Calls] = {}
    ordered = sorted((r for r in ranks if r.rank is not None), key=lambda r: (r.rank or 0, r.source, r.pid))
    repeated = [each for each in ordered if first.setdefault(each.rank, each) is not each]
    return list(first.values()), repeated


def side_by_side(summaries: Sequence[RankSummary]) -> SideBySide:
    """Of several that claim one rank, the first by source stands for it."""
    ranks, repeated = numbered(summaries)
    return SideBySide(ranks, repeated, [summary for summary in summaries if summary.rank is None])
