"""The rows of a statement on the case, so many of them, with the value under the cursor in full."""

from __future__ import annotations

import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.coordinate import Coordinate
from textual.message import Message
from textual.widgets import DataTable, Static

from diag.errors import DiagError
from diag.model.units import count
from diag.store.case import Case
from diag.store.reading import Blob, first_rows
from diag.store.reading import Rows as Found
from diag.store.sqlite_errors import ended_when, is_interrupt
from diag.tui.session import Stopped
from diag.tui.text import cell, content

if TYPE_CHECKING:
    from diag.tui.app import DiagApp

MOST_ROWS = 1_000
WORTH_SAYING_S = 1.0

WIDEST_CELLS = 60
"""Of a column; the value under the cursor is shown below."""


class Rows(Vertical):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "Copy value")]

    class Answered(Message):
        """There are rows to be seen."""

    def __init__(self) -> None:
        super().__init__()
        self._found = Found((), (), is_cut=False)
        self._unwanted: threading.Event | None = None  # of the statement that runs or waits for its turn

    def compose(self) -> ComposeResult:
        yield DataTable(cursor_type="cell", zebra_stripes=True)
        yield Static(classes="cell")
        yield Static(classes="state")

    @property
    def is_running(self) -> bool:
        return self._unwanted is not None

    def interrupt(self) -> None:
        """Ends the statement that runs, or that waits for its turn."""
        if self._unwanted is not None:
            self._unwanted.set()

    @work(exclusive=True)
    async def ask(self, sql: str, seconds: float | None = None) -> None:
        """Shows the rows; with a bound on its time, where nobody wrote the statement just now."""
        self._say("asking … Escape stops")
        unwanted, began_s = threading.Event(), time.monotonic()
        self._unwanted = unwanted

        def work_on(case: Case) -> Found | None:
            if unwanted.is_set():
                return None
            with ended_when(case.db, unwanted.is_set):
                return first_rows(case.db, sql, MOST_ROWS, seconds)

        try:
            found = await cast("DiagApp", self.app).session.ask(work_on)
        except DiagError as error:
            self._show(Found((), (), is_cut=False), f"✗ {error}")
        except sqlite3.OperationalError as error:
            if not is_interrupt(error):
                raise
            why = "Stopped." if unwanted.is_set() else f"Stopped after {seconds:.0f} s: x runs it without that bound."
            self._show(Found((), (), is_cut=False), why)
        except Stopped:
            return
        else:
            took_s = time.monotonic() - began_s
            took = f", after {took_s:.1f} s" if took_s >= WORTH_SAYING_S else ""
            self._show(found, _counted(found) + took) if found else self.say("Stopped.")
        finally:
            unwanted.set()  # another statement may have taken its place
            if self._unwanted is unwanted:
                self._unwanted = None

    def say(self, text: str) -> None:
        """In the place of rows."""
        self._show(Found((), (), is_cut=False), text)

    def _say(self, text: str) -> None:
        self.query_one(".state", Static).update(content(text, room=800))

    def _show(self, found: Found, said: str) -> None:
        self._found = found
        table = self.query_one(DataTable)
        table.clear(columns=True)
        for name in found.columns:
            table.add_column(cell(name, room=WIDEST_CELLS))
        for row in found.rows:
            table.add_row(*map(_cell, row))
        table.display = bool(found.columns)
        self.query_one(".cell").display = bool(found.rows)
        self._say(said)
        if found.rows:
            self.post_message(self.Answered())

    @on(DataTable.CellHighlighted)
    def _reached(self, event: DataTable.CellHighlighted) -> None:
        event.stop()
        shown = self._value(event.coordinate)
        if shown is not None:
            self.query_one(".cell", Static).update(content(shown))

    def _value(self, at: Coordinate) -> str | None:
        if at.row < len(self._found.rows) and at.column < len(self._found.columns):
            return f"{self._found.columns[at.column]} = {_in_full(self._found.rows[at.row][at.column])}"
        return None

    def action_copy(self) -> None:
        at = self.query_one(DataTable).cursor_coordinate
        if self._value(at) is not None:
            cast("DiagApp", self.app).copy(_in_full(self._found.rows[at.row][at.column]), "the value")


def _counted(found: Found) -> str:
    return f"the first {len(found.rows):,} rows; there are more" if found.is_cut else count(len(found.rows), "row")


def _cell(value: Any) -> Text:
    return cell(
        _in_full(value),
        "dim" if value is None or isinstance(value, Blob) else "",
        WIDEST_CELLS,
        right=isinstance(value, int | float),
    )


def _in_full(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case Blob(n_bytes=n_bytes, head=head):
            return f"({count(n_bytes, 'byte')}) {head.hex(' ')}{' …' if n_bytes > len(head) else ''}"
    return str(value)
