"""A heat map in cells: ranks downwards, steps to the right, with a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from diag.render.layout import elide, pad
from diag.tui.text import safe

SHADES = ((0.02, "·"), (0.05, "░"), (0.10, "▒"), (0.25, "▓"), (np.inf, "█"))
"""Signs by the share beyond the usual up to which each stands."""
UNKNOWN = "?"
LABEL_ROOM = 12
GAP = 1
WIDEST = 3
"""Cells of one step, where there is room."""


def shade(share: float) -> str:
    """
    >>> [shade(value) for value in (-0.5, 0.03, 0.07, 0.2, 4.0, float("nan"))]
    ['·', '░', '▒', '▓', '█', '?']
    """
    if np.isnan(share):
        return UNKNOWN
    return next(sign for limit, sign in SHADES if share <= limit)


def columns_of(steps: int, room: int) -> NDArray[np.int64]:
    """First step of each column and, last, the number of steps: one step a column as long as there is room."""
    columns = max(1, min(steps, room))
    return np.linspace(0, steps, columns + 1).astype(np.int64)


class HeatMap(ScrollView, can_focus=True):
    """`values`: rows × steps, as shares beyond what is usual. A column of several steps shows the largest."""

    DEFAULT_CSS = """
    HeatMap { height: 1fr; overflow-x: hidden; }
    HeatMap > .heat-map--cursor { text-style: reverse bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"heat-map--label", "heat-map--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(0, -1)", "Step", show=False),
        Binding("right", "move(0, 1)", "Step", show=False),
        Binding("up", "move(-1, 0)", "Rank", show=False),
        Binding("down", "move(1, 0)", "Rank", show=False),
        Binding("enter", "open", "Timeline"),
    ]

    class Moved(Message):
        """The cursor is elsewhere, or the values are others."""

    class Opened(Message):
        """Enter, or a click on the cell with the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: Sequence[str] = ()
        self.values: NDArray[np.float64] = np.empty((0, 0))
        self.row, self._column = 0, 0

    def fill(self, labels: Sequence[str], values: NDArray[np.float64]) -> None:
        self.labels, self.values = labels, values
        self.row, self._column = min(self.row, max(0, len(labels) - 1)), min(self._column, len(self._edges) - 2)
        self.virtual_size = Size(self.size.width, len(labels))
        self.refresh()
        self.post_message(self.Moved())

    @property
    def step(self) -> int:
        """Of the column with the cursor the one that stands out most in its row."""
        first, stop = self._edges[self._column : self._column + 2]
        part = self.values[self.row, first:stop]
        return int(first) + (int(np.nanargmax(part)) if not np.isnan(part).all() else 0)

    @property
    def _room(self) -> int:
        return max(1, self.scrollable_content_region.width - LABEL_ROOM - GAP)

    @property
    def _edges(self) -> NDArray[np.int64]:
        return columns_of(self.values.shape[1], self._room)

    @property
    def _cell(self) -> int:
        return min(max(1, self._room // max(1, int(self.values.shape[1]))), WIDEST)

    def on_resize(self) -> None:
        self.fill(self.labels, self.values)

    def render_line(self, y: int) -> Strip:
        width, style = self.scrollable_content_region.width, self.rich_style
        at = self.scroll_offset.y + y
        if at >= len(self.labels):
            return Strip.blank(width, style)
        label = pad(elide(safe(self.labels[at]), LABEL_ROOM), LABEL_ROOM) + " " * GAP
        segments = [Segment(label, style + self._part("label"))]
        edges, cell = self._edges, self._cell
        for column, (first, stop) in enumerate(pairwise(edges.tolist())):
            is_cursor = self.has_focus and (at, column) == (self.row, self._column)
            sign = shade(_largest(self.values[at, first:stop]))
            segments.append(Segment(sign * cell, style + self._part("cursor") if is_cursor else style))
        return Strip(segments).adjust_cell_length(width, style)

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"heat-map--{name}", partial=True)

    def action_move(self, rows: int, columns: int) -> None:
        self._go_to(self.row + rows, self._column + columns)

    def _go_to(self, row: int, column: int) -> None:
        if not self.values.size:
            return
        self.row = min(max(row, 0), len(self.labels) - 1)
        self._column = min(max(column, 0), len(self._edges) - 2)
        self.scroll_to_region(Region(0, self.row, 1, 1), animate=False)
        self.refresh()
        self.post_message(self.Moved())

    def action_open(self) -> None:
        if self.values.size:
            self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        before = self.row, self._column
        self._go_to(self.scroll_offset.y + event.y, (event.x - LABEL_ROOM - GAP) // self._cell)
        if (self.row, self._column) == before:
            self.action_open()


def _largest(part: NDArray[np.float64]) -> float:
    return float(np.nanmax(part)) if len(part) and not np.isnan(part).all() else float("nan")
