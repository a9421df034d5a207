"""`diag tui`: screens over one case. Keys 1 to 9 choose one; what it shows is worked out when it is first looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from diag.tui.commands import Commands, Palette, report_command
from diag.tui.faults import MOST_FAULTS, FaultScreen, cause_of
from diag.tui.navigation import FAULT, OPENING, TITLES, VIEW_OF, Target, ViewName
from diag.tui.screens.findings import Findings
from diag.tui.screens.kernels import Kernels
from diag.tui.screens.launch import Launch
from diag.tui.screens.opening import Opening
from diag.tui.screens.overview import Overview
from diag.tui.screens.ranks import Ranks
from diag.tui.screens.roofline import Roofline
from diag.tui.screens.rule_page import RulePage
from diag.tui.screens.sql import Sql
from diag.tui.screens.timeline import Timeline
from diag.tui.screens.tree import Tree
from diag.tui.screens.view import View
from diag.tui.session import Request, Session

VIEWS: tuple[type[View], ...] = (Overview, Findings, Timeline, Kernels, Roofline, Launch, Tree, Ranks, Sql)


MOST_RETURNS = 100


class DiagApp(App[None]):
    TITLE = "diag"
    CSS_PATH = "app.tcss"
    COMMANDS: ClassVar[set[Any]] = {Commands}
    DEFAULT_MODE = OPENING
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {
        OPENING: Opening,
        **{view.NAME: view for view in VIEWS},
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"view('{name}')", TITLES[name], show=False) for number, name in enumerate(TITLES, 1)),
        Binding("slash", "screen.search", "Search"),
        Binding("o", "open", "Open", show=False),
        Binding("b", "go_back", "Back", show=False),
        Binding("question_mark", "toggle_help", "Help"),
        Binding("ctrl+p", "command_palette", "Commands"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
    ]

    session: Session

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.animation_level = "none"  # over SSH each frame of one is a delay
        self.request = request
        self._came_from: list[str] = []
        self.faults: list[BaseException] = []

    @property
    def has_session(self) -> bool:
        return hasattr(self, "session")

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, self._draw_anew)

    def _draw_anew(self, _: App[None]) -> None:
        """After the shell had the terminal, of which Textual draws only what has changed."""
        self.refresh(layout=True)

    async def begin(self, session: Session) -> None:
        """What was asked for is open: shows it, and closes what was open before."""
        await self.switch_mode(OPENING)  # from what was looked at meanwhile, which could not be renewed else
        previous = self.session if self.has_session else None
        self.session = session
        for name in TITLES:
            await self._renew(name)
        self._came_from = []
        await self.switch_mode("overview")
        if previous:
            await previous.close()

    async def action_view(self, name: ViewName) -> None:
        if self.has_session:
            await self.switch_mode(name)

    async def action_open(self) -> None:
        await self.switch_mode(OPENING)

    def action_command_palette(self) -> None:
        if self.use_command_palette and not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def action_toggle_help(self) -> None:
        if self.screen.query("HelpPanel"):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    def go(self, target: Target) -> None:
        self.call_later(self._go, target)

    async def _go(self, target: Target) -> None:
        if self.current_mode != VIEW_OF[type(target)]:
            self._came_from = [*self._came_from[-MOST_RETURNS:], self.current_mode]
        await self.switch_mode(VIEW_OF[type(target)])
        while len(self.screen_stack) > 1:  # what was opened above the view when it was last looked at
            await self.pop_screen()
        view = self.screen
        assert isinstance(view, View)
        await view.show(target)

    async def action_go_back(self) -> None:
        """To the screen that the last jump came from, as it was left."""
        if self._came_from:
            await self.switch_mode(self._came_from.pop())

    def copy(self, text: str, what: str) -> None:
        """Into the clipboard of the terminal, as far as it lets programs write there."""
        self.copy_to_clipboard(text)
        self.notify(f"Copied {what}.", markup=False)

    def explain(self, rule_id: str) -> None:
        self.push_screen(RulePage(rule_id))

    def action_copy_command(self) -> None:
        self.copy(report_command(self), "the command")

    async def _shutdown(self) -> None:
        # Whoever quits while a report is opening: what shows it must not change the screens that are being closed.
        self.workers.cancel_all()
        await super()._shutdown()

    async def on_unmount(self) -> None:
        if self.has_session:
            await self.session.close()

    async def _renew(self, mode: str) -> None:
        """What is not shown now starts anew when it is shown next."""
        screen = self._modes[mode]
        await self.remove_mode(mode)
        self.add_mode(mode, screen)

    # ---- what nobody foresaw -----------------------------------------------------------------------------------

    async def _dispatch_message(self, message: Message) -> None:
        # Actions of all keys run here, and an error would end the app's queue of messages.
        try:
            await super()._dispatch_message(message)
        except Exception as error:  # noqa: BLE001
            self._handle_exception(error)

    def _handle_exception(self, error: Exception) -> None:
        """Textual hands every error here that nothing caught, and ends; this app tells it and goes on."""
        if not self.screen_stack or len(self.faults) >= MOST_FAULTS:
            super()._handle_exception(error)
            return
        self.faults.append(cause_of(error))
        if self.current_mode != FAULT:
            self.call_later(self._show_fault, self.faults[-1])

    async def _show_fault(self, error: BaseException) -> None:
        place = self.current_mode
        if place == FAULT:
            return
        if FAULT in self._modes:
            await self.remove_mode(FAULT)
        self.add_mode(FAULT, lambda: FaultScreen(error, place))
        await self.switch_mode(FAULT)
        await self._renew(place)  # the widget that failed hears no messages any more
