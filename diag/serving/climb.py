"""Whether a figure of requests climbs as they are sent, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

FEWEST = 20
"""Requests: of fewer, the means at both ends are of less than five."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Climb:
    """First and last values of a series, and how sure it is that there is an order in it."""

    n_each: int  # of values in the first and in the last mean
    first: float
    last: float
    z: float
    """Spearman's rank correlation with the order, times √(n - 1): about a standard normal deviate without any
    order (Kendall & Gibbons, Rank Correlation Methods, ch. 4). Ranks do not mind a few slow requests."""

    @property
    def times(self) -> float:
        return self.last / self.first if self.first > 0 else float("inf") if self.last > 0 else 1.0


def climb(values: Values) -> Climb | None:
    """Of (n,) values in the order of sending; the ends are a tenth, or ten where that is more. None below FEWEST."""
    n = len(values)
    if n < FEWEST:
        return None
    n_each = max(n // 10, min(n // 4, 10))
    z = _correlation(np.arange(n, dtype=np.float64), _ranks(values)) * sqrt(n - 1)
    return Climb(n_each, float(values[:n_each].mean()), float(values[-n_each:].mean()), z)


def _ranks(values: Values) -> Values:
    """Values alike share their mean rank: in a series without differences no order is found."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(mean_ranks[inverse], np.float64)


def _correlation(a: Values, b: Values) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale else 0.0
