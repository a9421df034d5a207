"""Keys pressed at random: whatever comes after whatever, no screen fails and the app goes on."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.pilot import Pilot

from diag.tui.app import DiagApp
from tests.tui.driving import drive
from tests.tui.synthetic_profile import PROFILE
from tests.tui.test_documentation import with_keys

pytestmark = pytest.mark.slow

REPORTS = Path(os.environ.get("DIAG_REAL_REPORTS", "/nonexistent"))
PRESSES = 2_000
AT_ONCE = 10
"""Keys between which nothing is waited for, as when they are typed fast."""
LONGEST_S = 30.0
SIZES = ((80, 24), (200, 60), (40, 12), (300, 20))
ENDS_OR_LEAVES = {"q", "ctrl+q", "ctrl+z", "o"}
OF_TEXTUAL = ("tab", "shift+tab", "up", "down", "home", "end", "pageup", "pagedown", "a", "#")
COMMON = ("enter", "escape", *"123456789")
"""Pressed so often that screens are opened and left."""


def keys() -> list[str]:
    own = {key for of in with_keys() for each in Binding.make_bindings(of.BINDINGS) for key in each.key.split(",")}
    return [*sorted(own - ENDS_OR_LEAVES), *OF_TEXTUAL, *COMMON, *COMMON]


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quitting can be chosen among the commands, too."""

    async def nothing(_: DiagApp) -> None:
        pass

    monkeypatch.setattr(DiagApp, "action_quit", nothing)


def press_at_random(inputs: list[Path], seed: int) -> None:
    """As many keys as there is time for, the same ones in each run."""
    chance, every = random.Random(seed), keys()

    async def scenario(pilot: Pilot[None]) -> None:
        app, until_s, pressed = pilot.app, time.monotonic() + LONGEST_S, list[str]()
        assert isinstance(app, DiagApp)
        while len(pressed) < PRESSES and time.monotonic() < until_s:
            if len(pressed) % 100 == 0:
                await pilot.resize_terminal(*chance.choice(SIZES))
            some = chance.choices(every, k=AT_ONCE)
            pressed += some
            for key in some:
                app.simulate_key(key)
            await pilot.pause()
            assert app.is_running, f"ended after {pressed[-50:]}"
            if app.faults:
                app.faults[0].add_note(f"after {' '.join(pressed[-50:])}")
                raise app.faults[0]
        assert len(pressed) >= PRESSES // 10

    drive(inputs, scenario)


@pytest.mark.parametrize("seed", [1, 2])
def test_over_a_trace_and_a_profile(training: Path, tmp_path: Path, seed: int) -> None:
    press_at_random([training, PROFILE.write(tmp_path / "kernels.ncu-rep")], seed)


def test_over_a_host_without_a_device() -> None:
    press_at_random([Path(__file__).parents[2] / "examples" / "data" / "slow-loader.pt.trace.json.gz"], 3)


@pytest.mark.parametrize("name", ["nsys/h100x2-offload.sqlite", "ncu/a100-selfjoin-14launches.ncu-rep"])
@pytest.mark.skipif(not REPORTS.is_dir(), reason="DIAG_REAL_REPORTS names no folder of real reports")
def test_over_reports_that_tools_wrote(name: str) -> None:
    press_at_random([REPORTS / name], 4)
