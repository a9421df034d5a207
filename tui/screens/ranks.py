"""Ranks: those of one job side by side, with a heat map of their steps."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from diag.timeline.elsewhere import elsewhere
from diag.timeline.rank_steps import RankTable, ranks_of
from diag.tui import rank_rows
from diag.tui.navigation import ToTimeline
from diag.tui.rank_rows import METRICS, RankLine
from diag.tui.screens.view import View
from diag.tui.text import content
from diag.tui.widgets.heat_map import SHADES, UNKNOWN, HeatMap
from diag.tui.widgets.row_table import RowTable, Sort, ordered


class Ranks(View):
    NAME = "ranks"
    HELP = """
# Ranks

Each input of a job is a rank: its device's time, and its steps beside those of the others.

- **step** is the median of its steps, **slowest** in how many of the shared steps it took longest.
- **idle, comm., exposed** are shares of its device's window. *Exposed* communication overlaps with no other kernel: a
  rank that waits for a late one shows it here, the late one does not.

The **heat map** has ranks downwards and steps to the right: the darker, the further beyond the median of all ranks
in that step. A dark row is a slow rank, a dark column a step that was slow for some, a single cell an accident.
`m` changes from step time to device idle to communication. A step is known by its place in the order, whatever the
clocks say. Who comes last in collectives is told on their common axis, where clocks can be compared.
"""
    CSS = """
    Ranks #ranks-summary { height: auto; max-height: 5; }
    Ranks RowTable { height: auto; max-height: 40%; }
    Ranks #ranks-legend { height: 1; margin-top: 1; }
    Ranks #ranks-detail { height: auto; max-height: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "metric", "What is shown"),
        Binding("t", "timeline", "Timeline"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._ranks = RankTable(())
        self._metric = "duration_ns"

    def body(self) -> ComposeResult:
        yield Static("Setting the ranks side by side …", id="ranks-summary")
        yield RowTable[RankLine](rank_rows.columns(), Sort("rank", is_descending=False), dom_id="ranks-table")
        yield Static(id="ranks-legend")
        yield HeatMap()
        yield Static(id="ranks-detail")

    def on_mount(self) -> None:
        self.query_one(RowTable).focus()
        self._load()

    @work
    async def _load(self) -> None:
        self._ranks = await self.session.ask(ranks_of)
        summary = await self.session.ask(elsewhere) or rank_rows.summary(self._ranks)
        said = summary + rank_rows.lateness(self.session.report)
        self.query_one("#ranks-summary", Static).update(content(said))
        self._fill_table(self.query_one(RowTable).sort)
        has_map = len(self._ranks.ranks) > 1 and self._ranks.steps > 0
        for part in (HeatMap, "#ranks-legend", "#ranks-detail"):
            self.query_one(part).display = has_map
        if has_map:
            self._fill_map()

    def _fill_table(self, sort: Sort) -> None:
        lines = rank_rows.rank_lines(self._ranks, self.session.report)
        self.query_one(RowTable).fill(ordered(lines, rank_rows.columns(), sort), sort)

    def _fill_map(self) -> None:
        """In shares of the median step, so that all three figures have one scale."""
        usual_ns = np.median(self._ranks.values("duration_ns"), axis=0)
        shares = self._ranks.beyond_usual(self._metric) / np.maximum(usual_ns, 1)
        self.query_one(HeatMap).fill([rank.label for rank in self._ranks.ranks], shares)
        self.query_one("#ranks-legend", Static).update(content(self._legend(), "dim"))

    def _legend(self) -> str:
        limits = ", ".join(f"{sign} ≤ {limit:.0%}" for limit, sign in SHADES[:-1])
        return f"{METRICS[self._metric]} beyond the median rank: {limits}, {SHADES[-1][1]} more, {UNKNOWN} not known"

    def on_row_table_sorted(self, event: RowTable.Sorted) -> None:
        self._fill_table(event.sort)

    def on_heat_map_moved(self) -> None:
        heat = self.query_one(HeatMap)
        if heat.values.size:
            self.query_one("#ranks-detail", Static).update(content(rank_rows.cell(self._ranks, heat.row, heat.step)))

    def on_row_table_opened(self, event: RowTable.Opened) -> None:
        line: RankLine | None = event.table.row
        rows = [row for row in self.session.report.devices if line is not None and row.source == line.rank.source]
        if rows:
            self.go(ToTimeline(rows[0].source, rows[0].window, rows[0].process, rows[0].device))

    def on_heat_map_opened(self) -> None:
        self.action_timeline()

    def action_timeline(self) -> None:
        """The step under the cursor."""
        heat = self.query_one(HeatMap)
        if heat.values.size:
            rank = self._ranks.ranks[heat.row]
            start_ns = int(rank.start_ns[heat.step])
            self.go(ToTimeline(rank.source, (start_ns, start_ns + int(rank.duration_ns[heat.step]))))

    def action_metric(self) -> None:
        names = list(METRICS)
        self._metric = names[(names.index(self._metric) + 1) % len(names)]
        if self.query_one(HeatMap).values.size:
            self._fill_map()
            self.on_heat_map_moved()
