"""The documentation of one rule, as `diag explain RULE` prints it."""

from __future__ import annotations

from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Markdown

from diag.render.rule_pages import page
from diag.rules.engine import rules
from diag.tui.screens.above import Above


class RulePage(Above[None]):
    """Nothing on it comes from a trace."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back"),
        Binding("c", "copy", "Copy the command"),
    ]

    def __init__(self, rule_id: str) -> None:
        super().__init__()
        self.rule_id = rule_id

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="document"):
            yield Markdown(page(rules()[self.rule_id]), open_links=False)
        yield Footer(show_command_palette=False)

    def action_back(self) -> None:
        self.leave()

    def action_copy(self) -> None:
        from diag.tui.app import DiagApp

        cast(DiagApp, self.app).copy(f"diag explain {self.rule_id}", "the command")
