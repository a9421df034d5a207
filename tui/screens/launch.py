"""Launch: what Nsight Compute measured of one launch, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import OperationalError
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import ContentSwitcher

from diag.errors import DiagError
from diag.model import units
from diag.rules.launch_report import LaunchRow
from diag.tui import launch_rows
from diag.tui.launch_facts import facts_of
from diag.tui.launch_rows import Entry
from diag.tui.navigation import Target, ToKernel, ToLaunch, ToRoofline
from diag.tui.screens.view import View
from diag.tui.text import content
from diag.tui.widgets.filtered_list import FilteredList, Listing
from diag.tui.widgets.launch_page import LaunchPage
from diag.tui.widgets.row_table import Sort

NOTHING = (
    "No launch of this case was measured by Nsight Compute. Measure one with: ncu --set full -k regex:KERNEL -c 1 -o "
    "kernels PROGRAM, and open its report, alone or together with a timeline."
)


class Launch(View):
    NAME = "launch"
    HELP = """
# Launch

Nsight Compute runs a kernel several times, alone and under its own clocks, to count what one run cannot. So its times
are not those of the run; see *Conditions*.

- **Speed**: *speed of light* is the busiest part of the SMs, of the memory system and of DRAM, as a share of what that
  part can sustain. One side near 100 %: that is the limit, give it less work. Both below 60 %: the kernel waits, and
  its stalls say for what.
- **Memory**: the way of the bytes. A cache that is asked for much and passes on little does its work.
- **Occupancy**: warps on an SM, of those that it has room for. *Theoretical* is what the launch allows, and *limits*
  names the resource that is short; *achieved* is what was there on average.
- **Stalls**: what warps waited for. A stall alone proves nothing: where something is at its limit, it is only the sign
  of that.
- **Code**: instructions by the samples that warps left there. A warp waits *at* an instruction for what an earlier one
  asked for. `m` puts those of a source line together.
- **NVIDIA**: what its own rules said. ● is a fault, ○ none, × could not be told.
"""
    CSS = """
    Launch ContentSwitcher { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "step(1)", "Next"),
        Binding("p", "step(-1)", "Prev"),
        Binding("k", "kernel", "Kernel"),
        Binding("r", "roofline", "Roofline"),
        Binding("escape", "back", "List"),
    ]

    def body(self) -> ComposeResult:
        with ContentSwitcher(initial="launches-list"):
            yield FilteredList[Entry](
                Listing(
                    rows=lambda is_grouped: launch_rows.entries(self.session.report, is_grouped=is_grouped),
                    matching=launch_rows.matching,
                    columns=launch_rows.columns,
                    key=lambda entry: entry.row.id,
                    summary=self._summary,
                    detail=lambda entry: content(entry.row.name),
                ),
                Sort("time"),
                prompt="part of a kernel's name",
                is_grouped=True,
                dom_id="launches",
            )
            yield LaunchPage()

    def on_mount(self) -> None:
        self._list.table.focus()
        if len(self.session.report.launches) == 1:
            self.open(self.session.report.launches[0])

    @property
    def _list(self) -> FilteredList[Entry]:
        return self.query_one(FilteredList)

    @property
    def _page(self) -> LaunchPage:
        return self.query_one(LaunchPage)

    @property
    def _shows_page(self) -> bool:
        return self.query_one(ContentSwitcher).current == "launch-page"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that mean nothing in the list are not offered there."""
        if not self.is_mounted or action not in ("step", "back"):
            return super().check_action(action, parameters)
        return self._shows_page

    # ---- the list --------------------------------------------------------------------------------------------------

    def _summary(self, entries: Sequence[Entry], shown: int, is_grouped: bool) -> str:
        if not entries:
            return NOTHING
        of = f"{shown:,} of " if shown < len(entries) else ""
        launches = units.count(len(self.session.report.launches), "launch")
        if is_grouped:
            kernels = units.count(len(entries), "kernel")
            return f"{of}{kernels}, {launches}; the one of median duration speaks for its kernel"
        return f"{of}{launches}, each by itself"

    def action_search(self) -> None:
        if not self._shows_page:
            self._list.begin_search()

    def on_filtered_list_opened(self) -> None:
        if self._list.row is not None:
            self.open(self._list.row.row)

    # ---- one launch ------------------------------------------------------------------------------------------------

    def open(self, row: LaunchRow) -> None:
        self.query_one(ContentSwitcher).current = "launch-page"
        self.refresh_bindings()
        self._page.begin(row)
        self._read(row)

    @work(exclusive=True, group="launch")
    async def _read(self, row: LaunchRow) -> None:
        try:
            self._page.fill(await self.session.ask(lambda case: facts_of(case, row)))
        except (DiagError, OperationalError) as error:
            self._page.fail(f"The launch cannot be read: {error}")

    def action_step(self, way: int) -> None:
        """The launch beside the one that is shown, in the order of the file."""
        row, rows = self._page.row, self.session.report.launches
        if self._shows_page and row is not None:
            at = next(i for i, each in enumerate(rows) if each.id == row.id) + way
            if 0 <= at < len(rows):
                self.open(rows[at])

    def action_back(self) -> None:
        if self._shows_page:
            self.query_one(ContentSwitcher).current = "launches-list"
            self.refresh_bindings()
            self._list.table.focus()

    async def show(self, target: Target) -> None:
        if not isinstance(target, ToLaunch):
            return
        row = next((row for row in self.session.report.launches if row.id == target.launch_id), None)
        if row is not None:
            self.open(row)
        else:
            self.notify("This report has no such launch.", markup=False)

    # ---- where else it is ------------------------------------------------------------------------------------------

    @property
    def _row(self) -> LaunchRow | None:
        if self._shows_page:
            return self._page.row
        return self._list.row.row if self._list.row else None

    def action_kernel(self) -> None:
        if row := self._row:
            self.go(ToKernel(row.name))

    def action_roofline(self) -> None:
        if row := self._row:
            self.go(ToRoofline(row.id))
