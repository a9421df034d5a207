"""Roofline: kernels under the ceilings of their device, each to be selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from diag.model import units
from diag.render.roofline_chart import Chart, at_level
from diag.tui import roofline_points
from diag.tui.navigation import Target, ToKernel, ToLaunch, ToRoofline
from diag.tui.roofline_points import Point
from diag.tui.screens.view import View
from diag.tui.text import content
from diag.tui.widgets.roofline_plot import RooflinePlot
from diag.tui.widgets.row_table import RowTable, Sort, ordered

FEW, MANY = 3, 15
"""Points that are listed at a time, at least and at most."""
TALL = 40
"""Lines from which there is room for many."""
NOTHING = (
    "No kernel of this case has a roofline. Capture one with: ncu --set roofline --section InstructionStats -o kernels "
    "PROGRAM, and open its report, alone or together with a timeline. What this machine can do at most is measured by: "
    "diag calibrate"
)


class Roofline(View):
    NAME = "roofline"
    HELP = """
# Roofline

Across: **arithmetic intensity**, the work per byte that moves. Upwards: the work per second that the kernel achieves.
Both axes are logarithmic. No kernel is above its roof: the **slope** is what a level of memory delivers, the **flat**
part what the arithmetic units can do.

The **ridge point** is the intensity at which slope and flat meet. Left of it a kernel cannot be faster than its bytes
allow: move fewer of them. Right of it the arithmetic is the limit: do less of it, or in a faster precision. Far below
the roof on either side, a kernel waits: read the stalls of its launch.

- A sign is a kernel; the circle around it is the larger the more of the time it takes. The dotted way up from the
  selected one is its headroom.
- Full lines hold at the clocks of the kernel; those measured here by `diag calibrate` are bold and say so. Sparse dots
  are what a **datasheet** promises, at clocks of its own.
- `!` and a point above its roof are no wonder but an error: of a counter or of a ceiling.
- `m` chooses the level of memory over whose bytes the points stand: L1, L2, DRAM, or of each kernel the nearest to its
  roof.
"""
    CSS = """
    Roofline #roofline-title { height: 1; }
    Roofline #roofline-plot { height: 1fr; min-height: 9; }
    Roofline #roofline-figures { height: auto; max-height: 6; border-top: solid $foreground 30%; }
    Roofline #roofline-title { text-overflow: ellipsis; text-wrap: nowrap; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "beside(-1)", "Left", show=False),
        Binding("right", "beside(1)", "Right", show=False),
        Binding("m", "level", "Level"),
        Binding("d", "device", "Device"),
        Binding("l", "launch", "Launch"),
        Binding("k", "kernel", "Kernel"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._charts: Sequence[Chart] = ()
        self._at = 0
        self._level: str | None = None
        self._chart: Chart | None = None

    def body(self) -> ComposeResult:
        yield Static(id="roofline-title")
        yield RooflinePlot()
        with Vertical(id="roofline-figures"):
            yield Static(id="roofline-told")
        yield RowTable[Point](roofline_points.columns("FLOP"), Sort("share"), dom_id="roofline-table")

    def on_mount(self) -> None:
        self._charts = roofline_points.all_charts(self.session.report)
        self._load()
        self._table.focus()

    @property
    def _table(self) -> RowTable[Point]:
        return self.query_one("#roofline-table", RowTable)

    # ---- what is drawn ---------------------------------------------------------------------------------------------

    def _load(self, launch_id: str | None = None) -> None:
        """The chart that is chosen, with the point of a launch or else the first one selected."""
        if not self._charts:
            self.query_one("#roofline-told", Static).update(content(NOTHING))
            self.query_one(RooflinePlot).display = False
            return
        whole = self._charts[self._at]
        self._chart = at_level(whole, self._level)
        self.query_one("#roofline-title", Static).update(content(self._title(whole), "bold"))
        self._fill(launch_id=launch_id)

    def _title(self, chart: Chart) -> str:
        of = f" ({self._at + 1} of {len(self._charts)}, d)" if len(self._charts) > 1 else ""
        over = f"{chart.work_unit}/s over the bytes of {self._level or 'the nearest level'}"
        left = f"; {units.count(chart.left_out, 'more kernel')} with less time not drawn" if chart.left_out else ""
        return f"{over}{left}. {chart.title}{of}"

    def _fill(self, sort: Sort | None = None, launch_id: str | None = None) -> None:
        if self._chart is None:
            return
        table, before = self._table, self._table.row
        columns = roofline_points.columns(self._chart.work_unit)
        rows = ordered(roofline_points.points(self._chart), columns, sort or table.sort)
        wanted = launch_id or (before.kernel.launch if before else None)
        at = next((i for i, point in enumerate(rows) if point.kernel.launch == wanted), 0)
        table.fill(rows, sort, columns, at)
        self._share_out(len(rows))

    def on_resize(self) -> None:
        self._share_out(len(self._table.rows))

    def _share_out(self, rows: int) -> None:
        """Of the height, the picture gets what a table of all points, or of a few of many, leaves."""
        self._table.styles.height = 1 + min(rows, FEW if self.app.size.height < TALL else MANY)

    def on_row_table_sorted(self, event: RowTable.Sorted) -> None:
        self._fill(event.sort)

    def on_row_table_highlighted(self) -> None:
        point = self._table.row
        self.query_one(RooflinePlot).draw(self._chart, point.index if point else None)
        if point is not None and self._chart is not None:
            lines = roofline_points.figures(self.session.report, self._chart, point)
            name = content(f"{point.mark.sign}  {point.kernel.short_name} {point.kernel.configuration}", "bold")
            self.query_one("#roofline-told", Static).update(Content("\n").join([name, *map(content, lines)]))

    # ---- choosing --------------------------------------------------------------------------------------------------

    def _select(self, index: int) -> None:
        self._table.move_to(next(at for at, point in enumerate(self._table.rows) if point.index == index))

    def action_beside(self, way: int) -> None:
        """The next point to the left or to the right in the picture."""
        rows = sorted(self._table.rows, key=lambda point: (point.mark.intensity, point.mark.work_per_s, point.index))
        selected = self._table.row
        if selected is not None:
            at = rows.index(selected) + way
            self._select(rows[min(max(0, at), len(rows) - 1)].index)

    def on_roofline_plot_pointed(self, event: RooflinePlot.Pointed) -> None:
        self._select(event.index)
        if event.is_click:
            self._table.focus()

    def action_level(self) -> None:
        if self._charts:
            levels = [None, *dict.fromkeys(mark.level for mark in self._charts[self._at].marks)]
            at = levels.index(self._level) if self._level in levels else 0
            self._level = levels[(at + 1) % len(levels)]
            self._load()

    def action_device(self) -> None:
        if self._charts:
            self._at, self._level = (self._at + 1) % len(self._charts), None
            self._load()

    # ---- where else it is ------------------------------------------------------------------------------------------

    def on_row_table_opened(self) -> None:
        self.action_launch()

    def action_launch(self) -> None:
        point = self._table.row
        if point is not None and point.kernel.launch:
            self.go(ToLaunch(point.kernel.launch))
        elif point is not None:
            self.notify("A probe measured this itself: Nsight Compute saw no launch of it.", markup=False)

    def action_kernel(self) -> None:
        point = self._table.row
        launch = point and next((row for row in self.session.report.launches if row.id == point.kernel.launch), None)
        if launch:
            self.go(ToKernel(launch.name))

    async def show(self, target: Target) -> None:
        """The point of a launch, or of the one that speaks for it."""
        if not isinstance(target, ToRoofline):
            return
        row = next((row for row in self.session.report.launches if row.id == target.launch_id), None)
        wanted = row.spoken_for_by if row else target.launch_id
        for at, chart in enumerate(self._charts):
            if any(kernel.launch == wanted for kernel in chart.kernels):
                self._at, self._level = at, None
                self._load(launch_id=wanted)
                return
        self.notify("This launch has no roofline: ncu --set roofline counts what one needs.", markup=False)
