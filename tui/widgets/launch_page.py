"""The sections of one launch, in tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static, TabbedContent, TabPane

from diag.model import units
from diag.rules.launch_report import LaunchRow
from diag.tui import code_rows, launch_text
from diag.tui.code_rows import CodeRow
from diag.tui.launch_facts import CodeLine, LaunchFacts
from diag.tui.text import content
from diag.tui.widgets.row_table import RowTable, Sort, ordered

TEXTS = {"speed": "Speed", "memory": "Memory", "occupancy": "Occupancy", "stalls": "Stalls"}
"""Sections of text before the code, by the ids of their tabs."""
NO_CODE = "The report tells nothing of single instructions: ncu --section SourceCounters, or --set full"
NO_SAMPLES = "No samples of warps here: ncu --section SourceCounters"


class LaunchPage(Vertical):
    DEFAULT_CSS = """
    LaunchPage #launch-title { height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
    LaunchPage TabbedContent { height: 1fr; }
    LaunchPage TabPane { padding: 0; }
    LaunchPage Tab.-active { text-style: bold reverse; }
    LaunchPage #code-told { height: auto; max-height: 2; }
    LaunchPage #code-detail { height: auto; max-height: 3; border-top: solid $foreground 30%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "tab(-1)", "Section", show=False),
        Binding("right", "tab(1)", "Section", key_display="←→"),
        Binding("m", "lines", "Lines"),
    ]

    def __init__(self) -> None:
        super().__init__(id="launch-page")
        self.row: LaunchRow | None = None
        self._facts: LaunchFacts | None = None
        self._has_lines = False

    def compose(self) -> ComposeResult:
        yield Static(id="launch-title")
        with TabbedContent(initial="tab-speed"):
            for name, title in TEXTS.items():
                with TabPane(title, id=f"tab-{name}"), VerticalScroll(id=f"scroll-{name}"):
                    yield Static(id=f"text-{name}")
            with TabPane("Code", id="tab-code"):
                yield Static(id="code-told")
                yield RowTable[CodeRow](code_rows.columns([]), Sort("samples"), dom_id="code-table", opens=False)
                yield Static(id="code-detail")
            with TabPane("NVIDIA", id="tab-vendor"), VerticalScroll(id="scroll-vendor"):
                yield Static(id="text-vendor")

    @property
    def _table(self) -> RowTable[CodeRow]:
        return self.query_one("#code-table", RowTable)

    @property
    def _tabs(self) -> TabbedContent:
        return self.query_one(TabbedContent)

    # ---- filling ---------------------------------------------------------------------------------------------------

    def begin(self, row: LaunchRow) -> None:
        """A launch that is about to be read."""
        self.row, self._facts = row, None
        duration = "" if row.duration_ns is None else f", {units.time(row.duration_ns)}"
        speaks = "" if row.id == row.spoken_for_by else f", {row.spoken_for_by} speaks for it"
        title = f"{row.id}{duration}{speaks}: {row.short_name} {row.configuration}"
        self.query_one("#launch-title", Static).update(content(title))
        self._focus()

    def fill(self, facts: LaunchFacts) -> None:
        self._facts = facts
        self._draw()
        self._fill_code(Sort("samples"))

    def fail(self, because: str) -> None:
        self._say("speed", content(because))

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if (facts := self._facts) is not None:
            width = max(40, self.size.width - 2)
            self._say("speed", launch_text.speed_of_light(facts, width))
            self._say("memory", launch_text.memory(facts))
            self._say("occupancy", launch_text.occupancy(facts, width))
            self._say("stalls", launch_text.stalls(facts, width))
            self._say("vendor", launch_text.vendor(facts.row))

    def _say(self, section: str, text: Content) -> None:
        self.query_one(f"#text-{section}", Static).update(text)

    # ---- the code --------------------------------------------------------------------------------------------------

    def _fill_code(self, sort: Sort | None = None) -> None:
        code = self._facts.code if self._facts else ()
        rows = code_rows.by_source_line(code) if self._has_lines else code_rows.by_instruction(code)
        columns, sort = code_rows.columns(rows), sort or self._table.sort
        if sort.key not in {column.key for column in columns}:
            sort = Sort("address")
        self._table.fill(ordered(rows, columns, sort), sort, columns)
        self.query_one("#code-told", Static).update(content(self._told(code, len(rows))))

    def _told(self, code: Sequence[CodeLine], shown: int) -> str:
        if not code:
            return NO_CODE
        samples = sum(line.samples or 0 for line in code)
        of = f"{units.count(samples, 'sample')} of warps" if samples else NO_SAMPLES
        lines = f" in {units.count(shown, 'line')}, m: instructions" if self._has_lines else ", m: by source line"
        nowhere = (
            "" if any(line.sass or line.line for line in code) else ". The report has no machine code and no lines"
        )
        return f"{units.count(len(code), 'instruction')}{lines}; {of}{nowhere}"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "lines":
            return self._tabs.active == "tab-code"
        return super().check_action(action, parameters)

    def action_lines(self) -> None:
        self._has_lines = not self._has_lines
        self._fill_code()

    def on_row_table_sorted(self, event: RowTable.Sorted) -> None:
        event.stop()
        self._fill_code(event.sort)

    def on_row_table_highlighted(self, event: RowTable.Highlighted) -> None:
        event.stop()
        row = self._table.row
        self.query_one("#code-detail", Static).update(content(code_rows.told(row) if row else ""))

    # ---- sections --------------------------------------------------------------------------------------------------

    def action_tab(self, way: int) -> None:
        panes = [pane.id or "" for pane in self.query(TabPane)]
        self._tabs.active = panes[(panes.index(self._tabs.active) + way) % len(panes)]

    def on_tabbed_content_tab_activated(self) -> None:
        self._focus()

    def _focus(self) -> None:
        """Keys scroll the section that is shown."""
        self.refresh_bindings()
        name = self._tabs.active.removeprefix("tab-")
        (self._table if name == "code" else self.query_one(f"#scroll-{name}")).focus()
