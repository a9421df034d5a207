"""Drives the app as a user would, without a terminal; what it shows is compared with pictures of the documentation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from textual.pilot import Pilot
from textual.worker import WorkerCancelled, WorkerFailed

from diag.ingest.importer import ImportOptions
from diag.rules.analysis import AnalysisOptions
from diag.tui.app import DiagApp
from diag.tui.session import Request
from tests import documented
from tests.tui.picture import seen

SMALL, LARGE = (80, 24), (200, 60)
PATIENCE_S = 60.0
PICTURE_PATIENCE_S = 5.0
"""Tables lay themselves out when nothing else is to be done, so that a busy machine shows them late."""

Scenario = Callable[[Pilot[None]], Awaitable[None]]


def drive(
    inputs: Sequence[Path],
    scenario: Scenario,
    *,
    size: tuple[int, int] = SMALL,
    analysis: AnalysisOptions | None = None,
    use_cache: bool = False,
    opens: bool = True,
    may_fail: bool = False,
) -> None:
    """Opens the inputs in the app and runs the scenario once the first screen is shown.

    `opens`: the inputs can be opened. `may_fail`: the scenario is about errors that nobody foresaw; else they fail the
    test.
    """
    request = Request(inputs, ImportOptions(use_cache=use_cache), analysis or AnalysisOptions())

    async def run() -> None:
        app = DiagApp(request)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: not (inputs and opens) or app.has_session or bool(app.faults))
            await settle(pilot)
            await scenario(pilot)
        if app.faults and not may_fail:
            raise app.faults[0]

    asyncio.run(run())


async def until(pilot: Pilot[None], condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Waits for what work in the background brings about."""
    async with asyncio.timeout(patience_s):
        while not condition():
            await pilot.pause(0.01)


async def settle(pilot: Pilot[None]) -> None:
    """Waits until no worker runs, nor one that the last of them has asked for, and the screen is drawn."""
    while True:
        # What failed is one of the app's faults, of which `drive` tells; what was cancelled is not waited for any more.
        with suppress(WorkerFailed, WorkerCancelled):
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        if all(worker.is_finished for worker in pilot.app.workers):
            return


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


def shown(pilot: Pilot[None]) -> str:
    """The screen as lines of text."""
    screen = pilot.app.screen
    lines = screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in lines)


async def check_picture(pilot: Pilot[None], name: str) -> None:
    """The screen is, or soon is, drawn as in the picture of this name and the size of the app."""
    width, height = pilot.app.size
    file = f"tui/{name}-{width}x{height}.svg"

    def drawn() -> str:
        return pilot.app.export_screenshot(title="diag")

    with suppress(TimeoutError):
        await until(pilot, lambda: documented.is_as_documented(file, drawn(), seen), PICTURE_PATIENCE_S)
    documented.check(file, drawn(), seen)
