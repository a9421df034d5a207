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
        return Content(gap).join(self._entry(number, name) for number, name in enumerate(TITLES, 1))

    def _entry(self, number: int, name: ViewName) -> Content:
        key = Content.styled(str(number), "dim")
        style = "bold reverse" if name == self._shown else "dim" if name in self._empty else ""
        title = Content.styled(TITLES[name], style)
        return (key + title).stylize(f"@click=app.view('{name}')")


_WIDE = sum(len(title) + 3 for title in TITLES.values())
