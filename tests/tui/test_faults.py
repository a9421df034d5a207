from __future__ import annotations

from pathlib import Path

import pytest
from textual import work
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widgets import Button, Static

from diag.tui.app import DiagApp
from diag.tui.faults import MOST_FAULTS, FaultScreen
from diag.tui.screens.view import View
from tests.tui.driving import SMALL, check_picture, drive, press, settle, shown


class Faulty(View):
    """Fails in each of the ways in which a screen can."""

    NAME = "ranks"
    fails_in = ""

    def body(self) -> ComposeResult:
        if self.fails_in == "compose":
            raise ValueError("[bold red]composed[/]")
        yield Button("press", id="button")
        yield Drawn("drawn")

    def on_mount(self) -> None:
        if self.fails_in == "mount":
            raise ValueError("mounted")

    def on_button_pressed(self) -> None:
        if self.fails_in == "handler":
            raise ValueError("handled")
        if self.fails_in == "worker":
            self._work()
        if self.fails_in == "thread":
            self._work_in_thread()
        if self.fails_in == "draw":
            self.query_one(Drawn).fails = True
            self.query_one(Drawn).refresh(layout=True)

    def action_search(self) -> None:
        if self.fails_in == "action":
            raise ValueError("acted")

    @work
    async def _work(self) -> None:
        raise ValueError("worked")

    @work(thread=True)
    def _work_in_thread(self) -> None:
        raise ValueError("threaded")


class Drawn(Static):
    fails = False

    def render(self) -> str:
        if self.fails:
            raise ValueError("drawn")
        return "drawn"


@pytest.mark.parametrize("place", ["compose", "mount", "handler", "worker", "thread", "draw", "action"])
def test_an_error_anywhere_is_told_and_the_app_goes_on(
    training: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, DiagApp)
        await pilot.press("8")
        await pilot.pause()
        if place == "action":
            await pilot.press("slash")
        elif place not in ("compose", "mount"):
            await pilot.click("#button")
        await pilot.pause()
        await settle(pilot)
        assert isinstance(app.screen, FaultScreen)
        assert "diag itself has made a mistake" in shown(pilot)
        assert "ValueError: " in shown(pilot)
        await press(pilot, "t")
        assert "Traceback" in shown(pilot)
        await press(pilot, "2")
        assert "GPU starved" in shown(pilot)
        monkeypatch.setattr(Faulty, "fails_in", "")
        await press(pilot, "8")
        assert "drawn" in shown(pilot)
        assert len(app.faults) <= 2

    monkeypatch.setattr(Faulty, "fails_in", place)
    monkeypatch.setitem(DiagApp.MODES, "ranks", Faulty)
    drive([training], scenario, may_fail=True)


def test_going_on_starts_the_screen_anew(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "8")
        await pilot.click("#button")
        await pilot.pause()
        monkeypatch.setattr(Faulty, "fails_in", "")
        await press(pilot, "enter")
        assert pilot.app.current_mode == "ranks"
        await pilot.click("#button")
        assert not isinstance(pilot.app.screen, FaultScreen)

    monkeypatch.setattr(Faulty, "fails_in", "handler")
    monkeypatch.setitem(DiagApp.MODES, "ranks", Faulty)
    drive([training], scenario, may_fail=True)


def test_an_error_while_a_report_opens_leaves_the_choice(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app.screen, FaultScreen)
        assert "KeyError" in shown(pilot)
        await press(pilot, "enter")
        assert "Path of a report" in shown(pilot)

    def fails(*_: object) -> None:
        raise KeyError("nobody foresaw this")

    monkeypatch.setattr("diag.tui.session.report_of", fails)
    drive([training], scenario, may_fail=True)


def test_the_app_ends_where_errors_do_not(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, DiagApp)
        for _ in range(MOST_FAULTS + 1):
            app.call_later(fail)
            await pilot.pause()
        assert not app.is_running

    def fail() -> None:
        raise ValueError("again")

    with pytest.raises(ValueError, match="again"):
        drive([training], scenario, may_fail=True)


def test_the_fault_is_drawn(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "8")
        await settle(pilot)
        await check_picture(pilot, "fault")

    monkeypatch.setattr(Faulty, "fails_in", "compose")
    monkeypatch.setitem(DiagApp.MODES, "ranks", Faulty)
    drive([training], scenario, may_fail=True, size=SMALL)
