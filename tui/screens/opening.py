"""The first screen: which files to open, how far that is, and what went wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Footer, ProgressBar, Static

from diag.errors import DiagError
from diag.ingest.input_file import Step
from diag.model.units import count
from diag.tui.session import Session, Stopped
from diag.tui.text import content
from diag.tui.widgets.chooser import Chooser

if TYPE_CHECKING:
    from diag.tui.app import DiagApp


class Opening(Screen[None]):
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "stop", "Stop or back", priority=True)]
    HELP = """
# Opening

Reports, traces and cases are read by diag itself; folders stand for all that lie in them. What was read before opens
from the cache.

- Mark several files with `space` to read them as one run, for example a report of Nsight Systems and one of Nsight
  Compute on the same program.
- The bar is filled as far as the file is read where that is known; else it only moves.
- `escape` stops reading. Nothing is left behind.
"""

    def __init__(self) -> None:
        super().__init__()
        self._stop = threading.Event()
        self._began_s = 0.0

    def compose(self) -> ComposeResult:
        yield Static("Open", classes="title")
        yield Static(id="error")
        yield Chooser()
        with Vertical(id="importing"):
            yield Static(id="inputs")
            yield ProgressBar(total=None, show_eta=False)
            yield Static("opening", id="step")
            yield Static(id="elapsed")
        yield Footer(show_command_palette=False)

    @property
    def diag(self) -> DiagApp:
        return cast("DiagApp", self.app)

    def on_mount(self) -> None:
        self.set_interval(1.0, self._show_elapsed)
        inputs = self.diag.request.inputs
        self._show(is_importing=bool(inputs))
        if inputs:
            self._open(inputs)

    def on_unmount(self) -> None:
        self._stop.set()

    def on_screen_resume(self) -> None:
        self.query_one(Chooser).look_again()

    @on(Chooser.Chosen)
    def _chosen(self, event: Chooser.Chosen) -> None:
        self._open(event.inputs)

    async def action_stop(self) -> None:
        """Stops reading; else goes back to what is open, or ends."""
        if self._is_importing:
            self._stop.set()
            self.query_one("#step", Static).update("stopping")
        elif self.diag.has_session:
            await self.diag.action_view("overview")
        else:
            self.app.exit()

    @work(exclusive=True)
    async def _open(self, inputs: Sequence[Path]) -> None:
        self._stop = stop = threading.Event()
        self._began_s = time.monotonic()
        self._show(is_importing=True)
        self.query_one("#inputs", Static).update(content(_named(inputs)))
        self.query_one("#step", Static).update("opening")
        request = replace(self.diag.request, inputs=inputs)
        self.diag.request = replace(request, inputs=())  # not to be tried again after an error
        try:
            session = await Session.opened(request, self._progress, stop)
        except (DiagError, OSError, MemoryError) as error:
            self._fail(_said(error))
        except Stopped:
            self._fail("Stopped. Nothing is left behind.")
        else:
            self.diag.request = request
            self._show(is_importing=False)
            await self.diag.begin(session)

    def _fail(self, said: str) -> None:
        self._show(is_importing=False, error=said)

    def _progress(self, step: str) -> None:
        """Called on the case's thread, of which nothing may wait for the screen."""
        self.app.call_later(self._show_step, step)

    def _show_step(self, step: str) -> None:
        self.query_one("#step", Static).update(content(step))
        bar = self.query_one(ProgressBar)
        if isinstance(step, Step):
            bar.update(total=1.0, progress=step.share)
        else:
            bar.update(total=None)

    def _show_elapsed(self) -> None:
        if self._is_importing:
            self.query_one("#elapsed", Static).update(f"{time.monotonic() - self._began_s:.0f} s · Escape stops")

    def _show(self, *, is_importing: bool, error: str = "") -> None:
        self._is_importing = is_importing
        self.query_one("#importing").display = is_importing
        self.query_one(Chooser).display = not is_importing
        shown = self.query_one("#error", Static)
        shown.display = bool(error)
        shown.update(content(f"✗ {error}", room=800))
        if is_importing:
            self.set_focus(None)  # else keys are typed into what is out of sight
        else:
            self.query_one(Chooser).focus_path()


def _named(inputs: Sequence[Path]) -> str:
    return str(inputs[0]) if len(inputs) == 1 else f"{count(len(inputs), 'input')}: {', '.join(map(str, inputs))}"


def _said(error: Exception) -> str:
    match error:
        case DiagError():
            return str(error)
        case MemoryError():
            return "There is not enough memory for this input. Close other programs, or open a part of it."
        case OSError():
            return f"{error.filename or 'An input'} cannot be read: {error.strerror or error}."
    return str(error)
