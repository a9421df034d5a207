"""Overview."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from diag.tui.screens.view import View


class Overview(View):
    NAME = "overview"

    def body(self) -> ComposeResult:
        yield Static("overview")
