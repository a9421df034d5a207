"""The roofline model: where a launch stands under the ceilings of its device, and what its time is bound by.

Whatever a launch does, bytes moved at a level of memory or operations of a precision, it does at a rate, and its device
sustains some ceiling of that rate. Rate over ceiling is the share of the launch's time that this alone would take at
full speed. All of it can go on at once, so that the largest share is what no launch with the same counts can be
faster than; the rest is headroom. A position is a pair of the two, work over traffic, as the picture shows it.

Sources: Williams, Waterman, Patterson 2009 (doi:10.1145/1498765.1498785); Yang, Kurth, Williams 2020
(doi:10.1002/cpe.5547) for levels and precisions; Ding, Williams 2019 (doi:10.1109/PMBS49563.2019.00007) for
instructions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from diag.model.ceilings import Ceiling
from diag.model.quantities import Measured

Side = Literal["memory", "compute"]
Bound = Literal["memory", "compute", "latency", "balanced"]

NEGLIGIBLE_SHARE = 0.01
"""Below this share of its peak, work is not what a kernel is about. Nsight Compute, rule SOLFPRoofline, calls less than
1 % of the peak close to none."""


LEAST_PER_S = 1.0
"""Less than one byte or operation per second is none: no point of the picture can stand over it."""


@dataclass(frozen=True)
class Rate:
    """How fast a launch did one thing, and how fast its device could have."""

    measured: Measured
    ceiling: Ceiling

    @property
    def per_s(self) -> float:
        return self.measured.value

    @property
    def share(self) -> float:
        """Of the ceiling; also the share of the launch's time that this alone takes at its ceiling."""
        return self.per_s / self.ceiling.per_s

    @property
    def name(self) -> str:
        return self.ceiling.name


@dataclass(frozen=True)
class Position:
    """A point of the picture: work of one precision, or instructions, over the traffic of one level. Both are not 0."""

    work: Rate
    traffic: Rate

    @property
    def work_unit(self) -> str:
        """'FLOP', 'OP' or 'inst'."""
        return self.work.ceiling.unit.removesuffix("/s")

    @property
    def intensity(self) -> float:
        """Work per byte of the level."""
        return self.work.per_s / self.traffic.per_s

    @property
    def ridge_point(self) -> float:
        """The intensity from which on the work's ceiling is lower than the level's. Unit as `intensity`."""
        return self.work.ceiling.per_s / self.traffic.ceiling.per_s

    @property
    def attainable_per_s(self) -> float:
        """min(peak, intensity x bandwidth): the roof above the point."""
        return min(self.work.ceiling.per_s, self.intensity * self.traffic.ceiling.per_s)

    @property
    def share(self) -> float:
        """Of what is attainable: 1 on the roof. It equals the larger share of the two rates."""
        return self.work.per_s / self.attainable_per_s

    @property
    def side(self) -> Side:
        """Which roof lies above the point: left of the ridge point that of the level."""
        return "memory" if self.intensity < self.ridge_point else "compute"


@dataclass(frozen=True)
class Limit:
    """Something whose full speed alone would take this share of the launch's time."""

    name: str
    side: Side
    share: float


@dataclass(frozen=True)
class Ladder:
    """Which share of its ceilings a launch must reach to be bound by them."""

    low: float  # below it on both sides, a launch waits
    even: float  # sides that differ by less are balanced
    slack: float  # by which counters of different passes may exceed a ceiling


@dataclass(frozen=True)
class Roofline:
    """What a launch did, each with its ceiling. `work` holds no zeros."""

    traffic: Sequence[Rate]
    work: Sequence[Rate]
    instructions: Rate | None = None
    units: Sequence[Limit] = ()  # how busy the profiler saw units that have no counter here
    uncounted: Sequence[str] = ()  # kinds of work that the report does not count
    others: Sequence[
        Ceiling
    ] = ()  # of work that was not done, or known from elsewhere: for comparison, never for a limit

    @property
    def rates(self) -> Sequence[Rate]:
        return [*self.traffic, *self.work, *([self.instructions] if self.instructions else [])]

    @property
    def limits(self) -> Sequence[Limit]:
        """One for each level, each pipeline with work, the issue of instructions, and `units`."""
        levels = [Limit(rate.name, "memory", rate.share) for rate in self.traffic]
        issue = [Limit(rate.name, "compute", rate.share) for rate in (self.instructions,) if rate]
        return [*levels, *pipelines(self.work), *issue, *self.units]

    @property
    def tightest(self) -> Limit:
        return max(self.limits, key=lambda limit: limit.share)

    @property
    def headroom(self) -> float:
        """1 - t_roof / t: at most this share of the time could be won with the same bytes and operations."""
        return max(0.0, 1 - self.tightest.share)

    @property
    def is_open(self) -> bool:
        """Whether a pipeline may be at its limit unseen: its work is not counted, nor how busy the SMs were."""
        return bool(self.uncounted) and not any(unit.side == "compute" for unit in self.units)

    @property
    def counts_instructions(self) -> bool:
        """Whether the launch belongs under the instruction roofline: it does next to no work of any precision."""
        executed = self.instructions.per_s if self.instructions else 0.0
        return executed >= LEAST_PER_S and all(rate.share < NEGLIGIBLE_SHARE for rate in self.work)

    @property
    def positions(self) -> Sequence[Position]:
        """Each kind of work over each level, the levels in order."""
        work = [self.instructions] if self.counts_instructions and self.instructions else self.work
        return [Position(done, rate) for done in work for rate in self.traffic if rate.per_s >= LEAST_PER_S]

    @property
    def main(self) -> Position | None:
        """The position that speaks for the launch: its largest work over the level nearest to its ceiling."""
        return max(self.positions, key=lambda at: (at.work.share, at.traffic.share), default=None)

    def above(self, slack: float) -> Sequence[Limit]:
        """Limits that are exceeded by more than `slack`: a counter or a ceiling is wrong, no verdict can be given."""
        return [limit for limit in self.limits if limit.share > 1 + slack]

    def bound(self, ladder: Ladder) -> Bound | None:
        """None where one side is not known or open, or a point lies above its roof."""
        memory, compute = (self._most(side) for side in ("memory", "compute"))
        if memory is None or compute is None or self.is_open or self.above(ladder.slack):
            return None
        if max(memory, compute) < ladder.low:
            return "latency"
        if abs(memory - compute) < ladder.even:
            return "balanced"
        return "memory" if memory > compute else "compute"

    def _most(self, side: str) -> float | None:
        return max((limit.share for limit in self.limits if limit.side == side), default=None)


def pipelines(work: Sequence[Rate]) -> Sequence[Limit]:
    """One limit for each pipeline: precisions that share one take turns, so that their times add up.

    The tensor cores are one pipeline for all types but FP64. Whatever else shares parts of an SM is counted apart, as
    if it could run at once: so a limit may be too low, and headroom too large, never the reverse.
    """
    pipes: defaultdict[str, list[Rate]] = defaultdict(list)
    for rate in work:
        pipes[_pipe(rate)].append(rate)
    return [
        Limit(" and ".join(rate.name for rate in rates), "compute", sum(rate.share for rate in rates))
        for rates in pipes.values()
    ]


def _pipe(rate: Rate) -> str:
    arithmetic = rate.ceiling.arithmetic
    shares = arithmetic is not None and arithmetic.is_tensor and arithmetic.input != "fp64"
    return "tensor cores" if shares else rate.name
