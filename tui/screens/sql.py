"""SQL: asks the case whatever no screen shows, with its tables explained beside."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import DataTable, Static, TextArea

from diag.store.schema_notes import table_notes
from diag.tui.navigation import Target, ToQuery
from diag.tui.screens.view import View
from diag.tui.text import content
from diag.tui.widgets.rows import Rows
from diag.tui.widgets.schema_tree import SchemaTree

_OF_A_TIMELINE = """SELECT n.text, COUNT(*) AS launches, SUM(g.end_ns - g.start_ns) AS ns
  FROM gpu_op g JOIN name n ON n.id = g.short_name_id
 WHERE g.kind = 'kernel' GROUP BY 1 ORDER BY ns DESC LIMIT 100"""

_OF_A_PROFILE = """SELECT n.text, l.number, l.duration_ns
  FROM launch l JOIN name n ON n.id = l.short_name_id
 ORDER BY l.duration_ns DESC LIMIT 100"""


class Sql(View):
    NAME = "sql"
    AUTO_FOCUS = "TextArea"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,f5", "run", "Run", priority=True),
        Binding("escape", "leave", "Stop or leave the box", priority=True),
        Binding("ctrl+up", "history(-1)", "Earlier", priority=True),
        Binding("ctrl+down", "history(1)", "Later", priority=True, show=False),
    ]
    HELP = """
# SQL

One SELECT on the case, run with `ctrl+r`. The case is read-only here; exports that it came from are attached as
`source1`, `source2` and so on. The first thousand rows are shown, and the value under the cursor in full.

The tree names tables and columns with what they mean. Enter on a table asks for its rows, on a column puts its name
into the box. `escape` stops a statement that runs; else it leaves the box, so that number keys change the screen.
`ctrl+up` and `ctrl+down` bring back what was asked before.
"""

    def __init__(self) -> None:
        super().__init__()
        self._history: list[str] = []
        self._at = 0

    def body(self) -> ComposeResult:
        profiled = bool(self.session.report.launches) and not self.session.report.devices
        editor = TextArea(_OF_A_PROFILE if profiled else _OF_A_TIMELINE, id="editor", tab_behavior="focus")
        editor.show_line_numbers = False
        yield editor
        with Horizontal():
            with Vertical(id="schema"):
                yield SchemaTree()
                yield Static(id="note")
            yield Rows()

    async def on_mount(self) -> None:
        self.query_one(Rows).say("ctrl+r asks the case")
        self.run_worker(self._read_schema())

    async def _read_schema(self) -> None:
        self.query_one(SchemaTree).fill(await self.session.ask(lambda case: table_notes(case.db)))

    async def show(self, target: Target) -> None:
        if isinstance(target, ToQuery):
            self.set_focus(None)
            self._ask(target.sql)

    @on(Rows.Answered)
    def _answered(self) -> None:
        """Who came from another screen wants to go through the rows; who writes a statement goes on writing."""
        if not self._editor.has_focus:
            self.query_one(DataTable).focus()

    def action_run(self) -> None:
        self._ask(self._editor.text)

    def action_leave(self) -> None:
        rows = self.query_one(Rows)
        if rows.is_running:
            rows.interrupt()
        elif self._editor.has_focus:
            (rows.query_one(DataTable) if rows.query_one(DataTable).display else self.query_one(SchemaTree)).focus()
        else:
            self._editor.focus()

    def action_search(self) -> None:
        self._editor.focus()

    def action_history(self, by: int) -> None:
        if self._history:
            self._at = min(max(self._at + by, 0), len(self._history) - 1)
            self._editor.text = self._history[self._at]

    @property
    def _editor(self) -> TextArea:
        return self.query_one(TextArea)

    def _ask(self, sql: str) -> None:
        if self._editor.text != sql:
            self._editor.text = sql
        if sql not in self._history[-1:]:
            self._history.append(sql)
        self._at = len(self._history) - 1
        self.query_one(Rows).ask(sql)

    @on(SchemaTree.Asked)
    def _asked(self, event: SchemaTree.Asked) -> None:
        self._ask(f"SELECT * FROM {event.table.sql} LIMIT 1000")

    @on(SchemaTree.Named)
    def _named(self, event: SchemaTree.Named) -> None:
        self._editor.insert(event.name)
        self._editor.focus()

    @on(SchemaTree.Reached)
    def _noted(self, event: SchemaTree.Reached) -> None:
        self.query_one("#note", Static).update(content(event.note))
