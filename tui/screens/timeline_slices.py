"""What lies under the cursor of the timeline: its details, what it is linked to, why a device was idle there."""

from __future__ import annotations

from collections.abc import Sequence

from textual import work

from diag.model import units
from diag.tui.kernel_rows import NOT_PROFILED, profile_named
from diag.tui.navigation import ToKernel, ToLaunch, ToQuery, ToRoofline
from diag.tui.screens.timeline_commands import Commands
from diag.tui.screens.timeline_panel import Choice, Panel
from diag.tui.timeline import gap_text
from diag.tui.timeline.details import Details, Link, details_of
from diag.tui.timeline.frame import Found, next_slice, slice_at
from diag.tui.timeline.gap_cause import cause_of
from diag.tui.timeline.lines import Line
from diag.tui.timeline.rows_sql import row_sql, rows_sql, table_of
from diag.tui.timeline.ruler import exact

Goal = tuple[str, object]
"""What a choice of a panel does, and with what."""


class SliceCommands(Commands):
    @work(group="timeline-jump", exclusive=True)
    async def action_slice(self, step: int) -> None:
        line, part, time_ns = self.chart.line, self.chart.place.part, self.chart.place.cursor_ns
        found = await self.reader.ask(lambda m: next_slice(m, line, part, time_ns, forward=step > 0))
        if found is None:
            self.say("no further operation on this row")
            return
        origin_ns = self.origin_of(line)
        start_ns = found.start_ns - origin_ns
        self.chart.go(self.chart.place.reaching(start_ns, max(found.end_ns - origin_ns, start_ns + 1)))

    @work(group="timeline-jump", exclusive=True)
    async def action_details(self) -> None:
        line, place = self.chart.line, self.chart.place
        if line.kind in ("thread", "counters"):
            self.chart.toggle_group()
            return
        origin_ns = self.origin_of(line)
        if line.kind == "device":
            time_ns = place.cursor_ns + origin_ns
            if gap := await self.reader.ask(lambda m: m.device(line.tracks).gap_at(time_ns)):
                await self._why_idle(line, gap)
                return
        found = await self._under_cursor()
        if found is None:
            return
        if (known := await self._details(found, line)) is None:
            facts = [("name", found.title), ("duration", units.time(found.end_ns - found.start_ns))]
            await self._panel(found.title, facts, [], line)
            return
        choices: list[Choice[Goal]] = [Choice(f"go to what it is: {link.says}", ("link", link)) for link in known.links]
        if known.kernel is not None:
            choices.append(Choice("all instances of this kernel", ("kernel", known.kernel)))
        choices += [Choice("zoom to it", ("zoom", found)), Choice("its row as SQL", ("sql", row_sql(found)))]
        await self._panel(known.title, known.facts, choices, line)

    @work(group="timeline-jump", exclusive=True)
    async def action_linked(self) -> None:
        line, found = self.chart.line, await self._under_cursor()
        known = await self._details(found, line) if found else None
        if known is None or not known.links:
            self.say("no launching call and no launched operation is known of this")
            return
        await self._follow(known.links[0], line)

    @work(group="timeline-jump", exclusive=True)
    async def action_kernel(self) -> None:
        if (name := await self._kernel_under_cursor()) is not None:
            self.go(ToKernel(name))

    @work(group="timeline-jump", exclusive=True)
    async def action_launch(self) -> None:
        await self._to_profile(ToLaunch)

    @work(group="timeline-jump", exclusive=True)
    async def action_roofline(self) -> None:
        await self._to_profile(ToRoofline)

    async def _to_profile(self, target: type[ToLaunch] | type[ToRoofline]) -> None:
        if (name := await self._kernel_under_cursor()) is None:
            return
        profile = profile_named(self.session.report, name)
        if profile is None:
            self.say(NOT_PROFILED)
        else:
            self.go(target(profile.id))

    async def _kernel_under_cursor(self) -> str | None:
        line, found = self.chart.line, await self._under_cursor()
        known = await self._details(found, line) if found else None
        if known is None or known.kernel is None:
            self.say("no kernel lies under the cursor")
            return None
        return known.kernel

    @work(group="timeline-jump", exclusive=True)
    async def action_sql(self) -> None:
        """Of the selection, else of what is shown."""
        line, place = self.chart.line, self.chart.place
        start_ns, end_ns = place.selection or (place.part.start_ns, place.part.end_ns)
        sql = await self.reader.ask(lambda m: rows_sql(m, line, start_ns, end_ns))
        if sql is None:
            self.say("the case keeps no rows of this; diag export --format parquet writes its ranges")
            return
        self.go(ToQuery(sql))

    async def _under_cursor(self) -> Found | None:
        line, place = self.chart.line, self.chart.place
        found = await self.reader.ask(lambda m: slice_at(m, line, place.part, place.cursor_ns))
        if found is None:
            self.say("nothing lies under the cursor on this row")
        return found

    async def _details(self, found: Found, line: Line) -> Details | None:
        """None for what the case keeps as columns only."""
        if found.row_id < 0:
            return None
        table = table_of(found.track) if found.track is not None else "cpu_range"
        origin_ns = self.origin_of(line)
        return await self.session.ask(lambda case: details_of(case, table, found.row_id, origin_ns))

    async def _panel(
        self, title: str, facts: Sequence[tuple[str, str]], choices: Sequence[Choice[Goal]], line: Line
    ) -> None:
        match await self.app.push_screen_wait(Panel(title, facts, choices)):
            case "link", Link() as link:
                await self._follow(link, line)
            case "kernel", str(name):
                self.go(ToKernel(name))
            case "zoom", Found() as found:
                origin_ns = self.origin_of(line)
                self.chart.go(self.chart.place.showing(found.start_ns - origin_ns, found.end_ns - origin_ns))
            case "sql", str(sql):
                self.go(ToQuery(sql))

    async def _follow(self, link: Link, line: Line) -> None:
        """To the line that another row of the case lies on."""
        key = await self.reader.ask(lambda m: gap_text.line_of(m, link, line.group.source))
        if key is not None:
            self.chart.select_key(key)
        origin_ns = self.origin_of(line)
        self.chart.go(
            self.chart.place.reaching(link.start_ns - origin_ns, max(link.end_ns, link.start_ns + 1) - origin_ns)
        )

    async def _why_idle(self, line: Line, gap: tuple[int, int]) -> None:
        """What caused a gap, on the clock of its source, and what the host did meanwhile."""
        self.say("looking for what the host did …")
        group, origin_ns = line.group, self.origin_of(line)
        others = await self.reader.ask(lambda m: m.others_of(group))
        enders = await self.reader.ask(lambda m: gap_text.enders_of(m, line, gap[1]))
        cause = await self.session.ask(lambda case: cause_of(case, gap, enders, others))
        facts = [("length", units.time(gap[1] - gap[0])), ("start", exact(gap[0] - origin_ns)), *gap_text.parts(cause)]
        facts += await self.reader.ask(lambda m: gap_text.host_of(m, group, cause.thread_id, gap))
        choices: list[Choice[Goal]] = []
        if cause.call_id is not None and cause.call_start_ns is not None:
            link = Link("", "api_call", cause.call_id, cause.call_start_ns, cause.call_start_ns + 1)
            choices.append(Choice(f"go to the launching call {cause.call}", ("link", link)))
        self.say("")
        await self._panel("Why the device was idle", facts, choices, line)
