"""Kernels."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from diag.tui.screens.view import View


class Kernels(View):
    NAME = "kernels"

    def body(self) -> ComposeResult:
        yield Static("kernels")
