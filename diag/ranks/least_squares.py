"""Clocks by least squares: the shifts and slopes under which ends that several clocks saw come together.

With e the time of an end on clock c, from a moment of that clock on, the model is T_i = e + a_c + b_c·e + noise: one T
for each instance, a and b for each clock, and a = b = 0 for the clock that is the axis. The T drop out of the normal
equations: with weights w of the rows of an instance, what is left is the projection diag(w) − w·wᵀ/Σw, whose sum over
instances is a matrix product. So the cost is one product of rows × instances × rows per group of ranks.

Weights are Huber's, then Tukey's bisquare, of residuals over 1.4826 × their median absolute deviation (Huber,
Ronchetti: Robust Statistics, 2009, chapter 7), as some ends are late by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Index = NDArray[np.intp]

HUBER, BISQUARE = 1.345, 4.685
"""Tuning constants, of 95 % efficiency for normal noise."""

ITERATIONS = 6
"""Of each kind of weights, at most."""

SETTLED_NS = 0.1
"""When no shift changes by more, the weights have settled."""

TO_SIGMA = 1.4826
"""A median absolute deviation of normal noise times this is its standard deviation."""

RIDGE = 1e-12
"""Of the largest diagonal element, 1 at least: where all ends of a clock are disbelieved, there is still a solution."""

LEAST_SIGMA_NS = 0.5
"""Times are whole nanoseconds."""


@dataclass(frozen=True, eq=False)
class CommonEnds:
    """Ends of the instances of one group, rows × instances, ns from a moment of each row's clock on."""

    clock: Index  # of each row; two rows may have one
    end_ns: Values


@dataclass(frozen=True, eq=False)
class ClockFit:
    """Arrays by clock."""

    shift_ns: Values
    slope: Values
    slope_error: Values  # one standard error
    sigma_ns: Values  # robust standard deviation of a single end


def fit_common_ends(groups: Sequence[CommonEnds], n_clocks: int, *, with_slope: bool) -> ClockFit:
    """Clock 0 is the axis. All clocks must be connected by groups."""
    span_ns = max(float(np.abs(group.end_ns).max()) for group in groups) or 1.0
    n_terms = 2 if with_slope else 1
    weights = [np.ones_like(group.end_ns) for group in groups]
    solution = np.zeros((n_terms, n_clocks))
    sigma_ns = np.zeros(n_clocks)
    for weigh in (_huber, _bisquare):
        for _ in range(ITERATIONS):
            before, (solution, matrix) = solution, _solve(groups, weights, span_ns, n_terms, n_clocks)
            residuals = [_residuals(*each, solution, span_ns) for each in zip(groups, weights, strict=True)]
            sigma_ns = _sigma(groups, residuals, n_clocks)
            weights = [
                weigh(np.abs(residual) / sigma_ns[group.clock][:, None])
                for group, residual in zip(groups, residuals, strict=True)
            ]
            if np.abs(solution - before).max() < SETTLED_NS:
                break
    solution, matrix = _solve(groups, weights, span_ns, n_terms, n_clocks)
    slope = solution[1] / span_ns if with_slope else np.zeros(n_clocks)
    variance = np.append(0, np.diag(np.linalg.inv(matrix))[n_clocks - 1 :]) if with_slope else np.zeros(n_clocks)
    return ClockFit(solution[0], slope, sigma_ns * np.sqrt(np.maximum(variance, 0)) / span_ns, sigma_ns)


def _huber(scaled: Values) -> Values:
    return np.minimum(1.0, HUBER / np.maximum(scaled, HUBER))


def _bisquare(scaled: Values) -> Values:
    return np.asarray(np.maximum(1 - (scaled / BISQUARE) ** 2, 0) ** 2, np.float64)


def _solve(
    groups: Sequence[CommonEnds], weights: Sequence[Values], span_ns: float, n_terms: int, n_clocks: int
) -> tuple[Values, Values]:
    """The terms by clock, terms × clocks, and the normal matrix of those that are free: of all clocks but 0."""
    matrix, right = np.zeros((n_terms, n_clocks, n_terms, n_clocks)), np.zeros((n_terms, n_clocks))
    for group, weight in zip(groups, weights, strict=True):
        total = weight.sum(axis=0)
        total[total == 0] = 1.0  # an instance that nobody believes
        beside = group.end_ns - (weight * group.end_ns).sum(axis=0) / total
        terms = [weight, weight * group.end_ns / span_ns][:n_terms]
        for p, left in enumerate(terms):
            np.add.at(right[p], group.clock, -(left * beside).sum(axis=1))
            for q in range(n_terms):
                block = -(left / total) @ terms[q].T
                block[np.diag_indices_from(block)] += (left * (group.end_ns / span_ns) ** q).sum(axis=1)
                np.add.at(matrix[p, :, q], (group.clock[:, None], group.clock[None, :]), block)
    free = np.flatnonzero(np.tile(np.arange(n_clocks) > 0, n_terms))
    normal = matrix.reshape(n_terms * n_clocks, -1)[np.ix_(free, free)]
    normal[np.diag_indices_from(normal)] += RIDGE * max(float(np.diag(normal).max(initial=0)), 1.0)
    solution = np.zeros(n_terms * n_clocks)
    solution[free] = np.linalg.solve(normal, right.reshape(-1)[free])
    return solution.reshape(n_terms, n_clocks), normal


def _residuals(group: CommonEnds, weight: Values, solution: Values, span_ns: float) -> Values:
    """Of each end on the axis against those of its instance; as large as if the others' mean were exact."""
    terms = solution[:, group.clock]
    on_axis = group.end_ns + terms[0][:, None]
    if len(terms) > 1:
        on_axis += terms[1][:, None] * group.end_ns / span_ns
    total = weight.sum(axis=0)
    mean = np.where(total > 0, (weight * on_axis).sum(axis=0) / np.where(total > 0, total, 1.0), on_axis.mean(axis=0))
    n_rows = len(group.clock)
    return np.asarray((on_axis - mean) * np.sqrt(n_rows / max(n_rows - 1, 1)))


def _sigma(groups: Sequence[CommonEnds], residuals: Sequence[Values], n_clocks: int) -> Values:
    rows: list[list[Values]] = [[] for _ in range(n_clocks)]
    for group, residual in zip(groups, residuals, strict=True):
        for clock, row in zip(group.clock.tolist(), residual, strict=True):
            rows[clock].append(row)
    middle = [float(np.median(np.abs(np.concatenate(of)))) for of in rows]
    return np.asarray(np.maximum(TO_SIGMA * np.array(middle), LEAST_SIGMA_NS))
