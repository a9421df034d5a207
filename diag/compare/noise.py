"""Whether a figure changed by more than chance makes it change: the statistics of a comparison.

What repeats inside one recording (launches, steps) is many, skewed and full of ties: ranks decide. Repeated runs are
few, and each is a mean of much: Student's t decides. Both answer with a `Shift`; None is *noise unknown*. Method and
sources: docs/compare.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from diag.model.student_t import t_inside, t_within

Values = NDArray[np.float64]

ERROR = 0.05
"""Chance of calling noise a change: of one figure, and the expected part of a table's changes that are none."""

RUN_TO_RUN = 0.02
"""What two recordings of one program may differ by, in proportion, where none was repeated. Inside of one recording
this does not show: clocks, memory layout and neighbours change between runs. As the margin of `report --baseline`; own
choice.
"""

LEVEL = 0.95
"""Of intervals."""

FEWEST_REPEATS = 3
"""Launches or steps of each side: of fewer not even complete separation would tell anything."""

MOST_COMPARED = 256
"""Values of each side whose differences are all taken; of more, so many evenly spaced quantiles stand for them."""


@dataclass(frozen=True)
class Shift:
    """By how much the values of one side exceed those of the other."""

    ns: float
    low_ns: float  # of the interval that holds it with the probability LEVEL
    high_ns: float
    p_longer: float  # chance of seeing this if the figure had not grown by more than the margin
    p_shorter: float  # likewise, not shrunk
    n_before: int
    n_after: int

    @property
    def p(self) -> float:
        """Of a change in either direction."""
        return min(1.0, 2 * min(self.p_longer, self.p_shorter))


def of_repeats(before: Values, after: Values, margin_ns: float) -> Shift | None:
    """The shift between repeats within one recording of each side: Hodges and Lehmann's median of all differences.

    The probabilities are Mann and Whitney's, of one side moved towards the other by `margin_ns`, with the correction
    for ties and for continuity; the interval is Moses'. None with fewer than FEWEST_REPEATS on a side.
    """
    n, m = len(before), len(after)
    if min(n, m) < FEWEST_REPEATS:
        return None
    differences = np.sort(np.subtract.outer(_thinned(after), _thinned(before)).ravel())
    below = 0.5 - _normal(LEVEL) * math.sqrt((n + m + 1) / (12 * n * m))  # part of the differences left out at each end
    last = len(differences) - 1
    low = min(max(math.floor(below * len(differences)), 0), last // 2)
    return Shift(
        ns=float(np.median(differences)),
        low_ns=float(differences[low]),
        high_ns=float(differences[last - low]),
        p_longer=_p_larger(before + margin_ns, after),
        p_shorter=_p_larger(after + margin_ns, before),
        n_before=n,
        n_after=m,
    )


def of_runs(before: Sequence[float], after: Sequence[float], margin_ns: float) -> Shift | None:
    """The difference between the means of several runs, a value for each, by Welch's t.

    Where one side has a single run, the spread of the other stands for both. None where neither repeats.
    """
    n, m = len(before), len(after)
    if min(n, m) == 0 or max(n, m) == 1:
        return None
    shift_ns = float(np.mean(after) - np.mean(before))
    squares = [float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else None for values in (before, after)]
    error_ns, freedom = _welch(squares, n, m)
    half_ns = t_within(LEVEL, freedom) * error_ns
    return Shift(
        ns=shift_ns,
        low_ns=shift_ns - half_ns,
        high_ns=shift_ns + half_ns,
        p_longer=_p_of_t(shift_ns - margin_ns, error_ns, freedom),
        p_shorter=_p_of_t(-shift_ns - margin_ns, error_ns, freedom),
        n_before=n,
        n_after=m,
    )


def of_sums(before: Sequence[Values], after: Sequence[Values], margin_ns: float) -> Shift | None:
    """The difference between two sums of many kinds of repeats, as of all kernels: their variances add up.

    A kind that comes once varies as those that repeat do, in proportion; None where these are less than half of a sum.
    """
    if not before or not after:
        return None
    variances = [_variance_of_sum(values) for values in (before, after)]
    if variances[0] is None or variances[1] is None:
        return None
    error_ns = math.sqrt(variances[0] + variances[1])
    shift_ns = _sum(after) - _sum(before)
    half_ns = _normal(LEVEL) * error_ns
    return Shift(
        ns=shift_ns,
        low_ns=shift_ns - half_ns,
        high_ns=shift_ns + half_ns,
        p_longer=_p_of_normal(shift_ns - margin_ns, error_ns),
        p_shorter=_p_of_normal(-shift_ns - margin_ns, error_ns),
        n_before=sum(map(len, before)),
        n_after=sum(map(len, after)),
    )


def of_tails(before: Values, after: Values, part: float, margin_ns: float) -> Shift | None:
    """The difference between two quantiles of what repeats, `part` of which lies below: 0.99 for a P99.

    Each lies between two order statistics, whatever the distribution: how many values exceed it is binomial (David and
    Nagaraja, Order Statistics, 2003, section 7.1). The interval of the difference is from the lower end of one to the
    upper end of the other, each end with a quarter of the error. None where a side has too few values for that: 437
    for a P99.
    """
    older, newer = _Tail.of(before, part), _Tail.of(after, part)
    error = (1 - LEVEL) / 4
    low_ns, high_ns = newer.low(error) - older.high(error), newer.high(error) - older.low(error)
    if not (math.isfinite(low_ns) and math.isfinite(high_ns)):
        return None
    return Shift(
        ns=float(np.quantile(after, part) - np.quantile(before, part)),
        low_ns=low_ns,
        high_ns=high_ns,
        p_longer=_p_apart(older, newer, margin_ns),
        p_shorter=_p_apart(newer, older, margin_ns),
        n_before=len(before),
        n_after=len(after),
    )


def counts_differ(before: Values, after: Values) -> bool | None:
    """Whether how often something comes in a step differs beyond chance; None where the steps are too few to tell."""
    if min(len(before), len(after)) > 1 and np.ptp(before) == 0 == np.ptp(after):
        return bool(before[0] != after[0])
    shift = of_repeats(before, after, 0.0)
    return None if shift is None else shift.p <= ERROR


def beyond_chance(p: Sequence[float]) -> list[bool]:
    """Which of many tests tell a change, so that of those told no more than ERROR are expected to be none.

    Benjamini and Hochberg: the largest k with p(k) <= k / n · ERROR, and all below it.

    >>> beyond_chance([0.04, 0.001, 0.03, 0.9])
    [False, True, False, False]
    """
    order = np.argsort(p, kind="stable")
    allowed = ERROR * np.arange(1, len(p) + 1) / max(len(p), 1)
    passing = np.flatnonzero(np.asarray(p)[order] <= allowed)
    told = np.zeros(len(p), bool)
    if len(passing):
        told[order[: passing[-1] + 1]] = True
    return [bool(each) for each in told]


# ---- ranks ---------------------------------------------------------------------------------------------------------


def _thinned(values: Values) -> Values:
    ordered = np.sort(values)
    if len(ordered) <= MOST_COMPARED:
        return ordered
    at = (np.arange(MOST_COMPARED) + 0.5) * len(ordered) / MOST_COMPARED
    return np.asarray(ordered[at.astype(np.int64)])


def _p_larger(these: Values, those: Values) -> float:
    """Mann and Whitney's chance that `those` exceed `these` so often, were they alike; by the normal approximation."""
    n, m = len(these), len(those)
    ordered = np.sort(these)
    below, up_to = (np.searchsorted(ordered, those, side=side) for side in ("left", "right"))
    u = float(below.sum() + up_to.sum()) / 2
    counts = np.unique(np.concatenate((these, those)), return_counts=True)[1].astype(np.float64)
    ties = float((counts**3 - counts).sum()) / ((n + m) * (n + m - 1))
    variance = n * m / 12 * (n + m + 1 - ties)
    return _p_of_normal(u - n * m / 2 - 0.5, math.sqrt(max(variance, 0.0)))


def _normal(level: float) -> float:
    """Half the width, in standard deviations, of what holds that part of a normal distribution."""
    return NormalDist().inv_cdf((1 + level) / 2)


def _p_of_normal(excess: float, deviation: float) -> float:
    """Chance of such an excess or more; without any deviation, an excess is none of chance."""
    if not deviation:
        return 0.0 if excess > 0 else 1.0
    return math.erfc(excess / deviation / math.sqrt(2)) / 2


# ---- tails ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Tail:
    """The largest values, largest first, and the chance that no more than so many of all exceed the quantile."""

    values: Values  # (k,)
    at_most: Values  # (k,): [j] of at most j

    @classmethod
    def of(cls, values: Values, part: float) -> _Tail:
        n, beyond = len(values), 1 - part
        k = min(n, math.ceil(n * beyond + 10 * math.sqrt(n * beyond * part)) + 20)
        j = np.arange(1, k)
        steps = np.log(n - j + 1) - np.log(j) + math.log(beyond / part)  # of the binomial chance of j values more
        chances = np.exp(np.concatenate(([0.0], np.cumsum(steps))) + n * math.log(part)) if k else np.empty(0)
        return cls(np.sort(values)[::-1][:k], np.cumsum(chances))

    def high(self, error: float) -> float:
        """What the quantile exceeds with no more than that chance; infinite where no value is so large."""
        at = int(np.searchsorted(self.at_most, error, side="right")) - 1
        return float(self.values[at]) if at >= 0 else math.inf

    def low(self, error: float) -> float:
        """What it stays below with no more than that chance."""
        at = int(np.searchsorted(self.at_most, 1 - error))
        return float(self.values[at]) if at < len(self.values) else -math.inf


def _p_apart(lower: _Tail, higher: _Tail, margin_ns: float) -> float:
    """The smallest error with which the upper quantile is still above the lower one by more than the margin."""
    least, most = math.log(LEAST_P), math.log(0.5)

    def are_apart(error: float) -> bool:
        return higher.low(error) > lower.high(error) + margin_ns

    if not are_apart(0.5):
        return 1.0
    for _ in range(40):
        middle = (least + most) / 2
        least, most = (least, middle) if are_apart(math.exp(middle)) else (middle, most)
    return 2 * math.exp(most)


LEAST_P = 1e-12
"""Below this binomial chances are lost in rounding."""


# ---- sums ----------------------------------------------------------------------------------------------------------


def _sum(kinds: Sequence[Values]) -> float:
    return float(sum(values.sum() for values in kinds))


def _variance_of_sum(kinds: Sequence[Values]) -> float | None:
    repeated = [values for values in kinds if len(values) > 1]
    once = [values for values in kinds if len(values) == 1]
    if 2 * _sum(repeated) < _sum(kinds):
        return None
    variance = sum(len(values) * float(np.var(values, ddof=1)) for values in repeated)
    squares = sum(len(values) * float(values.mean()) ** 2 for values in repeated)
    return variance + (variance / squares if squares else 0.0) * sum(float(values[0]) ** 2 for values in once)


# ---- Student's t ---------------------------------------------------------------------------------------------------


def _welch(squares: Sequence[float | None], n: int, m: int) -> tuple[float, int]:
    """Standard error of the difference, and its degrees of freedom, rounded down; `squares` are those of each mean."""
    a, b = squares
    if a is None or b is None:
        spread, repeats = (b, m) if a is None else (a, n)
        return math.sqrt((spread or 0.0) * (repeats + 1)), repeats - 1
    total = a + b
    if not total:
        return 0.0, n + m - 2
    return math.sqrt(total), max(1, int(total**2 / (a**2 / (n - 1) + b**2 / (m - 1))))


def _p_of_t(excess: float, error: float, freedom: int) -> float:
    if not error:
        return 0.0 if excess > 0 else 1.0
    inside = t_inside(abs(excess) / error, freedom)
    return (1 - inside) / 2 if excess > 0 else (1 + inside) / 2
