"""Kernels: all of them with what they take, and the launches of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import ContentSwitcher, Static

from diag.model import units
from diag.tui import kernel_rows
from diag.tui.kernel_rows import Entry
from diag.tui.navigation import Target, ToKernel, ToLaunch, ToRoofline
from diag.tui.screens.view import View
from diag.tui.text import content
from diag.tui.widgets.filter_box import FilterBox
from diag.tui.widgets.instance_list import InstanceList
from diag.tui.widgets.row_table import RowTable, Sort, ordered


class Kernels(View):
    NAME = "kernels"
    HELP = """
# Kernels

A **kernel** is a function that runs on the GPU. Each row is one kernel on one device, with all of its launches
together; `g` puts those of the same name on all devices and processes together.

- **share** is of the time that all kernels of the device take together: by Amdahl's law only what takes time can give
  time back. **of window** is the part of the run during which this kernel was on the device.
- **median, min, max** are of its launches. A maximum far above the median: look at the launches with `Enter`.
- **occ.** is theoretical occupancy: the warps that can reside on an SM, of those that it has room for. It is no goal by
  itself.
- **nearest roof** says, where Nsight Compute has profiled the kernel, which limit of the device it comes nearest to.

`/` filters by a part of the name. A `#` in it stands for any number: `tile_#x#`.
"""
    CSS = """
    Kernels ContentSwitcher { height: 1fr; }
    Kernels #kernel-summary { height: 1; }
    Kernels #kernel-detail { height: auto; max-height: 4; border-top: solid $foreground 30%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "group", "Group"),
        Binding("l", "launch", "Profile"),
        Binding("r", "roofline", "Roofline"),
        Binding("escape", "back", "Back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._is_grouped = False
        self._entries: Sequence[Entry] = ()

    def body(self) -> ComposeResult:
        with ContentSwitcher(initial="kernel-list"):
            with Vertical(id="kernel-list"):
                yield Static(id="kernel-summary")
                yield FilterBox("part of a name; # stands for any number")
                yield RowTable[Entry](kernel_rows.columns([]), Sort("total"), dom_id="kernels-table")
                yield Static(id="kernel-detail")
            yield InstanceList("kernel-instances")

    def on_mount(self) -> None:
        self._profiles = kernel_rows.profiles(self.session.report)
        self._load()
        self._table.focus()

    @property
    def _table(self) -> RowTable[Entry]:
        return self.query_one("#kernels-table", RowTable)

    @property
    def _instances(self) -> InstanceList:
        return self.query_one(InstanceList)

    @property
    def _shows_instances(self) -> bool:
        return self.query_one(ContentSwitcher).current == "kernel-instances"

    # ---- the list --------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        self._entries = kernel_rows.entries(self.session.report, is_grouped=self._is_grouped)
        self._fill()

    def _fill(self, sort: Sort | None = None) -> None:
        """The rows that match, in order, with the cursor where its kernel went."""
        table, wanted = self._table, self.query_one(FilterBox).value
        before = table.row
        sort = sort or table.sort
        columns = kernel_rows.columns(self._entries)
        rows = ordered(kernel_rows.matching(self._entries, wanted), columns, sort)
        at = next((i for i, row in enumerate(rows) if before is not None and row.name == before.name), 0)
        table.fill(rows, sort, columns, at)
        self.query_one("#kernel-summary", Static).update(content(self._summary(len(rows))))

    def _summary(self, shown: int) -> str:
        if not self._entries:
            return "No kernel was captured. Capture a timeline with: nsys profile, or torch.profiler"
        of = f"{shown:,} of " if shown < len(self._entries) else ""
        grouped = ", grouped by name" if self._is_grouped else ""
        total_ns = sum(row.total_ns for row in self.session.report.kernels)
        return f"{of}{units.count(len(self._entries), 'kernel')}{grouped}, {units.time(total_ns)} of kernel time"

    def action_search(self) -> None:
        if not self._shows_instances:
            self.query_one(FilterBox).begin()

    def on_input_changed(self) -> None:
        self._fill()

    def on_filter_box_left(self) -> None:
        self._table.focus()

    def action_group(self) -> None:
        if not self._shows_instances:
            self._is_grouped = not self._is_grouped
            self._load()

    def on_row_table_sorted(self, event: RowTable.Sorted) -> None:
        self._fill(event.sort)

    def on_row_table_highlighted(self, event: RowTable.Highlighted) -> None:
        if event.table is self._table:
            self.query_one("#kernel-detail", Static).update(self._detail())

    def _detail(self) -> Content:
        entry = self._table.row
        if entry is None:
            return content("No kernel has such a name." if self._entries else "")
        profile = kernel_rows.profile_of(self._profiles, entry)
        told = f"profiled as {profile.id} (l: launch, r: roofline)" if profile else "not profiled by Nsight Compute"
        devices = f"{units.count(len(entry.parts), 'device')}, " if len(entry.parts) > 1 else ""
        times = f"{units.time(entry.min_ns)} to {units.time(entry.max_ns)}"
        return content(f"{devices}{times} each; {told}", "dim") + Content("\n") + content(entry.name)

    # ---- the launches of one ---------------------------------------------------------------------------------------

    def on_row_table_opened(self, event: RowTable.Opened) -> None:
        entry = self._table.row
        if event.table is self._table and entry is not None:
            self._open(entry)

    def _open(self, entry: Entry) -> None:
        self.query_one(ContentSwitcher).current = "kernel-instances"
        self._instances.open(entry)

    def action_back(self) -> None:
        if self._shows_instances:
            self.query_one(ContentSwitcher).current = "kernel-list"
            self._table.focus()

    async def show(self, target: Target) -> None:
        if not isinstance(target, ToKernel):
            return
        entry = kernel_rows.named(self.session.report, target.name)
        if entry is not None:
            self._open(entry)
        else:
            self.action_back()
            self._tell("No timeline of this case has this kernel.")

    # ---- where else it is ------------------------------------------------------------------------------------------

    @property
    def _entry(self) -> Entry | None:
        return self._instances.entry if self._shows_instances else self._table.row

    def action_launch(self) -> None:
        self._to_profile(ToLaunch)

    def action_roofline(self) -> None:
        self._to_profile(ToRoofline)

    def _to_profile(self, target: type[ToLaunch] | type[ToRoofline]) -> None:
        profile = kernel_rows.profile_of(self._profiles, self._entry) if self._entry else None
        if profile is not None:
            self.go(target(profile.id))
        else:
            self._tell("Nsight Compute has not profiled this kernel: open its report together with this trace.")

    def _tell(self, text: str) -> None:
        self.notify(text, markup=False)
