"""Ranks."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from diag.tui.screens.view import View


class Ranks(View):
    NAME = "ranks"

    def body(self) -> ComposeResult:
        yield Static("ranks")
