"""The picture of the timeline: an overview, the axis, and a line for each row, with labels beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from diag.model import units
from diag.render.layout import cells
from diag.render.timeline_rows import Picture
from diag.tui.timeline.cells import Cells
from diag.tui.timeline.drawing import Looks
from diag.tui.timeline.frame import Frame, Order
from diag.tui.timeline.lines import HEADER, Line, StepSlices, first_open, lines_of
from diag.tui.timeline.pens import pens
from diag.tui.timeline.place import PAN, ZOOM, Place
from diag.tui.timeline.ruler import exact, ticks

OVERVIEW, AXIS, HEAD = 0, 1, 2
"""The first lines; HEAD is how many they are."""

NARROWEST_LABELS, WIDEST_LABELS = 14, 44

BOLD, DIM, REVERSE = Style(bold=True), Style(dim=True), Style(reverse=True)
CURSOR, SELECTED, BORDER = Style(bgcolor="#555555"), Style(bgcolor="#333355"), Style(bgcolor="#774400")


class Chart(Widget, can_focus=True):
    """Holds where one is and draws the last frame. Every move goes through `go`."""

    ALLOW_SELECT = False

    class Moved(Message):
        """Something else is to be drawn."""

    class Chosen(Message):
        """The cursor's place was clicked twice."""

    def __init__(self) -> None:
        super().__init__(id="chart")
        self.picture: Picture | None = None
        self.place = Place.first(1, 1)
        self.lines: list[Line] = []
        self.selected = 0
        self.looks = Looks(pens(signs=False), False, np.empty(0, np.int64))
        self._top = 0
        self._open: frozenset[int] = frozenset()
        self._steps: Mapping[int, StepSlices] = {}
        self._frame: Frame | None = None
        self._drag: tuple[str, int, Place] | None = None  # what it does, where it began, and the place then
        self._was_dragged = False

    # ---- what is shown ---------------------------------------------------------------------------------------------

    def begin(self, picture: Picture, looks: Looks) -> None:
        self.picture, self.looks = picture, looks
        self._open = first_open(picture)
        self._list_lines()
        self.go(Place.first(picture.length_ns, self.columns))

    def show_steps(self, steps: Mapping[int, StepSlices]) -> None:
        self._steps = steps
        self._list_lines()
        self.go(self.place)

    def show_frame(self, frame: Frame) -> None:
        self._frame = frame
        self.refresh()

    def order(self) -> Order:
        line = self.line
        return Order(
            self.place.part, self.lines_in_sight(), line, self._overview_line(), self.place.cursor_ns, self.looks
        )

    @property
    def is_up_to_date(self) -> bool:
        """Whether the last frame is of the part and the lines that are to be seen."""
        frame = self._frame
        return (
            frame is not None
            and frame.part == self.place.part
            and all(line.key in frame.cells for line in self.lines_in_sight())
        )

    def _overview_line(self) -> Line:
        """The selected device, else the first line that holds anything."""
        header = next((each for each in self.lines if each.key == (self.line.key[0], HEADER)), self.line)
        return header if header.kind == "device" else next((each for each in self.lines if each.tracks), self.line)

    @property
    def line(self) -> Line:
        return self.lines[self.selected]

    @property
    def columns(self) -> int:
        return max(self.size.width - self.label_width, 1)

    @property
    def label_width(self) -> int:
        longest = max((cells(line.label[:WIDEST_LABELS]) for line in self.lines), default=0) + 3
        return min(max(self.size.width // 4, NARROWEST_LABELS), longest, WIDEST_LABELS)

    # ---- moving ----------------------------------------------------------------------------------------------------

    def go(self, place: Place) -> None:
        self.place = place
        self.post_message(self.Moved())

    def select(self, at: int) -> None:
        self.selected = min(max(at, 0), len(self.lines) - 1)
        self._top = min(self._top, self.selected)
        while not any(line is self.line for line in self.lines_in_sight()) and self._top < self.selected:
            self._top += 1
        self.go(self.place)

    def select_key(self, key: tuple[int, int]) -> None:
        """Opens the group of the line where it is closed."""
        if key not in (line.key for line in self.lines):
            self._open |= {key[0]}
            self._list_lines()
        self.select(next((at for at, line in enumerate(self.lines) if line.key == key), self.selected))

    def toggle_group(self) -> None:
        group, _ = self.line.key
        self._open ^= {group}
        self._list_lines()
        self.select(next(at for at, line in enumerate(self.lines) if line.key[0] == group))

    def lines_in_sight(self) -> list[Line]:
        room, seen = self.size.height - HEAD, []
        for line in self.lines[self._top :]:
            room -= line.height
            if room < 0:
                break
            seen.append(line)
        return seen

    def _list_lines(self) -> None:
        assert self.picture is not None
        key = self.line.key if self.lines else None
        self.lines = lines_of(self.picture, self._open, self._steps)
        self.selected = next((at for at, line in enumerate(self.lines) if line.key == key), 0)
        self._top = min(self._top, self.selected)

    def on_resize(self) -> None:
        if self.lines:
            self.place = self.place.in_columns(self.columns)
            self.select(self.selected)

    # ---- mouse -----------------------------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if not self.lines or event.x < self.label_width:
            return
        marks = event.shift or event.ctrl or event.button == 3
        self._drag, self._was_dragged = ("select" if marks else "pan", event.x, self.place), False
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drag is None:
            return
        does, began, place = self._drag
        self._was_dragged = self._was_dragged or event.x != began
        if does == "pan":
            self.go(place.panned(began - event.x))
        else:
            left, right = sorted((self._column(began), self._column(event.x)))
            self.go(place.selecting(place.part.time_at(left), place.part.time_at(right + 1)))

    def on_mouse_up(self) -> None:
        self.release_mouse()
        self._drag = None

    def on_click(self, event: events.Click) -> None:
        if self._was_dragged or event.button != 1 or not self.lines:
            self._was_dragged = False
            return
        line = self._line_at(event.y)
        if line is not None:
            self.select(self.lines.index(line))
        if event.x < self.label_width:
            if line is not None and line.is_header:
                self.toggle_group()
        elif event.y == OVERVIEW:
            whole = self.place.part.all()
            start_ns, end_ns = whole.span_of(self._column(event.x))
            self.go(self.place.at((start_ns + end_ns) // 2))
        elif self._frame is not None and event.chain == 1:
            self.go(self.place.at(self.place.part.time_at(self._column(event.x))))
        elif event.chain == 2:
            self.post_message(self.Chosen())

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 1)

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        self._pan(event, -1)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        self._pan(event, 1)

    def _wheel(self, event: events.MouseEvent, direction: int) -> None:
        """Over the labels it moves the selected line, with shift it pans, else it zooms around the mouse."""
        event.stop()
        if not self.lines:
            return
        if event.x < self.label_width:
            self.select(self.selected + direction)
        elif event.shift:
            self._pan(event, direction)
        else:
            around_ns = self.place.part.time_at(self._column(event.x))
            self.go(self.place.zoomed(ZOOM if direction < 0 else 1 / ZOOM, around_ns))

    def _pan(self, event: events.MouseEvent, direction: int) -> None:
        event.stop()
        if self.lines:
            self.go(self.place.panned(direction * max(self.columns // PAN, 1)))

    def _column(self, x: int) -> int:
        return min(max(x - self.label_width, 0), self.columns - 1)

    def _line_at(self, y: int) -> Line | None:
        return next((line for line, first in self._rows() if first <= y < first + line.height), None)

    def _rows(self) -> Iterator[tuple[Line, int]]:
        """Lines in sight, each with the first line of the terminal that it takes."""
        at = HEAD
        for line in self.lines_in_sight():
            yield line, at
            at += line.height

    # ---- drawing ---------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        if self._frame is None or not self.lines:
            return Strip.blank(self.size.width, self.rich_style)
        draw: Callable[[Frame], Cells] = {OVERVIEW: self._overview, AXIS: self._axis}.get(y, lambda _: self._row(y))
        drawn = draw(self._frame)
        return Strip(drawn.segments(), len(drawn)).adjust_cell_length(self.size.width).apply_style(self.rich_style)

    def _overview(self, frame: Frame) -> Cells:
        whole, part = frame.part.all(), frame.part
        shown = range(whole.column_of(part.start_ns), whole.column_of(part.end_ns - 1) + 1)
        label = Cells.of(f"shown {units.time(part.length_ns)}", self.label_width, DIM)
        if part.is_whole:
            return label + frame.overview
        return label + frame.overview.restyled(range(part.columns), DIM).restyled(shown, REVERSE)

    def _axis(self, frame: Frame) -> Cells:
        part, drawn = frame.part, Cells.blank(frame.part.columns)
        for tick in ticks(part):
            drawn.write(tick.column, list(tick.label), DIM)
        if self.place.selection:
            drawn = drawn.restyled(self._columns_of(*self.place.selection), SELECTED + REVERSE)
        if self.place.borders:
            start_ns, end_ns = self.place.borders
            drawn.write(part.column_of(start_ns), ["["], BORDER)
            drawn.write(part.column_of(end_ns - 1), ["]"], BORDER)
        drawn.write(part.column_of(self.place.cursor_ns), ["▼"], BOLD)
        return Cells.of(f"from {exact(part.start_ns)}", self.label_width, DIM) + drawn

    def _row(self, y: int) -> Cells:
        assert self._frame is not None
        line, first = next(((line, at) for line, at in self._rows() if at <= y < at + line.height), (None, 0))
        if line is None:
            return Cells.blank(self.size.width)
        known = self._frame.cells.get(line.key)
        drawn = known[y - first] if known else Cells.blank(self._frame.part.columns)
        return self._label(line, y - first) + self._marked(drawn, is_selected=line is self.line)

    def _label(self, line: Line, part_of_line: int) -> Cells:
        width = self.label_width
        style = (BOLD if line.is_header else Style()) + (REVERSE if line is self.line else Style())
        if part_of_line:
            scale = self._frame.scales.get(line.key, "") if self._frame else ""
            return Cells.blank(4) + Cells.of(scale, width - 5, DIM) + Cells.blank(1)
        sign = "▾ " if line.key[0] in self._open else "▸ "
        before = Cells.of(sign if line.is_header else "", 2 + line.indent, style)
        return before + Cells.beginning(line.label, width - 1 - len(before), style) + Cells.blank(1)

    def _marked(self, drawn: Cells, *, is_selected: bool) -> Cells:
        assert self._frame is not None
        if self.place.selection:
            drawn = drawn.restyled(self._columns_of(*self.place.selection), SELECTED, under=True)
        if self.place.borders:
            start_ns, end_ns = self.place.borders
            drawn = drawn.restyled((self._column_at(start_ns), self._column_at(end_ns - 1)), BORDER)
        return drawn.restyled([self._column_at(self.place.cursor_ns)], REVERSE if is_selected else CURSOR)

    def _column_at(self, time_ns: int) -> int:
        assert self._frame is not None
        return self._frame.part.column_of(time_ns)

    def _columns_of(self, start_ns: int, end_ns: int) -> range:
        return range(max(self._column_at(start_ns), 0), self._column_at(end_ns - 1) + 1)
