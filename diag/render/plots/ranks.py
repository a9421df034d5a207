"""Ranks of a job side by side: where which of them took longer than the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.render import svg
from diag.render.escape import one_line
from diag.render.layout import elide
from diag.render.plots.axes import count_axis
from diag.render.plots.sheet import MARGIN, Sheet
from diag.render.svg import WIDTH
from diag.timeline.rank_steps import RankTable

MOST_RANKS = 64
MOST_COLUMNS = 120
LEFT, RIGHT = MARGIN + 92, WIDTH - MARGIN - 190
WIDEST = 64.0
"""Cells, in pixels."""

TALLEST, SHORTEST = 30.0, 14.0
"""Rows, in pixels."""

LEVELS: Sequence[tuple[float, str, str]] = (
    (0.02, "as usual", "level-0"),
    (0.05, "2 to 5 %", "level-1"),
    (0.10, "5 to 10 %", "level-2"),
    (0.25, "10 to 25 %", "level-3"),
    (np.inf, "over 25 %", "level-4"),
)
"""Share beyond the median of all ranks up to which each stands, its name and its class: darker and larger."""

_SIZES = (0.28, 0.45, 0.62, 0.8, 1.0)
"""Of a cell, by level."""

_STYLE = """
  .level-0 { fill: #c6d4e1; } .level-1 { fill: #8fb8dd; } .level-2 { fill: #4d94cf; } .level-3 { fill: #0b63a5; }
  .level-4 { fill: #072f5f; }
  @media (prefers-color-scheme: dark) {
    .level-0 { fill: #33485c; } .level-1 { fill: #2f6496; } .level-2 { fill: #4a90d0; } .level-3 { fill: #9ccaf3; }
    .level-4 { fill: #f4f9ff; }
  }
"""


def ranks(table: RankTable) -> str:
    """Empty where there are not several ranks that share steps."""
    if len(table.ranks) < 2 or table.steps < 1:
        return ""
    durations = table.values("duration_ns")
    usual_ns = np.maximum(np.median(durations, axis=0), 1)
    beyond = table.beyond_usual("duration_ns") / usual_ns
    order = _shown(beyond)
    row = float(np.clip(600 / len(order), SHORTEST, TALLEST))
    edges = np.linspace(0, table.steps, min(table.steps, MOST_COLUMNS) + 1).astype(np.int64)
    body = [
        *svg.moved(0, 0, _legend()),
        *svg.moved(0, 52, [*_rows(table, durations, order, row), *_cells(beyond[order], edges, row)]),
        *svg.moved(0, 52 + row * len(order), _axis(table.steps)),
    ]
    skew = table.skew_ns
    return Sheet(
        title="Ranks: steps that took longer than those of other ranks",
        said=f"{units.count(len(table.ranks), 'rank')}, {units.count(table.steps, 'step')}. Skew, the longest less the "
        f"shortest of a step: median {units.time(float(np.median(skew)))}, at most {units.time(float(skew.max()))}.",
        body=body,
        height=52 + row * len(order) + 48,
        described=_described(table, beyond),
        notes=list(_notes(table, len(order))),
        style=_STYLE,
    ).drawn()


def _shown(beyond: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices of the ranks that are drawn, in their order: of many those that are late most."""
    latest = np.argsort(-np.clip(beyond, 0, None).sum(axis=1), kind="stable")
    return np.sort(latest[:MOST_RANKS])


def _legend() -> Iterator[str]:
    yield svg.text(MARGIN, 11, "beyond the median of all ranks:", "faint")
    x = float(MARGIN + 226)
    for (_, label, look), size in zip(LEVELS, _SIZES, strict=True):
        side = 16 * size
        yield svg.rect(x + (16 - side) / 2, 6 - side / 2, side, side, look)
        yield svg.text(x + 22, 11, label)
        x += 126


def _rows(table: RankTable, durations: NDArray[np.float64], order: NDArray[np.int64], row: float) -> Iterator[str]:
    yield svg.text(RIGHT + 104, -10, "median step", "faint right small")
    yield svg.text(RIGHT + 188, -10, "slowest", "faint right small")
    slowest = table.slowest
    for at, rank in enumerate(order.tolist()):
        y = row * (at + 0.5) + 4.5
        yield svg.text(LEFT - 10, y, elide(one_line(table.ranks[rank].label), 11), "right")
        yield svg.text(RIGHT + 104, y, units.time(float(np.median(durations[rank]))), "right")
        yield svg.text(RIGHT + 188, y, f"{slowest[rank]:,}×", "right")


def _cells(beyond: NDArray[np.float64], edges: NDArray[np.int64], row: float) -> Iterator[str]:
    """One path for each level. A column of several steps shows the largest."""
    width = _width(len(edges) - 1) / (len(edges) - 1)
    largest = np.stack([beyond[:, first:stop].max(axis=1) for first, stop in pairwise(edges.tolist())], axis=1)
    level = np.searchsorted([limit for limit, _, _ in LEVELS], largest)
    for number, ((_, _, look), size) in enumerate(zip(LEVELS, _SIZES, strict=True)):
        w, h = _inside(width, row, size)
        places = np.argwhere(level == number)
        d = "".join(
            f"M{LEFT + width * (x + 0.5) - w / 2:.5g} {row * (y + 0.5) - h / 2:.4g}h{w:.3g}v{h:.3g}h-{w:.3g}z"
            for y, x in places.tolist()
        )
        if d:
            yield svg.path(d, look)


def _inside(width: float, height: float, size: float) -> tuple[float, float]:
    """Width and height of what is drawn in a cell: as wide as the cell where that is narrow."""
    gap = min(2.0, width * 0.15)
    return (width - gap) * (size if width > SHORTEST else 1.0), (height - 2) * size


def _width(columns: int) -> float:
    return min(RIGHT - LEFT, WIDEST * columns)


def _axis(count: int) -> Iterator[str]:
    axis, width = count_axis("step, in order", count, most=10), _width(count)
    for value, label in axis.ticks:
        if value < count:
            yield svg.text(LEFT + width * (value + 0.5) / count, 18, label, "faint middle")
    yield svg.line(LEFT, 2, LEFT + width, 2, "axis")
    yield svg.text(LEFT + width / 2, 38, axis.title, "faint middle")


def _described(table: RankTable, beyond: NDArray[np.float64]) -> str:
    late: Mapping[str, int] = {
        rank.label: int(count) for rank, count in zip(table.ranks, (beyond > 0.10).sum(axis=1), strict=True) if count
    }
    if not late:
        return "No rank took 10 % longer than the median in any step."
    said = "; ".join(f"{label} in {units.count(count, 'step')}" for label, count in late.items())
    return f"More than 10 % beyond the median: {said}."


def _notes(table: RankTable, shown: int) -> Iterator[str]:
    yield "Slowest: in so many of the steps it took longer than every other rank."
    if table.steps > MOST_COLUMNS:
        yield "Several steps share a column, which shows the one that is most beyond the median."
    if shown < len(table.ranks):
        yield f"{units.count(len(table.ranks) - shown, 'more rank')} not drawn: those that are less late."
