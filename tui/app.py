"""`diag tui`: screens over one case. Keys 1 to 9 choose one; what it shows is worked out when it is first looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from diag.tui.navigation import TITLES, VIEW_OF, Target, ViewName
from diag.tui.screens.findings import Findings
from diag.tui.screens.kernels import Kernels
from diag.tui.screens.launch import Launch
from diag.tui.screens.opening import Opening
from diag.tui.screens.overview import Overview
from diag.tui.screens.ranks import Ranks
from diag.tui.screens.roofline import Roofline
from diag.tui.screens.sql import Sql
from diag.tui.screens.timeline import Timeline
from diag.tui.screens.tree import Tree
from diag.tui.screens.view import View
from diag.tui.session import Request, Session

VIEWS: tuple[type[View], ...] = (Overview, Findings, Timeline, Kernels, Roofline, Launch, Tree, Ranks, Sql)


class DiagApp(App[None]):
    TITLE = "diag"
    CSS_PATH = "app.tcss"
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {view.NAME: view for view in VIEWS}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"view('{name}')", TITLES[name], show=False) for number, name in enumerate(TITLES, 1)),
        Binding("slash", "screen.search", "Search"),
        Binding("question_mark", "toggle_help", "Help"),
        Binding("ctrl+p", "command_palette", "Commands"),
        Binding("q", "quit", "Quit"),
    ]

    session: Session

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    def on_mount(self) -> None:
        self.push_screen(Opening(self._request))

    async def begin(self, session: Session) -> None:
        """What was asked for is open: shows it."""
        self.session = session
        await self.switch_mode("overview")

    async def action_view(self, name: ViewName) -> None:
        if hasattr(self, "session"):
            await self.switch_mode(name)

    def action_toggle_help(self) -> None:
        if self.screen.query("HelpPanel"):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    def go(self, target: Target) -> None:
        self.call_later(self._go, target)

    async def _go(self, target: Target) -> None:
        await self.switch_mode(VIEW_OF[type(target)])
        view = self.screen
        assert isinstance(view, View)
        await view.show(target)

    def on_unmount(self) -> None:
        if hasattr(self, "session"):
            self.session.close()
