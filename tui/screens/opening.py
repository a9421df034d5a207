"""The first screen: what is being opened, how far it is, and what went wrong."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Footer, ProgressBar, Static

from diag.errors import DiagError
from diag.tui.session import Request, Session
from diag.tui.text import content

if TYPE_CHECKING:
    from diag.tui.app import DiagApp


class Opening(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "app.quit", "Stop")]

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request
        self._stopped = threading.Event()

    def compose(self) -> ComposeResult:
        with Vertical(id="opening"):
            yield Static(content(", ".join(map(str, self._request.inputs))), id="inputs")
            yield ProgressBar(total=None, show_eta=False, show_percentage=False)
            yield Static("opening", id="step")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self._open()

    def on_unmount(self) -> None:
        self._stopped.set()

    @work(exit_on_error=False)
    async def _open(self) -> None:
        try:
            session = await Session.opened(self._request, self._progress)
        except DiagError as error:
            self.query_one(ProgressBar).display = False
            self.query_one("#step", Static).update(content(str(error)))
            return
        await cast("DiagApp", self.app).begin(session)

    def _progress(self, step: str) -> None:
        """Called on the case's thread."""
        if self._stopped.is_set():
            raise Stopped("stopped by the user")
        self.app.call_from_thread(self.query_one("#step", Static).update, content(step))


class Stopped(Exception):
    """Nobody waits for the case any more."""
