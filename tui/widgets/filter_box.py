"""The line in which a part of a name is typed; it is in sight only while it is used."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

LONGEST = 200
"""Characters of what is searched for."""


class FilterBox(Input):
    DEFAULT_CSS = "FilterBox { height: 1; border: none; padding: 0; display: none; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave(False)", "Show all"),
        Binding("enter,down", "leave(True)", "To the rows"),
    ]

    class Left(Message):
        """Keys are for the rows again."""

    def __init__(self, prompt: str) -> None:
        super().__init__(placeholder=prompt, max_length=LONGEST, compact=True)

    def begin(self) -> None:
        self.display = True
        self.focus()

    def action_leave(self, keeps: bool) -> None:
        if not keeps:
            self.value = ""
        self.display = bool(self.value)
        self.post_message(self.Left())

    def on_blur(self) -> None:
        self.display = bool(self.value)
