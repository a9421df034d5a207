"""A panel over the timeline: what is known of one thing, and where to go from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from diag.render.escape import one_line
from diag.tui.screens.above import Above
from diag.tui.text import content

Goal = TypeVar("Goal")

LONGEST_VALUE = 20_000
"""Cells of one value: names are shown in full, but not 100 kB of them."""


@dataclass(frozen=True)
class Choice(Generic[Goal]):
    """A line to be chosen. Its text may come from a trace."""

    text: str
    goal: Goal


class Panel(Above[Goal | None], ModalScreen[Goal | None], Generic[Goal]):
    """Its result is the goal of what was chosen; None when it was left."""

    CSS = """
    Panel { align: center middle; }
    .timeline-panel { width: 90%; max-width: 120; height: auto; max-height: 90%; background: $panel; padding: 0 1; }
    .timeline-panel .heading { margin-bottom: 1; }
    .timeline-panel VerticalScroll { height: auto; max-height: 65%; }
    .timeline-panel OptionList { height: auto; max-height: 16; border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape,q", "leave", "Close")]

    def __init__(self, title: str, facts: Sequence[tuple[str, str]], choices: Sequence[Choice[Goal]]) -> None:
        super().__init__()
        self._heading, self._facts, self._choices = title, facts, choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="timeline-panel"):
            yield Static(content(self._heading, "bold"), classes="heading")
            if self._facts:
                with VerticalScroll(can_focus=not self._choices):
                    yield Static(_table(self._facts))
            if self._choices:
                yield OptionList(*(Option(content(choice.text)) for choice in self._choices))
            yield Static(content("Enter goes there · Esc closes" if self._choices else "Esc closes", "dim"))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.leave(self._choices[event.option_index].goal)

    def action_leave(self) -> None:
        self.leave()


def _table(facts: Sequence[tuple[str, str]]) -> Content:
    """A name in the first column, what it is in the second, which wraps."""
    width = max(len(name) for name, _ in facts)
    lines = (Content.styled(f"{name:{width}}  ", "dim") + Content(_safe(value)) for name, value in facts)
    return Content("\n").join(lines)


def _safe(value: str) -> str:
    return one_line(value[:LONGEST_VALUE])
