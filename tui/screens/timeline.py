"""Timeline: rows of devices, streams and threads over time, from the whole run down to one kernel."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import ClassVar

import numpy as np
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from diag.errors import DiagError
from diag.render.timeline_rows import Group
from diag.rules import thresholds
from diag.timeline.elsewhere import elsewhere
from diag.tui.navigation import Target, ToTimeline
from diag.tui.screens.timeline_help import HELP
from diag.tui.screens.timeline_jumps import Jumps
from diag.tui.screens.timeline_slices import SliceCommands
from diag.tui.timeline.cells import first_letters
from diag.tui.timeline.drawing import Looks
from diag.tui.timeline.frame import frame_of
from diag.tui.timeline.lines import HEADER, Line, StepSlices
from diag.tui.timeline.material import Material, Reader
from diag.tui.timeline.measuring import Said, measured_text
from diag.tui.timeline.pens import pens
from diag.tui.timeline.place import Place
from diag.tui.timeline.ruler import exact
from diag.tui.widgets.timeline_keys import KeyedChart

TALL, MOST_LINES, FEWEST_LINES = 30, 9, 5
"""Lines of what was measured, by the height of the terminal."""

COMMANDS = frozenset(
    {
        "gap",
        "longest_gaps",
        "finding",
        "stretch",
        "match",
        "slice",
        "details",
        "linked",
        "kernel",
        "launch",
        "roofline",
        "sql",
    }
)

NOTHING = "These inputs have no timeline: they hold launches or measurements that were taken one by one."


class Timeline(Jumps, SliceCommands):
    NAME = "timeline"
    HELP = HELP
    CSS = """
    #chart { height: 1fr; }
    #timeline-status { height: auto; max-height: 40%; background: $panel; padding: 0 1; }
    #timeline-search { dock: bottom; margin-bottom: 1; border: none; height: 1; padding: 0 1; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "gap(True)", "Gap"),
        Binding("N", "gap(False)", "Gap before", show=False),
        Binding("G", "longest_gaps", "Longest gaps", show=False),
        Binding("f", "finding(1)", "Finding"),
        Binding("F", "finding(-1)", "Finding before", show=False),
        Binding("e", "stretch(1)", "Next place of the finding", show=False),
        Binding("E", "stretch(-1)", "Place of the finding before", show=False),
        Binding("greater_than_sign", "match(1)", "Next match", show=False),
        Binding("less_than_sign", "match(-1)", "Match before", show=False),
        Binding("right_square_bracket", "slice(1)", "Next operation of the row", show=False),
        Binding("left_square_bracket", "slice(-1)", "Operation before", show=False),
        Binding("enter", "details", "Details"),
        Binding("c", "linked", "Its call, or what it launched", show=False),
        Binding("k", "kernel", "Kernel", show=False),
        Binding("l", "launch", "Profile", show=False),
        Binding("r", "roofline", "Roofline", show=False),
        Binding("x", "sql", "SQL", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._waiting: ToTimeline | None = None  # asked for before the tracks were there
        self._is_stale = False
        self._is_drawing = False
        self._measured: tuple[tuple[int, int] | None, tuple[int, int]] = (None, (-1, -1))
        self._measured_lines: list[Said] = []
        self._status_height = 0
        self._under = ""
        self._note = ""
        self._noted_at: Place | None = None  # a note goes when one moves on

    def body(self) -> ComposeResult:
        yield KeyedChart()
        yield Static(id="timeline-status")
        yield SearchBox()

    # ---- opening and closing ---------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self._begin()

    @work(group="timeline")
    async def _begin(self) -> None:
        try:
            path, mode = await self.session.ask(lambda case: (case.path, case.mode))
            self._reader = await Reader.opened(path, mode)
        except DiagError as error:
            self.say(str(error))
            return
        picture = await self.reader.ask(lambda material: material.picture)
        if not picture.groups:
            apart = await self.session.ask(elsewhere)
            self.say(apart or NOTHING)
            return
        signs = self.draws_signs
        self.chart.begin(picture, Looks(pens(signs=signs), signs, np.empty(0, np.int64)))
        self.chart.focus()
        self.refresh_bindings()
        if self._waiting:
            await self.show(self._waiting)
        self.chart.show_steps(await self._steps(list(picture.groups)))

    @property
    def draws_signs(self) -> bool:
        """Where colours are few or none, activities are told by their signs."""
        few = self.app.console.color_system in (None, "standard")
        return self.app.no_color or (few and not self.app.is_headless)

    async def _steps(self, groups: list[Group]) -> dict[int, StepSlices]:
        limits = thresholds.load(self.session.request.analysis.thresholds)["steps.variance"]
        fewest, cover = limits["fewest_steps"], limits["least_cover"]
        threads = [at for at, group in enumerate(groups) if group.rows[0].kind not in ("device", "counter")]
        found = {}
        for at in threads:
            if steps := await self.reader.ask(
                partial(Material.steps_of, group=groups[at], fewest=fewest, least_cover=cover)
            ):
                found[at] = steps
        return found

    @property
    def _has_lines(self) -> bool:
        return any(chart.lines for chart in self.query(KeyedChart))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Without tracks the commands that need them are not even listed."""
        return self._has_lines if action in COMMANDS else True

    def on_unmount(self) -> None:
        if self._reader:
            self._reader.close()

    async def show(self, target: Target) -> None:
        assert isinstance(target, ToTimeline)
        chart = self.chart
        if chart.picture is None or not chart.lines:
            self._waiting = target
            return
        self._waiting = None
        for at, group in enumerate(chart.picture.groups):
            of_device = target.process in (None, group.process) and target.device in (None, group.device)
            if group.source == target.source and of_device:
                chart.select_key((at, HEADER))
                break
        origin_ns = chart.picture.origin_ns.get(target.source, 0)
        start_ns, end_ns = target.window
        chart.go(chart.place.showing(start_ns - origin_ns, end_ns - origin_ns))

    # ---- drawing ---------------------------------------------------------------------------------------------------

    def on_chart_moved(self) -> None:
        self._is_stale = True
        if not self._is_drawing and self._reader is not None:
            self._draw()

    def on_chart_chosen(self) -> None:
        self.action_details()

    @work(group="timeline")
    async def _draw(self) -> None:
        """What happens while a frame is drawn is in the next one."""
        self._is_drawing = True
        try:
            while self._is_stale:
                self._is_stale = False
                frame = await self.reader.ask(partial(frame_of, order=self.chart.order()))
                self._under = frame.under
                self.chart.show_frame(frame)
                if not self._is_stale:
                    await self._measure()
                self._show_status()
        except (DiagError, sqlite3.Error) as error:
            self.say(str(error))
        finally:
            self._is_drawing = False

    async def _measure(self) -> None:
        selection, line = self.chart.place.selection, self.chart.line
        if (selection, line.key) == self._measured:
            return
        self._measured, self._measured_lines = (selection, line.key), []
        if selection:
            self._measured_lines = await self.reader.ask(lambda m: measured_text(m, line, selection))

    def say(self, note: str) -> None:
        self._note, self._noted_at = note, self.chart.place
        self._show_status()

    def _show_status(self) -> None:
        lines = []
        if self.chart.lines:
            at, line = exact(self.chart.place.cursor_ns), self.chart.line
            lines.append(Said(f"▼ {at} · ", f"{self._under} · {_row_name(line)}"))
        lines += self._measured_lines[: MOST_LINES if self.size.height >= TALL else FEWEST_LINES]
        if self._note and self._noted_at == self.chart.place:
            lines.append(Said("", self._note))
        elif self.chart.place.anchor_ns is not None:
            lines.append(Said("selecting: move the cursor, v ends"))
        width = max(self.size.width - 2, 1)
        shown = (Content(line.numbers + "".join(first_letters(line.text, width - len(line.numbers)))) for line in lines)
        status = self.query_one("#timeline-status", Static)
        status.update(Content("\n").join(shown), layout=len(lines) != self._status_height)
        self._status_height = len(lines)

    # ---- search ----------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        if not self._has_lines:
            return
        box = self.query_one(SearchBox)
        box.display = True
        box.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.chart.focus()
        self.search(event.value)


class SearchBox(Input):
    """Takes the place of the last line while something is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "leave", "Leave")]

    def __init__(self) -> None:
        super().__init__(id="timeline-search", placeholder="part of a name; empty forgets the last search")
        self.display = False

    def on_blur(self) -> None:
        self.display = False

    def action_leave(self) -> None:
        self.screen.query_one(KeyedChart).focus()


def _row_name(line: Line) -> str:
    return line.label if line.is_header else f"{line.group.label} · {line.label}"
