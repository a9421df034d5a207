"""Kernels: all of them with what they take, and the launches of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import ContentSwitcher

from diag.model import units
from diag.rules.launch_report import LaunchRow
from diag.tui import instances, kernel_rows
from diag.tui.instances import Instance
from diag.tui.kernel_rows import Entry
from diag.tui.navigation import Target, ToKernel, ToLaunch, ToRoofline
from diag.tui.screens.view import View
from diag.tui.text import content
from diag.tui.widgets.filtered_list import FilteredList, Listing
from diag.tui.widgets.instance_list import InstanceList
from diag.tui.widgets.row_table import Sort


class Kernels(View):
    NAME = "kernels"
    AUTO_FOCUS = "RowTable"  # the filter box is the first, before its style hides it
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

`/` filters by a part of the name. A `#` in it stands for any number: `tile_#x#`. `t` shows the longest launch in the
timeline.
"""
    CSS = """
    Kernels ContentSwitcher { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "timeline", "Timeline"),
        Binding("l", "launch", "Profile"),
        Binding("r", "roofline", "Roofline"),
        Binding("escape", "back", "Back", show=False),
    ]

    def body(self) -> ComposeResult:
        with ContentSwitcher(initial="kernels-list"):
            yield FilteredList[Entry](
                Listing(
                    rows=lambda is_grouped: kernel_rows.entries(self.session.report, is_grouped=is_grouped),
                    matching=kernel_rows.matching,
                    columns=kernel_rows.columns,
                    key=lambda entry: entry.name,
                    summary=self._summary,
                    detail=self._detail,
                ),
                Sort("total"),
                prompt="part of a name; # stands for any number",
                is_grouped=False,
                dom_id="kernels",
            )
            yield InstanceList("kernel-instances")

    def on_mount(self) -> None:
        self._list.table.focus()

    @property
    def _list(self) -> FilteredList[Entry]:
        return self.query_one(FilteredList)

    @property
    def _instances(self) -> InstanceList:
        return self.query_one(InstanceList)

    @property
    def _shows_instances(self) -> bool:
        return self.query_one(ContentSwitcher).current == "kernel-instances"

    # ---- the list --------------------------------------------------------------------------------------------------

    def _summary(self, entries: Sequence[Entry], shown: int, is_grouped: bool) -> str:
        if not entries:
            return "No kernel was captured. Capture a timeline with: nsys profile, or torch.profiler"
        of = f"{shown:,} of " if shown < len(entries) else ""
        grouped = ", grouped by name" if is_grouped else ""
        total_ns = sum(row.total_ns for row in self.session.report.kernels)
        return f"{of}{units.count(len(entries), 'kernel')}{grouped}, {units.time(total_ns)} of kernel time"

    def _detail(self, entry: Entry) -> Content:
        profile = self._profile(entry)
        told = f"profiled as {profile.id} (l: launch, r: roofline)" if profile else "not profiled by Nsight Compute"
        devices = f"{units.count(len(entry.parts), 'device')}, " if len(entry.parts) > 1 else ""
        times = f"{units.time(entry.min_ns)} to {units.time(entry.max_ns)}"
        return content(f"{devices}{times} each; {told}", "dim") + Content("\n") + content(entry.name)

    def action_search(self) -> None:
        if not self._shows_instances:
            self._list.begin_search()

    # ---- the launches of one ---------------------------------------------------------------------------------------

    def on_filtered_list_opened(self) -> None:
        if self._list.row is not None:
            self._open(self._list.row)

    def _open(self, entry: Entry) -> None:
        self.query_one(ContentSwitcher).current = "kernel-instances"
        self._instances.open(entry)

    def action_back(self) -> None:
        if self._shows_instances:
            self.query_one(ContentSwitcher).current = "kernels-list"
            self._list.table.focus()

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
        return self._instances.entry if self._shows_instances else self._list.row

    @cached_property
    def _profiles(self) -> Mapping[str, LaunchRow]:
        return kernel_rows.profiles(self.session.report)

    def _profile(self, entry: Entry) -> LaunchRow | None:
        return kernel_rows.profile_of(self._profiles, entry)

    @work(exclusive=True, group="timeline")
    async def action_timeline(self) -> None:
        """The launch with the cursor, or the longest of the kernel with the cursor."""
        row = self._instances.row if self._shows_instances else await self._longest(self._list.row)
        if row is not None:
            self.go(instances.place_of(row))

    async def _longest(self, entry: Entry | None) -> Instance | None:
        devices = self.session.report.devices
        if entry is None:
            return None
        return await self.session.ask(lambda case: instances.longest(case, entry.parts, devices))

    def action_launch(self) -> None:
        self._to_profile(ToLaunch)

    def action_roofline(self) -> None:
        self._to_profile(ToRoofline)

    def _to_profile(self, target: type[ToLaunch] | type[ToRoofline]) -> None:
        profile = self._profile(self._entry) if self._entry else None
        if profile is not None:
            self.go(target(profile.id))
        else:
            self._tell(kernel_rows.NOT_PROFILED)

    def _tell(self, text: str) -> None:
        self.notify(text, markup=False)
