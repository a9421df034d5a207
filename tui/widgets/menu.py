"""The line at the top: the screens with their keys, the one that is shown set off, those without anything dim."""

from __future__ import annotations

from collections.abc import Collection

from textual.content import Content
from textual.widgets import Static

from diag.tui.navigation import TITLES, ViewName


class Menu(Static):
    def __init__(self, shown: ViewName, empty: Collection[ViewName]) -> None:
        super().__init__(id="menu")
        self._shown, self._empty = shown, empty

    def render(self) -> Content:
        gap = "  " if self.size.width >= _WIDE else " "
        is_narrow = self.size.width < _NARROW
        return Content(gap).join(
            self._entry(number, name, with_title=name == self._shown or not is_narrow)
            for number, name in enumerate(TITLES, 1)
        )

    def _entry(self, number: int, name: ViewName, *, with_title: bool) -> Content:
        key = Content.styled(str(number), "dim")
        style = "bold reverse" if name == self._shown else "dim" if name in self._empty else ""
        title = Content.styled(TITLES[name] if with_title else "", style)
        return (key + title).stylize(f"@click=app.view('{name}')")


_NARROW = sum(len(title) + 2 for title in TITLES.values()) - 1
"""Cells that all titles need; with less only the screen that is shown has its title, and the others their keys."""

_WIDE = sum(len(title) + 3 for title in TITLES.values())
