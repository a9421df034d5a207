"""A table of any number of rows: only those in sight are drawn. Columns to the right give way in a narrow terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from diag.render.layout import GUTTER, cells, elide, pad, shorten
from diag.tui.text import safe

Row = TypeVar("Row")

NARROWEST_NAME = 24
CURSOR = "› "
"""Before the row that keys act on: colour alone does not tell it."""
_ASCENDING, _DESCENDING = "▲", "▼"


@dataclass(frozen=True)
class Column(Generic[Row]):
    """`room` is in cells; None for the one of names, which gets what the others leave. `order` is what rows are sorted
    by: None is unknown and comes last, whatever the direction."""

    key: str
    header: str
    room: int | None
    text: Callable[[Row], str]
    order: Callable[[Row], Any] | None = None
    least: int = NARROWEST_NAME  # cells that names get before other columns give way
    lead: Callable[[Row], str] | None = None  # what stands before a name and is never shortened

    @property
    def is_name(self) -> bool:
        return self.room is None


@dataclass(frozen=True)
class Sort:
    key: str
    is_descending: bool = True

    def turned(self) -> Sort:
        return Sort(self.key, not self.is_descending)

    def of(self, column: Column[Any]) -> Sort:
        """By another column, largest numbers first and names in their order; the other way round if it is the same."""
        return self.turned() if column.key == self.key else Sort(column.key, not column.is_name)


def ordered(rows: Sequence[Row], columns: Sequence[Column[Row]], sort: Sort) -> list[Row]:
    """The rows by one column."""
    order = next((column.order for column in columns if column.key == sort.key), None)
    if order is None:
        return list(rows)
    keyed = [(order(row), row) for row in rows]
    known = [each for each in keyed if each[0] is not None]
    known.sort(key=lambda each: each[0], reverse=sort.is_descending)
    return [row for _, row in known] + [row for value, row in keyed if value is None]


def fitting(columns: Sequence[Column[Row]], width: int) -> list[Column[Row]]:
    """All columns, or, where they leave no room for names, those to the left, and always the names."""
    kept = list(columns)
    least = next(column.least for column in columns if column.is_name)
    while len(kept) > 2 and name_room(kept, width) < least:
        kept.remove([column for column in kept if not column.is_name][-1])
    return kept


def name_room(columns: Sequence[Column[Row]], width: int) -> int:
    taken = sum(column.room or 0 for column in columns) + len(GUTTER) * (len(columns) - 1)
    return max(1, width - len(CURSOR) - taken)


def _names(column: Column[Row], rows: Sequence[Row], room: int) -> list[str]:
    """Names that have the same room are shortened together."""
    leads = [column.lead(row) if column.lead else "" for row in rows]
    names = [""] * len(rows)
    for width in {cells(lead) for lead in leads}:
        alike = [at for at, lead in enumerate(leads) if cells(lead) == width]
        shown = shorten([safe(column.text(rows[at])) for at in alike], max(1, room - width))
        for at, name in zip(alike, shown, strict=True):
            names[at] = leads[at] + name
    return names


class RowTable(ScrollView, Generic[Row], can_focus=True):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-table--header", "row-table--cursor"}
    DEFAULT_CSS = """
    RowTable { height: 1fr; overflow-x: hidden; }
    RowTable > .row-table--header { text-style: bold; }
    RowTable > .row-table--cursor { text-style: reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(0)", "First", show=False),
        Binding("end", "edge(1)", "Last", show=False),
        Binding("enter", "open", "Open"),
        Binding("s", "sort", "Sort"),
        Binding("S", "turn", "Reverse", show=False),
    ]

    class Highlighted(Message):
        """The cursor is on another row, or the rows are others."""

        def __init__(self, table: RowTable[Any]) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> RowTable[Any]:
            return self.table

    class Opened(Highlighted):
        """Enter, or a click on the row with the cursor."""

    class Sorted(Highlighted):
        """Another order is asked for; whoever has the rows fills them in anew."""

        def __init__(self, table: RowTable[Any], sort: Sort) -> None:
            super().__init__(table)
            self.sort = sort

    def __init__(self, columns: Sequence[Column[Row]], sort: Sort, *, dom_id: str, opens: bool = True) -> None:
        """`opens`: whether there is more to a row than its line."""
        super().__init__(id=dom_id)
        self.opens = opens
        self.columns, self.sort = columns, sort
        self.rows: Sequence[Row] = ()
        self.cursor = 0
        self._names: tuple[tuple[int, int, int], list[str]] | None = None

    # ---- what is shown ---------------------------------------------------------------------------------------------

    def fill(
        self, rows: Sequence[Row], sort: Sort | None = None, columns: Sequence[Column[Row]] | None = None, at: int = 0
    ) -> None:
        """Other rows, with the cursor on row `at`."""
        self.rows, self.sort, self.columns = rows, sort or self.sort, columns or self.columns
        self.cursor = min(at, max(0, len(rows) - 1))
        self._names = None
        self.virtual_size = Size(self.size.width, len(rows) + 1)
        self._see()

    @property
    def row(self) -> Row | None:
        """The one with the cursor."""
        return self.rows[self.cursor] if self.rows else None

    @property
    def kept(self) -> list[Column[Row]]:
        return fitting(self.columns, self.scrollable_content_region.width)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.rows) + 1)
        self._names = None

    def move_to(self, row: int) -> None:
        at = min(max(0, row), max(0, len(self.rows) - 1))
        if at != self.cursor:
            self.cursor = at
            self._see()

    def _see(self) -> None:
        """Scrolls to the cursor, below the header, and tells that it is there."""
        region = Region(0, self.cursor, 1, 2)
        self.scroll_to_region(region, animate=False, force=True, immediate=True)
        self.refresh()
        self.post_message(self.Highlighted(self))

    # ---- drawing ---------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        style = self.rich_style
        if y == 0:
            return self._strip(self._header(width), style + self._component("header"), width)
        at = self.scroll_offset.y + y - 1
        if at >= len(self.rows):
            return Strip.blank(width, style)
        is_cursor = at == self.cursor
        return self._strip(self._line(at, width), style + self._component("cursor") if is_cursor else style, width)

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(f"row-table--{name}", partial=True)

    @staticmethod
    def _strip(text: str, style: Style, width: int) -> Strip:
        return Strip([Segment(pad(elide(text, width), width), style)], width)

    def _header(self, width: int) -> str:
        kept = self.kept
        return " " * len(CURSOR) + GUTTER.join(self._headline(column, kept, width) for column in kept)

    def _headline(self, column: Column[Row], kept: Sequence[Column[Row]], width: int) -> str:
        arrow = (_DESCENDING if self.sort.is_descending else _ASCENDING) if column.key == self.sort.key else ""
        room = name_room(kept, width) if column.room is None else column.room
        return pad(elide(column.header + arrow, room), room, right=not column.is_name)

    def _line(self, at: int, width: int) -> str:
        kept, row = self.kept, self.rows[at]
        room = name_room(kept, width)
        texts = [
            pad(self._shown_name(at, room), room)
            if column.room is None
            else pad(safe(column.text(row), column.room), column.room, right=True)
            for column in kept
        ]
        return (CURSOR if at == self.cursor else " " * len(CURSOR)) + GUTTER.join(texts)

    def _shown_name(self, at: int, room: int) -> str:
        """Names in sight that begin alike show where they differ."""
        top, height = self.scroll_offset.y, self.size.height
        if self._names is None or self._names[0] != (top, height, room):
            column = next(column for column in self.columns if column.is_name)
            self._names = (top, height, room), _names(column, self.rows[top : top + height], room)
        names = self._names[1]
        return names[at - top] if at - top < len(names) else ""

    # ---- keys and mouse --------------------------------------------------------------------------------------------

    def action_move(self, rows: int) -> None:
        self.move_to(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        self.move_to(self.cursor + pages * max(1, self.size.height - 2))

    def action_edge(self, is_last: int) -> None:
        self.move_to(len(self.rows) - 1 if is_last else 0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.opens if action == "open" else super().check_action(action, parameters)

    def action_open(self) -> None:
        if self.rows and self.opens:
            self.post_message(self.Opened(self))

    def action_sort(self) -> None:
        """By the next of the columns in sight that rows can be sorted by."""
        keys = [column.key for column in self.kept if column.order]
        if keys:
            at = keys.index(self.sort.key) + 1 if self.sort.key in keys else 0
            self._ask_for(keys[at % len(keys)])

    def action_turn(self) -> None:
        self.post_message(self.Sorted(self, self.sort.turned()))

    def _ask_for(self, key: str) -> None:
        column = next(column for column in self.columns if column.key == key)
        if column.order is not None:
            self.post_message(self.Sorted(self, self.sort.of(column)))

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            if key := self._column_at(event.x):
                self._ask_for(key)
            return
        at = self.scroll_offset.y + event.y - 1
        if at == self.cursor:
            self.action_open()
        elif at < len(self.rows):
            self.move_to(at)

    def _column_at(self, x: int) -> str | None:
        kept, end = self.kept, len(CURSOR)
        names = name_room(kept, self.scrollable_content_region.width)
        for column in kept:
            end += len(GUTTER) + (names if column.room is None else column.room)
            if x < end:
                return column.key
        return None
