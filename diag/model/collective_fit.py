"""The line T = α + k·M/B through measured collectives: latency α and bus bandwidth B, each with its error.

Times span orders of magnitude and are measured to a share of themselves, so that each residual counts relative to its
time. Errors are half-widths of 95 % intervals, by Student's t, from the covariance of the least-squares solution
(Draper, Smith, Applied Regression Analysis, chapter 9): they hold where residuals scatter, and are too small where the
times do not lie on a line. That is common: NCCL changes protocol (LL, LL128, Simple), algorithm and channels
with the size. Whether they lie on one is tested, and told, by the residuals: by their size, and by runs of one sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.model.student_t import t_within

Values = NDArray[np.float64]

FEWEST_SIZES = 4
"""Two determine the line; two more show whether it is one."""

LEAST_SPAN = 10.0
"""Largest over smallest size, below which latency and bandwidth cannot be told apart."""

LEVEL = 0.95

OFF_LINE = 0.10
"""Residual, as a share of the time, above which a size is said not to lie on the line: repeats of one call on a quiet
machine differ by less. Own choice."""

FEWEST_FOR_RUNS = 8
"""Of fewer residuals, no order of their signs is unlikely."""


@dataclass(frozen=True)
class NoFit:
    """Why no line can be put through the measurements."""

    because: str


@dataclass(frozen=True, eq=False)
class Fit:
    """`moved_bytes` are k·M, ascending; `time_ns` the measured times, in the same order."""

    latency_ns: float
    latency_error_ns: float
    bus_bytes_per_s: float
    bus_error_bytes_per_s: float
    moved_bytes: Values
    time_ns: Values
    covariance: Values  # [2, 2], of α in ns and 1/B in ns per byte

    @property
    def is_latency_resolved(self) -> bool:
        """Whether the sizes go low enough for α to show: its interval does not hold 0."""
        return self.latency_ns > self.latency_error_ns

    @cached_property
    def residuals(self) -> Values:
        """(measured - line) / measured, size by size."""
        return (self.time_ns - self._line(self.moved_bytes)) / self.time_ns

    @property
    def scatter(self) -> float:
        """Root of the mean square of the residuals, two degrees of freedom taken off."""
        return math.sqrt(float(self.residuals @ self.residuals) / (len(self.residuals) - 2))

    @cached_property
    def off_line(self) -> Values:
        """k·M of the sizes whose time is not that of the line, ascending."""
        return self.moved_bytes[np.abs(self.residuals) > OFF_LINE]

    @property
    def is_straight(self) -> bool:
        """Whether the times lie on one line: none is far off, or those that are come and go with either sign."""
        return not len(self.off_line) or not _has_long_runs(self.residuals)

    def predicted_ns(self, moved_bytes: float) -> float:
        """Of a call; also outside of the sizes that were measured, where nothing supports it."""
        return float(self._line(np.array([moved_bytes]))[0])

    def predicted_error_ns(self, moved_bytes: float) -> float:
        """Half-width of the interval of `predicted_ns`: that of the line, without the scatter of a single call."""
        at = np.array([1.0, moved_bytes])
        return _t(len(self.time_ns)) * math.sqrt(max(0.0, float(at @ self.covariance @ at)))

    def _line(self, moved_bytes: Values) -> Values:
        return self.latency_ns + moved_bytes * 1e9 / self.bus_bytes_per_s


def fit(moved_bytes: Sequence[float], time_ns: Sequence[float]) -> Fit | NoFit:
    """The line through measured calls: k·M of each, in bytes, and its time. Sizes may repeat; times are above 0.

    α is at least 0. Its error is that of the line without this bound, so that an α of 0 is never resolved.
    """
    order = np.argsort(np.asarray(moved_bytes, np.float64), kind="stable")
    moved, times = np.asarray(moved_bytes, np.float64)[order], np.asarray(time_ns, np.float64)[order]
    if refused := _refusal(moved):
        return refused
    # Both columns are scaled to 1 at the largest, or the matrix would mix 1 with 10^10.
    scale = np.array([1.0, moved[-1]])
    design = np.stack([np.ones_like(moved), moved / scale[1]], axis=1) / times[:, None]
    solution, *_ = np.linalg.lstsq(design, np.ones_like(times), rcond=None)
    residuals = 1 - design @ solution
    variance = float(residuals @ residuals) / (len(times) - 2)
    covariance = variance * np.linalg.inv(design.T @ design) / np.outer(scale, scale)
    latency_ns, ns_per_byte = (solution / scale).tolist()
    if latency_ns < 0:  # no call ends before it begins: the best line of those that may be goes through the origin
        latency_ns, ns_per_byte = 0.0, _through_origin(design[:, 1]) / scale[1]
    errors = _t(len(times)) * np.sqrt(np.diag(covariance))
    if ns_per_byte <= errors[1]:
        return NoFit("the time does not grow with the size beyond its scatter: larger sizes are needed")
    return Fit(
        latency_ns=latency_ns,
        latency_error_ns=float(errors[0]),
        bus_bytes_per_s=1e9 / ns_per_byte,
        bus_error_bytes_per_s=1e9 / ns_per_byte * float(errors[1]) / ns_per_byte,
        moved_bytes=moved,
        time_ns=times,
        covariance=covariance,
    )


def _through_origin(column: Values) -> float:
    """The factor with which a column is nearest to ones."""
    return float(column.sum() / (column @ column))


def _refusal(moved: Values) -> NoFit | None:
    sizes = np.unique(moved[moved > 0])
    if len(sizes) < FEWEST_SIZES or len(moved) < FEWEST_SIZES:
        return NoFit(f"only {units.count(len(sizes), 'size')} that move anything, where {FEWEST_SIZES} are needed")
    if sizes[-1] < LEAST_SPAN * sizes[0]:
        ratio = sizes[-1] / sizes[0]
        return NoFit(f"the largest size is {ratio:.3g} times the smallest, where {LEAST_SPAN:.0f} times are needed")
    return None


def _t(n: int) -> float:
    return t_within(LEVEL, n - 2)


def _has_long_runs(residuals: Values) -> bool:
    """Whether neighbours have one sign more often than chance: Wald and Wolfowitz's test, one-sided, normal."""
    above = residuals > 0
    n, n_above = len(above), int(above.sum())
    n_below = n - n_above
    if n < FEWEST_FOR_RUNS or not n_above or not n_below:
        return n >= FEWEST_FOR_RUNS
    runs = 1 + int(np.count_nonzero(above[1:] != above[:-1]))
    expected = 1 + 2 * n_above * n_below / n
    variance = (expected - 1) * (expected - 2) / (n - 1)
    return runs - expected <= -NormalDist().inv_cdf(LEVEL) * math.sqrt(variance)
