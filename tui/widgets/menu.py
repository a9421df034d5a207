"""The line at the top: the screens with their keys, the one that is shown set off, each to be clicked."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from diag.tui.navigation import TITLES, ViewName


class Menu(Static):
    def __init__(self, shown: ViewName) -> None:
        super().__init__(id="menu")
        self._shown = shown

    def render(self) -> Content:
        gap = "  " if self.size.width >= _WIDE else " "
        return Content(gap).join(self._entry(number, name) for number, name in enumerate(TITLES, 1))

    def _entry(self, number: int, name: ViewName) -> Content:
        key = Content.styled(str(number), "dim")
        title = Content.styled(TITLES[name], "bold reverse" if name == self._shown else "")
        return (key + title).stylize(f"@click=app.view('{name}')")


_WIDE = sum(len(title) + 3 for title in TITLES.values())
