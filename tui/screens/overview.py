"""Overview: the verdict, what the devices did, what was found, and what was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from diag.model import units
from diag.render import answers, phrases, source_phrases
from diag.render.ceiling_table import ceilings
from diag.render.layout import columns, elide
from diag.render.measurement_table import measurements
from diag.render.palette import SEVERITIES
from diag.render.serving_tables import SERVING_TABLES
from diag.render.table import Table
from diag.rules.launch_report import LaunchRow
from diag.rules.report import Report
from diag.rules.timeline_report import DeviceRow, HardwareRow
from diag.tui.navigation import ToFinding, ToLaunch, ToTimeline
from diag.tui.screens.view import View
from diag.tui.text import content, safe
from diag.tui.widgets import device_bar
from diag.tui.widgets.finding_lines import finding_line
from diag.tui.widgets.page import Entry, Page, heading, prose

LONGEST_REASON = 240

TOP = 8
"""Rows of each list; the others are on the screens of their own."""


class Overview(View):
    NAME = "overview"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "toggle_formulas", "Formulas"),
        Binding("c", "app.copy_command", "Copy command", show=False),
        Binding("o", "app.open", "Open"),
    ]
    HELP = """
# Overview

The first lines say what the run is limited by; Enter opens that finding.

**Devices.** One bar for each process and device, from its first to its last GPU operation. Its parts do not overlap and
add up to the window: time in which a kernel ran counts as kernels, whatever ran beside it; *exposed comm* is
communication while no other kernel ran; *copies etc. alone* is the rest of busy. The figures below are unions that may
overlap, so that they need not add up. `f` shows the formulas. Enter goes to the timeline.

**Found.** ● critical, ◐ warning, ○ info, then what could be won at most. Enter opens one.
"""

    def __init__(self) -> None:
        super().__init__()
        self._with_formulas = False

    def body(self) -> ComposeResult:
        yield Page(self._entries, id="overview")

    def action_toggle_formulas(self) -> None:
        self._with_formulas = not self._with_formulas
        self.query_one(Page).refill()

    # ---- what the page says ------------------------------------------------------------------------------------

    def _entries(self, width: int) -> list[Entry]:
        report = self.session.report
        return [
            *self._verdict(report, width),
            *self._devices(report, width),
            *self._launches(report, width),
            *_tables(report, width),
            *self._findings(report, width),
            *self._untold(report, width),
            *_sources(report, width),
        ]

    def _verdict(self, report: Report, width: int) -> Iterator[Entry]:
        verdict, lead = report.verdict, phrases.lead(report)
        if lead:
            ink = SEVERITIES[lead.severity]
            title = prose(f"{ink.sign} {phrases.severity(report, lead)}: {verdict.title}", width, f"bold {ink.color}")
            yield Entry(title, partial(self.go, ToFinding(lead.id)), "verdict")
        else:
            yield Entry(prose(verdict.title, width, "bold"))
        for condition in phrases.conditions(report):
            yield Entry(prose(condition, width, indent="  "))
        if verdict.summary:
            yield Entry(prose(verdict.summary, width, indent="  "))

    def _devices(self, report: Report, width: int) -> Iterator[Entry]:
        if not report.devices:
            return
        yield heading("Devices")
        yield Entry(Content("  ") + device_bar.legend(report.devices))
        for row in report.devices:
            target = ToTimeline(row.source, row.window, row.process, row.device)
            yield Entry(self._device(report, row, width), partial(self.go, target), target)
        for shared in report.hardware:
            if shared.window_ns:
                yield Entry(prose(_shared(shared), width, indent="    ", first="  "))

    def _device(self, report: Report, row: DeviceRow, width: int) -> Content:
        name = f"{phrases.device(report, row, hardware=True)}, window {units.time(row.window_ns)}"
        shown = [
            content(name, "bold", width),
            Content("  ") + device_bar.bar(row, width - 4),
            prose(", ".join(device_bar.figures(report, row)), width, indent="  "),
        ]
        if self._with_formulas:
            shown += [
                prose(f"{label} {units.time(ns)} = {formula}", width, "dim", indent="    ")
                for label, ns, formula in device_bar.formulas(row)
            ]
        return Content("\n").join(shown)

    def _launches(self, report: Report, width: int) -> Iterator[Entry]:
        """Where there is no timeline, the profiled kernels stand in the place of the devices."""
        speaking = [row for row in report.launches if row.id == row.spoken_for_by]
        if report.devices or not speaking:
            return
        yield heading(f"Kernels that Nsight Compute measured ({len(speaking)})")
        longest = sorted(speaking, key=lambda row: -(row.duration_ns or 0.0))[:TOP]
        for row in longest:
            yield Entry(_launch(row, width), partial(self.go, ToLaunch(row.id)), row.id)

    def _findings(self, report: Report, width: int) -> Iterator[Entry]:
        if not report.findings:
            return
        yield heading(f"Found ({len(report.findings)})")
        for finding in report.findings[:TOP]:
            yield Entry(finding_line(report, finding, width), partial(self.go, ToFinding(finding.id)), finding.id)
        if (more := len(report.findings) - TOP) > 0:
            yield Entry(Content(f"  … and {more:,} more on screen 2"), self._all_findings)

    def _untold(self, report: Report, width: int) -> Iterator[Entry]:
        rules = {answer.rule for answer in report.cannot_tell}
        clear = {answer.rule for answer in report.clear}
        reasons = answers.cannot_tell_in_short(report)
        said = f"Clear: {units.count(len(clear), 'rule')}. Cannot tell: {units.count(len(rules), 'rule')}."
        first = f" {reasons[0]}." if reasons else ""
        yield heading("Not found")
        yield Entry(prose(said + elide(first, LONGEST_REASON), width, indent="  "), self._all_findings, "untold")

    def _all_findings(self) -> None:
        self.diag.call_later(self.diag.action_view, "findings")


def _shared(row: HardwareRow) -> str:
    return (
        f"{row.name or row.uuid} was used by pids {', '.join(map(str, row.processes))}: together busy "
        f"{units.share(row.busy_ns / row.window_ns)}, idle {units.share(row.idle_ns / row.window_ns)} "
        f"of {units.time(row.window_ns)}"
    )


def _launch(row: LaunchRow, width: int) -> Content:
    sol = row.sol
    shares = ((label, pct) for label, pct in (("SM", sol.sm_pct), ("memory", sol.memory_pct)) if pct is not None)
    figures = [units.time(row.duration_ns).rjust(9) if row.duration_ns is not None else "        -"]
    figures += [f"{label} {units.quantity(pct, '%')}" for label, pct in shares]
    start = f"  {'  '.join(figures)}  {row.bound or ''}  "
    return Content(start) + content(f"{row.short_name} {row.configuration}", room=max(16, width - len(start)))


def _tables(report: Report, width: int) -> Iterator[Entry]:
    """Benchmarks and loads on servers have no timeline: what was measured, as the report in text has it."""
    for table in (table_of(report, TOP) for table_of in (measurements, *SERVING_TABLES, ceilings)):
        if table.rows:
            yield heading(safe(table.title))
            yield from (Entry(Content(line)) for line in _set(table, width))
            yield from (Entry(prose(note, width, "dim", indent="  ")) for note in table.notes)


def _set(table: Table, width: int) -> Sequence[str]:
    """Its lines, of which nothing is left to make safe: that would close up the columns."""
    made_safe = Table(
        table.title,
        table.header,
        [[safe(cell) for cell in row] for row in table.rows],
        table.name_column,
        wraps_names=table.wraps_names,
    )
    return columns(made_safe, width, "  ")


def _sources(report: Report, width: int) -> Iterator[Entry]:
    yield heading("Read")
    for source in report.sources:
        lines = [prose(source.path, width, indent="    ", first="  ")]
        lines.append(prose(source_phrases.description(source), width, "dim", indent="    "))
        lines += [prose(note, width, indent="    ") for note in report.notes.get(source.id, ())]
        yield Entry(Content("\n").join(lines), lambda: None, ("source", source.id))
