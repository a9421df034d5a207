"""Tree."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from diag.tui.screens.view import View


class Tree(View):
    NAME = "tree"

    def body(self) -> ComposeResult:
        yield Static("tree")
