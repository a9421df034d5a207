from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, ProgressBar, Static

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.input_file import Progress, Step
from diag.rules.analysis import AnalysisOptions
from diag.store.case import Case
from diag.tui.app import DiagApp
from diag.tui.screens.opening import Opening
from diag.tui.session import Request
from diag.tui.widgets.chooser import Chooser
from diag.tui.widgets.files import Files, readable_in
from diag.tui.widgets.page import Page
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, settle, shown, until

HOST_ONLY = Path(__file__).parents[2] / "examples" / "data" / "slow-loader.pt.trace.json.gz"


@pytest.fixture
def runs(training: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trace, one of the host, a file that no reader knows, and a folder; a cache of its own."""
    folder = tmp_path / "runs"
    (folder / "older").mkdir(parents=True)
    shutil.copy(training, folder / "train.pt.trace.json.gz")
    shutil.copy(HOST_ONLY, folder / "host.pt.trace.json.gz")
    (folder / "notes.md").write_text("no trace")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DIAG_CACHE", str(tmp_path / "cache"))
    return folder


def app_of(pilot: Pilot[None]) -> DiagApp:
    assert isinstance(pilot.app, DiagApp)
    return pilot.app


async def type_path(pilot: Pilot[None], path: str) -> None:
    pilot.app.screen.query_one(Input).value = path
    await press(pilot, "enter")
    await until(pilot, lambda: app_of(pilot).has_session or "✗" in shown(pilot))
    await settle(pilot)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_choosing_is_drawn(runs: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await check_picture(pilot, "opening")

    drive([], scenario, size=size)


def test_only_what_can_be_read_is_offered(runs: Path) -> None:
    assert [path.name for path in readable_in(runs)] == ["older", "host.pt.trace.json.gz", "train.pt.trace.json.gz"]


def test_a_file_is_chosen_in_the_tree(runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        pilot.app.screen.query_one(Files).focus()
        await press(pilot, "down", "down", "enter")
        await until(pilot, lambda: app_of(pilot).has_session)
        await settle(pilot)
        assert "The data loader holds up the program" in shown(pilot)

    drive([], scenario)


def test_several_files_are_marked_and_opened_as_one_run(runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        pilot.app.screen.query_one(Files).focus()
        await press(pilot, "down", "down", "space", "down", "space")
        assert "Marked: host.pt.trace.json.gz, train.pt.trace.json.gz" in shown(pilot)
        await press(pilot, "ctrl+s")
        await until(pilot, lambda: app_of(pilot).has_session)
        assert len(app_of(pilot).session.report.sources) == 2

    drive([], scenario)


def test_a_path_is_completed(runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *"tr")
        await press(pilot, "right", "enter")
        await until(pilot, lambda: app_of(pilot).has_session)
        assert [str(path) for path in app_of(pilot).request.inputs] == ["train.pt.trace.json.gz"]

    drive([], scenario)


def test_after_an_error_another_file_can_be_chosen(runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await type_path(pilot, "notes.md")
        assert "is of a kind that diag does not know" in " ".join(shown(pilot).split())
        await type_path(pilot, "missing.sqlite")
        assert "missing.sqlite does not exist" in shown(pilot)
        await type_path(pilot, "train.pt.trace.json.gz")
        assert "GPU starved by the host" in shown(pilot)

    drive([], scenario)


def test_an_error_with_the_input_that_was_named_is_told_in_the_app(runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "✗" in shown(pilot))
        await type_path(pilot, "train.pt.trace.json.gz")
        assert app_of(pilot).current_mode == "overview"

    app_inputs = [runs / "notes.md"]
    drive(app_inputs, scenario, opens=False)


def test_opening_another_report_closes_the_first(runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        first = app_of(pilot).session
        await press(pilot, "2", "o")
        await press(pilot, "escape")
        assert app_of(pilot).current_mode == "overview"
        await press(pilot, "o")
        pilot.app.screen.query_one(Input).value = "host.pt.trace.json.gz"
        await press(pilot, "enter")
        await until(pilot, lambda: app_of(pilot).session is not first)
        await settle(pilot)
        assert "The data loader holds up the program" in shown(pilot)
        await press(pilot, "2")
        assert "GPU starved" not in shown(pilot)
        with pytest.raises(RuntimeError, match="shutdown"):
            await first.ask(lambda case: case.path)

    drive([runs / "train.pt.trace.json.gz"], scenario)


def test_what_was_read_lately_is_offered(runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        first = app_of(pilot).session
        await press(pilot, "o")
        await settle(pilot)
        assert "Read lately" in shown(pilot)
        pilot.app.screen.query_one("#recent", Page).focus()
        await press(pilot, "enter")
        await until(pilot, lambda: app_of(pilot).session is not first)
        assert [path.name for path in app_of(pilot).request.inputs] == ["train.pt.trace.json.gz"]

    drive([runs / "train.pt.trace.json.gz"], scenario, use_cache=True)


def test_escape_ends_an_import_and_nothing_is_left(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The import waits at its first step until Escape has been pressed."""
    reached, pressed = threading.Event(), threading.Event()

    class Held(Opening):
        def _progress(self, step: str) -> None:
            reached.set()
            pressed.wait(20)

    async def scenario(pilot: Pilot[None]) -> None:
        pilot.app.screen.query_one(Input).value = "train.pt.trace.json.gz"
        await pilot.press("enter")
        await until(pilot, reached.is_set)
        assert not pilot.app.screen.query_one(Chooser).display
        await pilot.press("escape")
        pressed.set()
        await settle(pilot)
        assert "Stopped. Nothing is left behind." in shown(pilot)
        assert pilot.app.screen.query_one(Chooser).display
        assert not app_of(pilot).has_session
        assert not any(thread.name.startswith("case") for thread in threading.enumerate())
        await press(pilot, "escape")

    monkeypatch.setitem(DiagApp.MODES, "opening", Held)
    drive([], scenario, use_cache=True)
    assert list((runs.parent / "cache").glob(".making-*")) == []


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "named"])
def test_q_ends_it_while_a_report_is_read(runs: Path, monkeypatch: pytest.MonkeyPatch, typed: bool) -> None:
    reached, pressed = threading.Event(), threading.Event()
    path = runs / "train.pt.trace.json.gz"

    class Held(Opening):
        def _progress(self, step: str) -> None:
            reached.set()
            pressed.wait(20)

    async def run() -> None:
        request = Request([] if typed else [path], ImportOptions(), AnalysisOptions())
        async with DiagApp(request).run_test() as pilot:
            if typed:
                pilot.app.screen.query_one(Input).value = str(path)
                await pilot.press("enter")
            await until(pilot, reached.is_set)
            await pilot.press("q")
            pressed.set()
            assert pilot.app._exit

    monkeypatch.setitem(DiagApp.MODES, "opening", Held)
    asyncio.run(run())
    assert list((runs.parent / "cache").glob(".making-*")) == []


def test_whoever_looks_at_the_first_report_meanwhile_is_taken_to_the_second(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second import waits at its first step until another screen has been chosen."""
    looked = threading.Event()
    looked.set()

    class Held(Opening):
        def _progress(self, step: str) -> None:
            looked.wait(20)

    async def scenario(pilot: Pilot[None]) -> None:
        first = app_of(pilot).session
        await press(pilot, "o")
        looked.clear()
        pilot.app.screen.query_one(Input).value = "host.pt.trace.json.gz"
        await pilot.press("enter", "4")
        await until(pilot, lambda: app_of(pilot).current_mode == "kernels")
        looked.set()
        await until(pilot, lambda: app_of(pilot).session is not first)
        await settle(pilot)
        assert app_of(pilot).current_mode == "overview"
        assert "The data loader holds up the program" in shown(pilot)

    monkeypatch.setitem(DiagApp.MODES, "opening", Held)
    drive([runs / "train.pt.trace.json.gz"], scenario)


def test_the_bar_is_filled_where_it_is_known_how_far_an_import_is(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    def listening(paths: Sequence[Path], options: ImportOptions, progress: Progress) -> AbstractContextManager[Case]:
        def step(text: str) -> None:
            steps.append(text)
            progress(text)

        return open_inputs(paths, options, step)

    async def scenario(pilot: Pilot[None]) -> None:
        shares = [step.share for step in steps if isinstance(step, Step)]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        opening = Opening()
        await pilot.app.push_screen(opening)
        opening._show_step(Step("half", 0.5))
        assert opening.query_one(ProgressBar).percentage == 0.5
        opening._show_step("[bold]who knows[/]")
        assert opening.query_one(ProgressBar).percentage is None
        assert str(opening.query_one("#step", Static).content) == "[bold]who knows[/]"

    monkeypatch.setattr("diag.tui.session.open_inputs", listening)
    drive([runs / "train.pt.trace.json.gz"], scenario)
