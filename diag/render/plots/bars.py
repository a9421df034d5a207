"""Bars from left to right over one axis, with their names before them and their figures behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.render import svg
from diag.render.escape import one_line
from diag.render.layout import cells, elide, shorten
from diag.render.plots.axes import Axis
from diag.render.plots.sheet import BOLD_LETTERS, LETTER, MARGIN, Sheet
from diag.render.svg import WIDTH

ROW = 23
BAR = 15
HEADING = 24
GAP = 10
AXIS = 46
LONGEST_LABEL = 46
LONGEST_FIGURES = 44
"""Letters."""


@dataclass(frozen=True)
class Part:
    value: float  # in the unit of the axis
    look: str
    hint: str  # the part in words
    said: str = ""  # inside it, where there is room


@dataclass(frozen=True)
class Bar:
    """Parts stand one after the other; `limit` is where a line crosses the bar."""

    label: str
    parts: Sequence[Part]
    said: str
    limit: float | None = None


@dataclass(frozen=True)
class Group:
    bars: Sequence[Bar]
    heading: str = ""

    @property
    def height(self) -> float:
        return (HEADING + GAP if self.heading else 0) + ROW * len(self.bars)


def chart(
    title: str,
    said: str,
    groups: Sequence[Group],
    axis: Axis,
    *,
    legend: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """A whole picture of such bars, with what `Sheet` has around them."""
    return Sheet(
        title,
        said,
        body=list(_drawn(groups, axis)),
        height=sum(group.height for group in groups) + AXIS,
        described=_described(groups),
        legend=legend,
        used=used(groups),
        notes=notes,
    ).drawn()


def used(groups: Sequence[Group]) -> list[str]:
    """Classes, each once, in the order in which they come."""
    return list(dict.fromkeys(part.look for group in groups for bar in group.bars for part in bar.parts))


def _drawn(groups: Sequence[Group], axis: Axis) -> Iterator[str]:
    """Below y = 0. Labels and figures have as much room as the longest of them takes."""
    bars = [bar for group in groups for bar in group.bars]
    labels = shorten([one_line(bar.label) for bar in bars], LONGEST_LABEL)
    figures = [elide(one_line(bar.said), LONGEST_FIGURES) for bar in bars]
    widest = max(map(cells, labels), default=0)
    left = MARGIN + (LETTER * widest + 12 if widest else 0)
    width = WIDTH - MARGIN - LETTER * max(map(cells, figures), default=0) - 12 - left
    y, at = 0.0, 0
    for group in groups:
        if group.heading:
            yield svg.text(MARGIN, y + 16, elide(one_line(group.heading), BOLD_LETTERS), "heading")
            y += HEADING
        yield from _grid(axis, left, width, y, y + ROW * len(group.bars))
        for bar in group.bars:
            yield svg.text(left - 10, y + 15, labels[at], "right")
            yield from _bar(bar, axis, left, width, y + (ROW - BAR) / 2)
            end = max(sum(part.value for part in bar.parts), bar.limit or 0)
            yield svg.text(left + width * axis.along(end) + 8, y + 15, figures[at])
            y, at = y + ROW, at + 1
        y += GAP if group.heading else 0
    yield from _axis(axis, left, width, y)


def _bar(bar: Bar, axis: Axis, left: float, width: float, y: float) -> Iterator[str]:
    begun = 0.0
    for part in bar.parts:
        x, end = (left + width * axis.along(value) for value in (begun, begun + part.value))
        yield svg.rect(x, y, end - x, BAR, f"bar {part.look}", part.hint)
        if part.said and end - x > LETTER * (cells(part.said) + 2):
            yield from svg.over((x + end) / 2, y + 12, part.said, "middle")
        begun += part.value
    if bar.limit is not None:
        x = left + width * axis.along(bar.limit)
        yield svg.line(x, y - 3, x, y + BAR + 3, "limit")


def _grid(axis: Axis, left: float, width: float, top: float, bottom: float) -> Iterator[str]:
    for value, _ in axis.ticks:
        x = left + width * axis.along(value)
        yield svg.line(x, top, x, bottom, "grid")
    yield svg.line(left, top, left, bottom, "axis")


def _axis(axis: Axis, left: float, width: float, y: float) -> Iterator[str]:
    yield svg.line(left, y, left + width, y, "axis")
    for value, label in axis.ticks:
        yield svg.text(left + width * axis.along(value), y + 18, label, "faint middle")
    yield svg.text(left + width / 2, y + 38, axis.title, "faint middle")


def _described(groups: Sequence[Group]) -> str:
    """In words."""
    return " ".join(
        (f"{group.heading}: " if group.heading else "")
        + "; ".join(part.hint for bar in group.bars for part in bar.parts)
        + "."
        for group in groups
    )
