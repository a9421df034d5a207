"""Where the timeline can be sent: gaps, places of findings, matches of a search."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from textual import work

from diag.model import units
from diag.rules.evidence_spans import is_about_gaps
from diag.tui.screens.timeline_commands import Commands
from diag.tui.screens.timeline_panel import Choice, Panel
from diag.tui.timeline import evidence
from diag.tui.timeline.evidence import Stretches
from diag.tui.timeline.ruler import exact
from diag.tui.timeline.search import Matches, matches_on, names_with, together

MOST_LISTED = 200


class Jumps(Commands):
    _finding_at = -1
    _stretches: Stretches | None = None
    _stretch_at = 0
    _matches: Matches | None = None
    _match_at = 0

    # ---- gaps ------------------------------------------------------------------------------------------------------

    @work(group="timeline-jump", exclusive=True)
    async def action_gap(self, forward: bool) -> None:
        if (line := self.device_line()) is None:
            return
        chart = self.chart
        shortest_ns = chart.place.part.column_ns
        origin_ns = self.origin_of(line)
        time_ns = chart.place.cursor_ns + origin_ns
        gap = await self.reader.ask(lambda m: m.device(line.tracks).next_gap(time_ns, shortest_ns, forward=forward))
        if gap is None:
            where = "after" if forward else "before"
            self.say(
                f"no gap as long as a column ({units.time(shortest_ns)}) {where} the cursor: zoom in, or list with G"
            )
            return
        chart.select_key(line.key)
        chart.go(chart.place.reaching(gap[0] - origin_ns, gap[1] - origin_ns))
        self.say(f"gap of {units.time(gap[1] - gap[0])}: Enter says why")

    @work(group="timeline-jump", exclusive=True)
    async def action_longest_gaps(self) -> None:
        if (line := self.device_line()) is None:
            return
        origin_ns = self.origin_of(line)
        gaps = await self.reader.ask(lambda m: m.device(line.tracks).longest_gaps(MOST_LISTED))
        choices = [
            Choice(f"{units.time(end_ns - start_ns):>10}   at {exact(start_ns - origin_ns)}", (start_ns, end_ns))
            for start_ns, end_ns in gaps
        ]
        heading = f"{line.label}: longest gaps" if gaps else f"{line.label}: no gaps"
        chosen = await self.app.push_screen_wait(Panel(heading, [], choices))
        if chosen is not None:
            start_ns, end_ns = chosen
            self.chart.select_key(line.key)
            self.chart.go(self.chart.place.showing(start_ns - origin_ns, end_ns - origin_ns))

    # ---- findings --------------------------------------------------------------------------------------------------

    @work(group="timeline-jump", exclusive=True)
    async def action_finding(self, step: int) -> None:
        findings = evidence.with_time(self.session.report.findings)
        if not findings:
            self.say("no finding speaks of a part of this timeline")
            return
        first = self._finding_at < 0 and step < 0
        self._finding_at = (self._finding_at + step + (1 if first else 0)) % len(findings)
        finding = findings[self._finding_at]
        self.say(f"looking for the places of: {finding.title} …")
        if is_about_gaps(finding) and (line := self.line_of(finding.subject)):
            tracks = line.tracks
            gaps = await self.reader.ask(lambda m: m.device(tracks).longest_gaps(evidence.MOST))
            self._stretches = Stretches(finding, "gaps", sorted(gaps))
        else:
            self._stretches = await self.session.ask(lambda case: evidence.stretches_of(case, finding))
        self._stretch_at = self._stretches.longest
        self._show_stretch(f"finding {self._finding_at + 1} of {len(findings)}", is_jump=True)

    def action_stretch(self, step: int) -> None:
        if self._stretches is None:
            self.say("f chooses a finding first")
            return
        self._stretch_at = (self._stretch_at + step) % len(self._stretches.spans)
        self._show_stretch(f"finding {self._finding_at + 1}", is_jump=False)

    def _show_stretch(self, head: str, *, is_jump: bool) -> None:
        assert self._stretches is not None
        subject, spans = self._stretches.finding.subject, self._stretches.spans
        if line := self.line_of(subject):
            self.chart.select_key(line.key)
        origin_ns = self.origins.get(subject.source, 0)
        start_ns, end_ns = (time - origin_ns for time in spans[self._stretch_at])
        place = self.chart.place
        self.chart.go(place.showing(start_ns, end_ns) if is_jump else place.reaching(start_ns, end_ns))
        number = f"place {self._stretch_at + 1:,} of {len(spans):,}" + (
            " longest" if len(spans) == evidence.MOST else ""
        )
        self.say(f"{head}, {number}: {self._stretches.finding.title} · {self._stretches.says}")

    # ---- search ----------------------------------------------------------------------------------------------------

    @work(group="timeline-jump", exclusive=True)
    async def search(self, text: str) -> None:
        """Line by line, so that it can be panned meanwhile."""
        if not text:
            self._matches = None
            self._highlight(np.empty(0, np.int64))
            self.say("")
            self.chart.go(self.chart.place)
            return
        self.say(f"searching for {text} …")
        name_ids = await self.reader.ask(lambda m: names_with(m, text))
        parts = [await self.reader.ask(partial(matches_on, line=line, name_ids=name_ids)) for line in self.chart.lines]
        self._matches = together(text, name_ids, [part for part in parts if part is not None])
        self._highlight(name_ids)
        first = self._matches.after(self.chart.place.cursor_ns)
        if first is None:
            self.say(f"nothing on these rows is called {text}")
            self.chart.go(self.chart.place)
            return
        self._match_at = first
        self._show_match()

    def action_match(self, step: int) -> None:
        if not self._matches:
            self.say("/ searches for a name first")
            return
        self._match_at = (self._match_at + step) % len(self._matches)
        self._show_match()

    def _show_match(self) -> None:
        assert self._matches is not None
        key, start_ns, end_ns = self._matches.at(self._match_at)
        self.chart.select_key(key)
        self.chart.go(self.chart.place.reaching(start_ns, max(end_ns, start_ns + 1)))
        self.say(f"match {self._match_at + 1:,} of {len(self._matches):,} for {self._matches.text}: > and < go on")

    def _highlight(self, name_ids: NDArray[np.int64]) -> None:
        self.chart.looks = replace(self.chart.looks, found=name_ids)
