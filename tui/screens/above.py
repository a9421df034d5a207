"""Screens that are opened above a view."""

from __future__ import annotations

from typing import TypeVar

from textual.screen import Screen

Result = TypeVar("Result")


class Above(Screen[Result]):
    """It is left once: keys that were typed ahead reach it when it is on its way out or another mode is shown, and
    Textual would then take away the screen below."""

    _is_left = False

    def leave(self, result: Result | None = None) -> None:
        if self.is_current and not self._is_left:
            self._is_left = True
            self.dismiss(result)
