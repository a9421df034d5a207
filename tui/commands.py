"""The command palette: every screen, every finding, every rule, and what can be copied."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider

from diag.rules.engine import rules
from diag.tui.navigation import TITLES, ToFinding
from diag.tui.text import cell, safe

if TYPE_CHECKING:
    from diag.tui.app import DiagApp

ROOM = 120
"""Cells of a command."""


@dataclass(frozen=True)
class Command:
    name: str
    run: Callable[[], object]
    is_offered: bool = True
    """Whether it is listed before anything is typed."""


class Commands(Provider):
    """Names of findings come from the trace: they are shown as text, never as mark-up."""

    async def discover(self) -> Hits:
        for command in self._commands():
            if command.is_offered:
                yield DiscoveryHit(cell(command.name, room=ROOM), command.run, safe(command.name, ROOM))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._commands():
            name = safe(command.name, ROOM)
            score, at = matcher.fuzzy_search.match(query, name)
            if score:
                shown = Text(name)
                for offset in at:
                    shown.stylize("bold underline", offset, offset + 1)
                yield Hit(score, shown, command.run, name)

    def _commands(self) -> Iterator[Command]:
        app = cast("DiagApp", self.app)
        yield Command("Open another report or trace", app.action_open)
        yield Command("Help on this screen", app.action_toggle_help)
        if app.has_session:
            for name, title in TITLES.items():
                yield Command(f"Go to {title}", partial(app.action_view, name))
            yield from _of_report(app)
        for rule in rules().values():
            yield Command(f"Rule {rule.id}: {rule.title}", partial(app.explain, rule.id), False)
        yield Command("Quit", app.action_quit)


class Palette(CommandPalette):
    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList)._lines:  # Textual turns pages of a list that is not laid out yet, and fails
            super()._action_command_list(action)


def _of_report(app: DiagApp) -> Iterator[Command]:
    report = app.session.report
    command = report_command(app)
    yield Command(f"Copy the command: {command}", partial(app.copy, command, "the command"))
    for finding in report.findings:
        name = f"{finding.severity}: {finding.title} [{finding.id}]"
        yield Command(name, partial(app.go, ToFinding(finding.id)), False)


def report_command(app: DiagApp) -> str:
    """What prints the same report."""
    return shlex.join(["diag", "report", *map(str, app.session.request.inputs)])
