from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from diag.tui.app import VIEWS, DiagApp
from diag.tui.navigation import TITLES
from tests.tui.driving import drive, press, shown


def test_each_screen_has_a_key_and_names_itself(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for number, name in enumerate(TITLES, 1):
            await press(pilot, str(number))
            assert isinstance(pilot.app, DiagApp)
            assert pilot.app.current_mode == name
            assert TITLES[name] in shown(pilot)

    assert [view.NAME for view in VIEWS] == list(TITLES)
    drive([training], scenario)


def test_a_click_on_the_menu_is_a_key(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        at = shown(pilot).splitlines()[0].index("Kernels")
        await pilot.click(offset=(at + 1, 0))
        await press(pilot)
        assert isinstance(pilot.app, DiagApp)
        assert pilot.app.current_mode == "kernels"

    drive([training], scenario)
