"""How a ceiling is sampled: what is measured takes turns, several times, and the best median is the ceiling.

Turns, because what disturbs a machine comes and goes: a disturbance then hits one visit of many trials, not all
visits of one. The median of a visit, because single times are noise. The best visit, because a ceiling is what was
*reached*: every disturbance makes it lower, none higher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, sqrt
from statistics import median
from typing import Protocol

from diag.model.ceilings import Arithmetic, Level


@dataclass(frozen=True)
class Trial:
    """One way to keep a machine busy. `work` of one call in bytes or operations, as the program counts them."""

    run: Callable[[], object]
    work: int
    formula: str  # of `work`, with its figures
    arithmetic: Arithmetic | None = None
    level: Level | None = None
    access: str | None = None
    working_set_bytes: int | None = None


@dataclass(frozen=True)
class Visit:
    """Times of calls, one after the other."""

    times_ns: Sequence[float]
    disturbed: int = 0  # calls that are left out, for a thread of them had to wait for a core
    is_shared: bool = False  # next to no call was left alone, so that all are here
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None


class Clock(Protocol):
    """Times calls on a device."""

    def visit(self, run: Callable[[], object], seconds: float) -> Visit:
        """Calls that take about so long together, after one that is not counted."""
        ...


@dataclass(frozen=True)
class Plan:
    """How long it takes: each trial is visited in each pass."""

    passes: int
    visit_s: float


@dataclass(frozen=True)
class Sampled:
    """A trial with all its visits."""

    trial: Trial
    visits: Sequence[Visit]

    @property
    def alone(self) -> Sequence[Visit]:
        """Visits that other programs did not spoil; all where they spoiled every one."""
        return [visit for visit in self.visits if not visit.is_shared] or self.visits

    @property
    def is_spoiled(self) -> bool:
        """Whether other programs were at every visit, so that the machine can do more than was seen."""
        return all(visit.is_shared for visit in self.visits)

    @property
    def best(self) -> Visit:
        return min(self.alone, key=lambda visit: median(visit.times_ns))

    @property
    def per_s(self) -> float:
        return 1e9 * self.trial.work / median(self.best.times_ns)

    @property
    def error_share(self) -> float:
        """The larger of two: half the 95 % interval of the best median, and what the next best visit falls short by."""
        low, high = median_interval(self.best.times_ns)
        best, *others = sorted(median(visit.times_ns) for visit in self.alone)
        return max((high - low) / (high + low), 1 - best / others[0] if others else 0.0)

    @property
    def repeats(self) -> int:
        return sum(len(visit.times_ns) for visit in self.visits)

    @property
    def disturbed(self) -> int:
        return sum(visit.disturbed for visit in self.visits)


def sampled(
    trials: Sequence[Trial], clock: Clock, plan: Plan, progress: Callable[[str], None] = lambda _: None
) -> Sequence[Sampled]:
    """Every trial, in turns."""
    visits: list[list[Visit]] = [[] for _ in trials]
    for number in range(plan.passes):
        for trial, of_trial in zip(trials, visits, strict=True):
            what = trial.level or (trial.arithmetic.name if trial.arithmetic else "")
            progress(f"pass {number + 1} of {plan.passes}: {what} {trial.access or ''}".rstrip())
            of_trial.append(clock.visit(trial.run, plan.visit_s))
    return [Sampled(trial, of_trial) for trial, of_trial in zip(trials, visits, strict=True)]


def percentile(times: Sequence[float], share: float) -> float:
    """The nearest that was measured.

    >>> percentile([4.0, 1.0, 3.0, 2.0], 0.95)
    4.0
    """
    return sorted(times)[round(share * (len(times) - 1))]


def median_interval(times: Sequence[float]) -> tuple[float, float]:
    """Between which times the median of all possible calls lies in 95 of 100 cases, whatever their distribution.

    By order statistics: ranks (n -+ 1.96 sqrt(n)) / 2, from Hoefler and Belli 2015 (doi:10.1145/2807591.2807644),
    section 3.1.3. Of five or fewer, it is all that was seen, which holds it less often.

    >>> median_interval(range(1, 101))
    (41, 60)
    """
    ordered = sorted(times)
    below = max(0, floor((len(times) - 1.96 * sqrt(len(times))) / 2))
    return ordered[below], ordered[len(times) - 1 - below]
