"""What repeats within one recording, as one figure of it: of the whole recording, or of one of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.compare.noise import Values

OUTSIDE = -1
"""Of all periods of the steps."""


@dataclass(frozen=True, eq=False)
class Series:
    """The launches of a kernel, the instances of a range, or a figure that is known step by step. Times are in ns."""

    count: float | None  # None where nothing is counted: of a figure
    total_ns: float
    median_ns: float | None
    each_ns: Values | None  # None where only the sum is known
    period: NDArray[np.int64] | None = None  # of the steps, that each began in, or OUTSIDE; None: no steps
    n_periods: int = 0
    counts: Values | None = None  # in each period, of what is per step
    parts_ns: Sequence[Values] | None = None  # of a sum of several kinds, each kind's own

    @classmethod
    def of(cls, each_ns: Values, period: NDArray[np.int64] | None = None, n_periods: int = 0) -> Series:
        return cls(len(each_ns), float(each_ns.sum()), _median(each_ns), each_ns, period, n_periods)

    @classmethod
    def of_figure(cls, total_ns: float, each_ns: Values | None) -> Series:
        """A figure of the whole recording, with what it is in each period of the steps where there are any."""
        if each_ns is None:
            return cls(None, total_ns, None, None)
        return cls(None, total_ns, None, each_ns, np.arange(len(each_ns)), len(each_ns))

    @property
    def per_step(self) -> Series | None:
        """What began in the periods, shared among them; each repeat counts. None where that is not known."""
        if self.each_ns is None or self.period is None or not self.n_periods:
            return None
        inside = self.period != OUTSIDE
        each_ns = self.each_ns[inside]
        counts = np.bincount(self.period[inside], minlength=self.n_periods).astype(np.float64)
        return Series(
            count=None if self.count is None else len(each_ns) / self.n_periods,
            total_ns=float(each_ns.sum()) / self.n_periods,
            median_ns=_median(each_ns),
            each_ns=each_ns,
            counts=None if self.count is None else counts,
        )

    @property
    def by_step(self) -> Series | None:
        """The same with the sums of the periods for repeats: what happens in one step may have one cause."""
        shared = self.per_step
        if shared is None or self.each_ns is None or self.period is None:
            return None
        inside = self.period != OUTSIDE
        sums_ns = np.bincount(self.period[inside], self.each_ns[inside], self.n_periods).astype(np.float64)
        return Series(shared.count, shared.total_ns, shared.median_ns, sums_ns, counts=shared.counts)


def together(series: Sequence[Series]) -> Series:
    """Several kinds as one; of what is known by its sum alone the median is lost."""
    if len(series) == 1:
        return series[0]
    each = [kind.each_ns for kind in series if kind.each_ns is not None]
    if len(each) < len(series):
        return Series(sum(kind.count or 0 for kind in series), sum(kind.total_ns for kind in series), None, None)
    periods = [kind.period for kind in series if kind.period is not None]
    period = np.concatenate(periods) if len(periods) == len(series) else None
    return Series.of(np.concatenate(each), period, max(kind.n_periods for kind in series))


def sum_of(series: Sequence[Series]) -> Series:
    """The sum of several kinds, each of which varies by itself."""
    parts = [kind.each_ns for kind in series if kind.each_ns is not None]
    total_ns = sum(kind.total_ns for kind in series)
    return Series(None, total_ns, None, None, parts_ns=parts if len(parts) == len(series) else None)


def _median(each_ns: Values) -> float | None:
    return float(np.median(each_ns)) if len(each_ns) else None
