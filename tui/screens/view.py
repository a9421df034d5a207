"""What the numbered screens have in common: the menu above, the keys below, and how they get at the case."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer

from diag.tui.navigation import Target, ViewName
from diag.tui.session import Session
from diag.tui.widgets.menu import Menu

if TYPE_CHECKING:
    from diag.tui.app import DiagApp


class View(Screen[None]):
    """One of the numbered screens. A subclass gives `body`, and its HELP says in Markdown how to read it: `?` shows it
    with the keys."""

    NAME: ClassVar[ViewName]

    def compose(self) -> ComposeResult:
        yield Menu(self.NAME, self.session.empty_views)
        yield from self.body()
        yield Footer(show_command_palette=False)

    @abstractmethod
    def body(self) -> ComposeResult:
        """What is between the menu and the keys."""

    @property
    def diag(self) -> DiagApp:
        return cast("DiagApp", self.app)

    @property
    def session(self) -> Session:
        return self.diag.session

    def go(self, target: Target) -> None:
        """Jumps to another screen."""
        self.diag.go(target)

    async def show(self, target: Target) -> None:
        """Called, once the screen is mounted, with what another one wants to be seen on it."""

    def action_search(self) -> None:
        """`/`: screens that have something to search in override it."""
