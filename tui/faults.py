"""Errors that nobody foresaw: they are told in the app, which goes on."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.worker import WorkerFailed

from diag.tui.text import content, lines

if TYPE_CHECKING:
    from diag.tui.app import DiagApp

MOST_FAULTS = 20
"""Where errors come one after another, going on is no use."""


def cause_of(error: Exception) -> BaseException:
    """What went wrong, without the worker that it went wrong in."""
    return error.error if isinstance(error, WorkerFailed) else error


class FaultScreen(Screen[None]):
    """What went wrong and what to do; the traceback on demand."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,escape", "go_on", "Go on"),
        Binding("t", "toggle_traceback", "Traceback"),
        Binding("c", "copy", "Copy it"),
    ]

    def __init__(self, error: BaseException, place: str) -> None:
        super().__init__()
        self._error = error
        self._place = place
        self._traceback = "".join(traceback.format_exception(error))

    def compose(self) -> ComposeResult:
        said = f"{type(self._error).__name__}: {self._error}".rstrip(": ")
        with VerticalScroll(id="fault"):
            yield Static(content("✗ diag itself has made a mistake", "bold"))
            yield Static(content(f"In {self._place}: {said}", room=400))
            yield Static(
                "The rest of the app works on: Enter starts this screen anew, a number key goes to another. "
                "Please report the mistake with its traceback: t shows it, c copies it."
            )
            yield Static(lines(self._traceback), id="traceback")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#traceback").display = False

    async def action_go_on(self) -> None:
        await self.app.switch_mode(self._place)

    def action_toggle_traceback(self) -> None:
        shown = self.query_one("#traceback")
        shown.display = not shown.display

    def action_copy(self) -> None:
        cast("DiagApp", self.app).copy(self._traceback, "the traceback")
