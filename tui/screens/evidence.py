"""What is behind one figure of a finding: its formula, its SQL, and the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Static

from diag.render import phrases
from diag.rules.finding import Evidence
from diag.tui.navigation import ToQuery
from diag.tui.screens.above import Above
from diag.tui.text import content
from diag.tui.widgets.rows import Rows

if TYPE_CHECKING:
    from diag.tui.app import DiagApp

LONGEST_S = 20.0
"""That rows are looked for, unasked."""


class EvidenceScreen(Above[None]):
    AUTO_FOCUS = "DataTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Stop or back", priority=True),
        Binding("x", "query", "Open in SQL"),
        Binding("c", "copy", "Copy SQL"),
    ]
    HELP = """
# A figure

How it was computed, and the rows of the case behind it; only the first thousand, and only what twenty seconds find.
`x` opens the statement on the SQL screen, to be changed. `escape` stops the search for rows, then goes back.
"""

    def __init__(self, title: str, evidence: Evidence) -> None:
        super().__init__()
        self._of = title
        self._evidence = evidence

    def compose(self) -> ComposeResult:
        evidence = self._evidence
        with VerticalScroll(id="formula", can_focus=False):
            yield Static(content(self._of, "dim", 300))
            yield Static(content(f"{evidence.label} = {phrases.value(evidence)}", "bold"))
            yield Static(content(f"= {evidence.formula}"))
            yield Static(content(evidence.sql or "", "dim"))
        yield Rows()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        rows = self.query_one(Rows)
        if self._evidence.sql:
            rows.ask(self._evidence.sql, LONGEST_S)
        else:
            rows.say("This figure follows from others: there are no rows of its own.")
            self.query_one(DataTable).display = False

    def action_back(self) -> None:
        rows = self.query_one(Rows)
        if rows.is_running:
            rows.interrupt()
        else:
            self.leave()

    def action_query(self) -> None:
        if self._evidence.sql:
            cast("DiagApp", self.app).go(ToQuery(self._evidence.sql))

    def action_copy(self) -> None:
        cast("DiagApp", self.app).copy(self._evidence.sql or self._evidence.formula, "the SQL")
