"""How fast the collectives of a job are: one row for each operation of a group, and the line through its sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.model.collective import Primitive, bus_factor
from diag.model.collective_fit import Fit, NoFit, fit
from diag.ranks.arrivals import Arrivals
from diag.ranks.matching import match
from diag.ranks.side_by_side import SideBySide
from diag.ranks.summary import OPS, RankSummary

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rates:
    """The instances of one operation in one group. `at` are their places in the group's arrivals."""

    arrivals: Arrivals
    op: str
    at: NDArray[np.intp]

    @cached_property
    def latency_ns(self) -> Values:
        return self.arrivals.latency_ns[self.at].astype(np.float64)

    @cached_property
    def size_bytes(self) -> Values:
        """M; NaN where it is not known."""
        size = self.arrivals.matched.size_bytes[self.at].astype(np.float64)
        return np.where(size >= 0, size, np.nan)

    @property
    def factor(self) -> float | None:
        """k of the operation; None of a barrier."""
        is_known = self.op in set(Primitive)
        return bus_factor(Primitive(self.op), self.arrivals.matched.n_ranks) if is_known else None

    @cached_property
    def moved_bytes(self) -> Values:
        """k·M."""
        return self.size_bytes * (np.nan if self.factor is None else self.factor)

    @property
    def bus_bytes_per_s(self) -> Values:
        """Of each instance, k·M / latency; NaN where it is not known."""
        return np.asarray(self.moved_bytes * 1e9 / np.where(self.latency_ns > 0, self.latency_ns, np.nan))

    @cached_property
    def line(self) -> Fit | NoFit:
        """α and B of the instances that move anything."""
        chosen = (self.moved_bytes > 0) & (self.latency_ns > 0)
        return fit(self.moved_bytes[chosen].tolist(), self.latency_ns[chosen].tolist())


def rates_of(arrivals: Sequence[Arrivals]) -> list[Rates]:
    return [
        Rates(each, OPS[op], np.flatnonzero(each.matched.op == op))
        for each in arrivals
        for op in np.unique(each.matched.op).tolist()
    ]


def rates_of_one(summary: RankSummary) -> list[Rates]:
    """Of a rank whose peers left nothing: its latencies hold what it waited for them, and are upper bounds."""
    groups = match([summary], fewest_members=1).groups
    return rates_of([Arrivals(each, each.start_ns.astype(np.float64), np.zeros(1)) for each in groups])


def backend_of(side: SideBySide) -> str:
    """What its collectives went over: Gloo where no rank has work on a device."""
    return "nccl" if any(summary.has_device for summary in side.summaries) else "gloo"
