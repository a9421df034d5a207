"""Tree: ranges and operators by what encloses them, with their time on the host and what they launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from diag.model import units
from diag.timeline.elsewhere import elsewhere
from diag.tui import tree_rows
from diag.tui.navigation import ToQuery, ToTimeline
from diag.tui.screens.view import View
from diag.tui.text import content
from diag.tui.tree_rows import Line, Path, ThreadTree
from diag.tui.widgets.filter_box import FilterBox
from diag.tui.widgets.row_table import RowTable, Sort

NOTHING = "No ranges were captured. Mark phases with NVTX, or profile with torch.profiler"
FEW = 3
"""So many threads are open at first."""


class Tree(View):
    NAME = "tree"
    AUTO_FOCUS = "RowTable"  # the filter box is the first, before its style hides it
    HELP = """
# Tree

NVTX ranges, PyTorch operators and Python functions, each below what encloses it. Those of one name in one place are
one line; a `#` stands for numbers that differ.

- **GPU** is the time during which a device ran anything that was launched inside: a union, so that kernels side by side
  count once. Of several devices it is that of the busiest.
- **GPU self** leaves out what was launched inside a range further down.
- **host** is the time between begin and end on the host; **host self** what no range further down explains.

Much host time with little GPU time is overhead of the host; much GPU self time says where the kernels come from.
`/` finds names; `t` shows the longest one in the timeline, `x` the rows.
"""
    CSS = """
    Tree #tree-summary { height: auto; max-height: 4; }
    Tree #tree-detail { height: auto; max-height: 4; border-top: solid $foreground 30%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "open_or_close", "Open or close", show=False),
        Binding("right", "open", "Open", show=False),
        Binding("left", "close", "Close", show=False),
        Binding("asterisk", "open_all", "Open all"),
        Binding("t", "timeline", "Timeline"),
        Binding("x", "query", "Rows"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._trees: Sequence[ThreadTree] = ()
        self._opened: set[Path] = set()

    def body(self) -> ComposeResult:
        yield Static("Putting the ranges together …", id="tree-summary")
        yield FilterBox("part of a name")
        yield RowTable[Line](tree_rows.columns(has_gpu=True), Sort("gpu"), dom_id="tree-table")
        yield Static(id="tree-detail")

    def on_mount(self) -> None:
        self._table.focus()
        self._load()

    @property
    def _table(self) -> RowTable[Line]:
        return self.query_one("#tree-table", RowTable)

    @work
    async def _load(self) -> None:
        self._trees = await self.session.ask(tree_rows.trees_of)
        apart = await self.session.ask(elsewhere)
        summary = f"{units.count(len(self._trees), 'thread')} with ranges" if self._trees else apart or NOTHING
        has_gpu = any(node.gpu_ns for tree in self._trees for node in tree.roots)
        self._opened = {(number,) for number in range(min(len(self._trees), FEW))}
        self.query_one("#tree-summary", Static).update(content(summary))
        self._table.fill((), Sort("gpu" if has_gpu else "host"), tree_rows.columns(has_gpu))
        self._fill()

    def _fill(self, sort: Sort | None = None, at: Path | None = None) -> None:
        table = self._table
        at = at or (table.row.path if table.row else None)
        rows = tree_rows.lines(self._trees, self._opened, sort or table.sort, self.query_one(FilterBox).value)
        table.fill(rows, sort, at=next((i for i, line in enumerate(rows) if line.path == at), 0))

    # ---- keys ------------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        self.query_one(FilterBox).begin()

    def on_input_changed(self) -> None:
        self._fill()

    def on_filter_box_left(self) -> None:
        self._table.focus()

    def on_row_table_sorted(self, event: RowTable.Sorted) -> None:
        self._fill(event.sort)

    def on_row_table_opened(self) -> None:
        self.action_open_or_close()

    def action_open_or_close(self) -> None:
        if line := self._table.row:
            self._opened ^= {line.path}
            self._fill()

    def action_open(self) -> None:
        if line := self._table.row:
            self._opened.add(line.path)
            self._fill()

    def action_close(self) -> None:
        """Of what is closed already, closes what encloses it."""
        if line := self._table.row:
            path = line.path if line.is_open or line.is_thread else line.path[:-1]
            self._opened.discard(path)
            self._fill(at=path)

    def action_open_all(self) -> None:
        if line := self._table.row:
            self._opened.update(tree_rows.paths_below(line))
            self._fill()

    def on_row_table_highlighted(self) -> None:
        line = self._table.row
        nothing = "No range has such a name." if self._trees else ""
        self.query_one("#tree-detail", Static).update(_detail(line) if line else content(nothing))

    @work
    async def action_timeline(self) -> None:
        line = self._table.row
        if line is None or line.is_thread:
            return
        window = await self.session.ask(lambda case: tree_rows.longest_of(case, line))
        if window is None:
            self.notify("The case keeps no single ranges of it: there are too many.")
        else:
            self.go(ToTimeline(line.tree.source, window, line.tree.process))

    def action_query(self) -> None:
        line = self._table.row
        if line is not None and not line.is_thread:
            self.go(ToQuery(tree_rows.rows_sql(line)))


def _detail(line: Line) -> Content:
    if line.is_thread:
        return content(line.node.name)
    on = [
        f"GPU {each.device}: {units.time(each.total_ns)} of {units.count(each.operations, 'operation')}, "
        f"{units.time(each.sum_ns)} in sum"
        for each in line.node.gpu
    ]
    return content("; ".join(on) or "It launched nothing.", "dim") + Content("\n") + content(line.node.name)
