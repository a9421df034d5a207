"""A table to be filtered by a part of a name and grouped, with a line about it above and one row in full below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from diag.tui.text import content
from diag.tui.widgets.filter_box import FilterBox
from diag.tui.widgets.row_table import Column, RowTable, Sort, ordered

Row = TypeVar("Row")


@dataclass(frozen=True)
class Listing(Generic[Row]):
    """What is listed. `rows` are all of them, grouped or each by itself; `key` tells one from the others; `summary`
    gets all rows, how many of them are shown, and whether they are grouped."""

    rows: Callable[[bool], Sequence[Row]]
    matching: Callable[[Sequence[Row], str], Sequence[Row]]
    columns: Callable[[Sequence[Row]], Sequence[Column[Row]]]
    key: Callable[[Row], object]
    summary: Callable[[Sequence[Row], int, bool], str]
    detail: Callable[[Row], Content]


class FilteredList(Vertical, Generic[Row]):
    DEFAULT_CSS = """
    FilteredList > .summary { height: auto; max-height: 3; }
    FilteredList > .detail { height: auto; max-height: 4; border-top: solid $foreground 30%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("g", "group", "Group")]

    class Opened(Message):
        """Enter, or a click on the row with the cursor."""

    def __init__(self, listing: Listing[Row], sort: Sort, *, prompt: str, is_grouped: bool, dom_id: str) -> None:
        super().__init__(id=f"{dom_id}-list")
        self._listing, self._sort, self._prompt, self._table_id = listing, sort, prompt, f"{dom_id}-table"
        self._is_grouped = is_grouped
        self._rows: Sequence[Row] = ()

    def compose(self) -> ComposeResult:
        yield Static(classes="summary")
        yield FilterBox(self._prompt)
        yield RowTable[Row](self._listing.columns([]), self._sort, dom_id=self._table_id)
        yield Static(classes="detail")

    def on_mount(self) -> None:
        self._load()

    @property
    def table(self) -> RowTable[Row]:
        return self.query_one(RowTable)

    @property
    def row(self) -> Row | None:
        """The one with the cursor."""
        return self.table.row

    def begin_search(self) -> None:
        self.query_one(FilterBox).begin()

    def action_group(self) -> None:
        self._is_grouped = not self._is_grouped
        self._load()

    def _load(self) -> None:
        self._rows = self._listing.rows(self._is_grouped)
        self._fill()

    def _fill(self, sort: Sort | None = None) -> None:
        """The rows that match, in order; the cursor goes where its row went."""
        listing, table, before = self._listing, self.table, self.table.row
        columns, sort = listing.columns(self._rows), sort or table.sort
        rows = ordered(listing.matching(self._rows, self.query_one(FilterBox).value), columns, sort)
        key = None if before is None else listing.key(before)
        at = next((at for at, row in enumerate(rows) if listing.key(row) == key), 0)
        table.fill(rows, sort, columns, at)
        self.query_one(".summary", Static).update(content(listing.summary(self._rows, len(rows), self._is_grouped)))

    def on_input_changed(self) -> None:
        self._fill()

    def on_filter_box_left(self) -> None:
        self.table.focus()

    def on_row_table_sorted(self, event: RowTable.Sorted) -> None:
        event.stop()
        self._fill(event.sort)

    def on_row_table_highlighted(self, event: RowTable.Highlighted) -> None:
        event.stop()
        nothing = "Nothing has such a name." if self._rows else ""
        shown = content(nothing) if self.row is None else self._listing.detail(self.row)
        self.query_one(".detail", Static).update(shown)

    def on_row_table_opened(self, event: RowTable.Opened) -> None:
        event.stop()
        self.post_message(self.Opened())
