"""How long the steps of a program took, one after the other, and how much of each the device was idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.render import svg
from diag.render.escape import one_line
from diag.render.layout import elide
from diag.render.plots.axes import Axis, count_axis, time_axis
from diag.render.plots.sheet import BOLD_LETTERS, MARGIN, Sheet
from diag.render.svg import WIDTH
from diag.timeline.rank_steps import RankSteps, RankTable

MOST_RANKS = 6
MOST_COLUMNS = 120
WIDEST = 90.0
"""Bar, in pixels."""
HEIGHT = 190
HEADING = 24
BELOW = 52
LEFT, RIGHT = MARGIN + 52, WIDTH - MARGIN - 110
TALLEST = 4.0
"""Medians of a step. What is longer, as a first step may be, reaches above the plot, and its duration stands there."""

MOST_NAMED = 6

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Columns:
    """Steps side by side; of many some share a column, which shows their median, and the longest as a line."""

    first: NDArray[np.int64]  # step of each, and last the number of steps
    median_ns: Values
    longest_ns: Values
    idle_ns: Values  # NaN where it is not known

    @classmethod
    def of(cls, rank: RankSteps) -> _Columns:
        first = np.linspace(0, len(rank), min(len(rank), MOST_COLUMNS) + 1).astype(np.int64)
        parts = [slice(start, stop) for start, stop in pairwise(first.tolist())]

        def each(values: Values, summary: str) -> Values:
            return np.array([getattr(np, summary)(values[part]) for part in parts])

        shares = rank.idle_ns / np.maximum(rank.duration_ns, 1)
        median_ns = each(rank.duration_ns, "median")
        return cls(first, median_ns, each(rank.duration_ns, "max"), median_ns * each(shares, "mean"))


def steps(table: RankTable) -> str:
    """A plot for each rank that has steps; of many those with the longest. Empty where no rank has any."""
    ranks = [rank for rank in table.ranks if len(rank)]
    if not ranks:
        return ""
    longest = sorted(ranks, key=lambda rank: -float(np.median(rank.duration_ns)))[:MOST_RANKS]
    shown = [rank for rank in ranks if rank in longest]
    top_ns = max(_top_ns(rank) for rank in shown)
    body: list[str] = []
    for at, rank in enumerate(shown):
        body += svg.moved(0, at * (HEADING + HEIGHT + BELOW), _plot(rank, top_ns, has_heading=len(table.ranks) > 1))
    knows_idle = any(not np.isnan(rank.idle_ns).all() for rank in shown)
    return Sheet(
        title=f"Duration of steps ({', '.join(sorted({str(rank.pattern) for rank in shown}))})",
        said=f"From begin to end on the host.{' Idle: nothing of the process ran on any device.' * knows_idle}",
        body=body,
        height=len(shown) * (HEADING + HEIGHT + BELOW) - HEADING // 2,
        described=" ".join(_described(rank) for rank in shown),
        legend=["busy", "idle"] if knows_idle else [],
        used=["busy", "step"],
        notes=list(_notes(shown, len(ranks) - len(shown))),
    ).drawn()


def _top_ns(rank: RankSteps) -> float:
    usual = rank.duration_ns[rank.duration_ns <= TALLEST * float(np.median(rank.duration_ns))]
    return float(usual.max()) * 1.15


def _plot(rank: RankSteps, top_ns: float, *, has_heading: bool) -> Iterator[str]:
    columns, axis = _Columns.of(rank), time_axis("duration", top_ns, most=5)
    yield svg.text(MARGIN, 10, _heading(rank, axis) if has_heading else axis.title, "heading")
    right = LEFT + min(RIGHT - LEFT, WIDEST * len(rank))
    yield from svg.moved(0, HEADING, [*_grid(axis, right), *_bars(columns, axis, right), *_numbers(len(rank), right)])
    yield from svg.moved(0, HEADING, _figures(rank, columns, axis, right))


def _heading(rank: RankSteps, axis: Axis) -> str:
    return elide(f"{one_line(rank.label)}, {axis.title}", BOLD_LETTERS)


def _grid(axis: Axis, right: float) -> Iterator[str]:
    for value, label in axis.ticks:
        y = HEIGHT * (1 - axis.along(value))
        yield svg.line(LEFT, y, right, y, "grid")
        yield svg.text(LEFT - 8, y + 4, label, "faint right")


def _bars(columns: _Columns, axis: Axis, right: float) -> Iterator[str]:
    width = (right - LEFT) / len(columns.median_ns)
    gap = min(width * 0.15, 3.0)
    for at, (median_ns, longest_ns, idle_ns) in enumerate(
        zip(columns.median_ns, columns.longest_ns, columns.idle_ns, strict=True)
    ):
        x, high = LEFT + at * width + gap / 2, HEIGHT * axis.along(median_ns)
        is_known = not np.isnan(idle_ns)
        idle = high * float(np.clip(idle_ns / max(median_ns, 1), 0, 1)) if is_known else 0.0
        hint = _hint(columns, at)
        yield svg.rect(x, HEIGHT - high + idle, width - gap, high - idle, "busy" if is_known else "step", hint)
        if idle:
            yield svg.rect(x, HEIGHT - high, width - gap, idle, "idle")
        if longest_ns > median_ns:
            y = HEIGHT * (1 - axis.along(longest_ns))
            yield svg.line(x + width / 2 - gap / 2, y, x + width / 2 - gap / 2, HEIGHT - high, "axis")


def _hint(columns: _Columns, at: int) -> str:
    first, stop = int(columns.first[at]), int(columns.first[at + 1])
    which = f"step {first}" if stop - first == 1 else f"steps {first} to {stop - 1}, median"
    idle = columns.idle_ns[at]
    return f"{which}: {units.time(columns.median_ns[at])}" + ("" if np.isnan(idle) else f", idle {units.time(idle)}")


def _numbers(count: int, right: float) -> Iterator[str]:
    axis = count_axis("step, in order", count, most=10)
    for value, label in axis.ticks:
        if value < count:
            yield svg.text(LEFT + (right - LEFT) * (value + 0.5) / count, HEIGHT + 18, label, "faint middle")
    yield svg.line(LEFT, HEIGHT, right, HEIGHT, "axis")
    yield svg.text((LEFT + right) / 2, HEIGHT + 36, axis.title, "faint middle")


def _figures(rank: RankSteps, columns: _Columns, axis: Axis, right: float) -> Iterator[str]:
    median_ns = float(np.median(rank.duration_ns))
    y = HEIGHT * (1 - axis.along(median_ns))
    yield svg.line(LEFT, y, right + 6, y, "axis")
    yield svg.text(right + 12, y - 2, "median", "small faint")
    yield svg.text(right + 12, y + 14, units.time(median_ns), "heading")
    yield from _too_long(columns, axis, right)


def _too_long(columns: _Columns, axis: Axis, right: float) -> Iterator[str]:
    """Durations over the bars that reach above the plot, the longest ones."""
    width = (right - LEFT) / len(columns.median_ns)
    beyond = np.flatnonzero(columns.longest_ns > axis.top)
    for at in beyond[np.argsort(-columns.longest_ns[beyond], kind="stable")][:MOST_NAMED]:
        x = min(max(LEFT + (at + 0.5) * width, LEFT + 40), right - 20)
        yield from svg.over(x, 10, f"↑ {units.time(columns.longest_ns[at])}", "middle small")


def _described(rank: RankSteps) -> str:
    durations = rank.duration_ns
    idle = "" if np.isnan(rank.idle_ns).all() else f", idle {units.share(float(rank.idle_ns.sum() / durations.sum()))}"
    return (
        f"{rank.label}: {units.count(len(rank), 'step')}, median {units.time(float(np.median(durations)))}, "
        f"shortest {units.time(float(durations.min()))}, longest {units.time(float(durations.max()))}{idle}."
    )


def _notes(shown: Sequence[RankSteps], left_out: int) -> Iterator[str]:
    if any(len(rank) > MOST_COLUMNS for rank in shown):
        yield "Several steps share a bar, which is their median; the line above it reaches to the longest of them."
    if any(rank.duration_ns.max() > _top_ns(rank) for rank in shown):
        yield f"↑ Steps of more than {TALLEST:g} medians reach above the plot."
    if left_out:
        yield f"{units.count(left_out, 'more rank')} not drawn: those with shorter steps."
