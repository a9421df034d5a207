from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from diag.tui.app import DiagApp
from diag.tui.commands import Commands
from diag.tui.navigation import TITLES
from diag.tui.screens.rule_page import RulePage
from tests.tui.driving import SMALL, check_picture, drive, press, settle, shown, until


def offered(pilot: Pilot[None]) -> list[str]:
    return [str(option.prompt) for option in pilot.app.screen.query_one(OptionList).options]


async def choose(pilot: Pilot[None], typed: str) -> None:
    await pilot.press("ctrl+p")
    await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
    pilot.app.screen.query_one(Input).value = typed
    await until(pilot, lambda: any(typed in name for name in offered(pilot)))
    await pilot.press("enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, CommandPalette))
    await settle(pilot)


def test_every_screen_finding_and_rule_is_a_command(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        names = [command.name for command in Commands(pilot.app.screen)._commands()]
        assert all(f"Go to {title}" in names for title in TITLES.values())
        assert all(any(f.id in name for name in names) for f in pilot.app.session.report.findings)
        assert any(name.startswith("Rule idle.gpu: ") for name in names)

    drive([training], scenario)


def test_commands_are_chosen_by_what_is_typed(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        await choose(pilot, "Go to Findings")
        assert pilot.app.current_mode == "findings"
        await choose(pilot, "Hot kernel")
        assert "Hot kernel: ampere_sgemm" in shown(pilot).splitlines()[1]
        await choose(pilot, "Rule idle.gpu")
        assert isinstance(pilot.app.screen, RulePage)

    drive([training], scenario)


@pytest.mark.parametrize(("key", "said"), [("1", "Devices"), ("2", "upper bound"), ("9", "ctrl+r")])
def test_help_says_how_to_read_a_screen(training: Path, key: str, said: str) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, key, "escape", "question_mark")
        await until(pilot, lambda: said in shown(pilot))
        await press(pilot, "question_mark")
        assert not pilot.app.screen.query("HelpPanel")

    drive([training], scenario, size=(160, 50))


def test_the_palette_is_drawn(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: "Go to SQL" in shown(pilot))
        pilot.app.screen.query_one(Input).cursor_blink = False
        await asyncio.sleep(0)
        await check_picture(pilot, "commands")

    monkeypatch.chdir(training.parent)
    drive([Path(training.name)], scenario, size=SMALL)
