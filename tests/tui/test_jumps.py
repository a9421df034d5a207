"""From screen to screen and back: a timeline and a profile of the same kernel lead to each other."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot

from diag.tui.app import DiagApp
from diag.tui.navigation import TITLES, ToFinding, ToKernel
from diag.tui.session import Session
from tests.builders.nsys_export import NsysExport
from tests.tui.driving import drive, press, shown
from tests.tui.synthetic_profile import PROFILE

MS = 1_000_000


@pytest.fixture
def run_and_profile(tmp_path: Path) -> list[Path]:
    """A run of two kernels, of which the one that takes most of the time was profiled."""
    export = NsysExport()
    gpu = export.process().gpu()
    for i in range(20):
        gpu.kernel(i * 2 * MS, i * 2 * MS + (1_500_000 if i == 7 else MS), "void stencil(float*, int)")
        gpu.kernel(i * 2 * MS + 1_600_000, i * 2 * MS + 1_700_000, "unprofiled")
    return [export.write(tmp_path / "run.sqlite"), PROFILE.write(tmp_path / "kernels.ncu-rep")]


def app_of(pilot: Pilot[None]) -> DiagApp:
    assert isinstance(pilot.app, DiagApp)
    return pilot.app


def test_a_finding_leads_around_all_screens_and_back_through_them(run_and_profile: list[Path]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = app_of(pilot)
        hot = next(finding for finding in app.session.report.findings if finding.subject.kernel is not None)
        app.go(ToFinding(hot.id))
        await press(pilot)
        way = [("k", "kernels"), ("t", "timeline"), ("l", "launch"), ("r", "roofline"), ("k", "kernels")]
        for key, mode in way:
            await press(pilot, key)
            assert app.current_mode == mode, key
        for mode in ("roofline", "launch", "timeline", "kernels", "findings", "overview"):
            await press(pilot, "b")
            assert app.current_mode == mode
        await press(pilot, "b")
        assert app.current_mode == "overview"

    drive(run_and_profile, scenario)


def test_the_longest_launch_of_a_kernel_is_shown_in_the_timeline(run_and_profile: list[Path]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "4", "t")
        assert app_of(pilot).current_mode == "timeline"
        assert "1.5 ms" in shown(pilot)
        await press(pilot, "b", "enter", "s", "t")
        assert app_of(pilot).current_mode == "timeline"

    drive(run_and_profile, scenario)


def test_the_timeline_says_where_a_kernel_was_not_profiled(run_and_profile: list[Path]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "3", "down", "slash", *"unprofiled", "enter", "l")
        assert app_of(pilot).current_mode == "timeline"
        assert "has not profiled this kernel" in shown(pilot)

    drive(run_and_profile, scenario)


def test_a_report_that_was_closed_is_nowhere_to_go_back_to(run_and_profile: list[Path]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = app_of(pilot)
        app.go(ToKernel("void stencil(float*, int)"))
        await press(pilot)
        await app.begin(await Session.opened(app.session.request, lambda _: None, threading.Event()))
        await press(pilot, "b")
        assert app.current_mode == "overview"

    drive(run_and_profile, scenario)


def dim(pilot: Pilot[None]) -> set[str]:
    """The screens whose names stand back in the menu."""
    strip = pilot.app.screen._compositor.render_strips()[0]
    of_keys = next(segment.style for segment in strip if segment.text == "1")
    titles = [segment for segment in strip if segment.text in TITLES.values()]
    return {title.text for title in titles if title.style and of_keys and title.style.color == of_keys.color}


def test_screens_with_nothing_to_show_are_dim_in_the_menu(run_and_profile: list[Path], training: Path) -> None:
    def expect(names: set[str], *inputs: Path) -> None:
        async def scenario(pilot: Pilot[None]) -> None:
            session = app_of(pilot).session
            assert {TITLES[name] for name in session.empty_views} == names
            assert dim(pilot) == names

        drive(inputs, scenario)

    run, profile = run_and_profile
    expect({"Roofline", "Launch", "Tree", "Ranks"}, run)
    expect({"Timeline", "Kernels", "Tree", "Ranks"}, profile)
    expect({"Tree", "Ranks"}, run, profile)
    expect({"Roofline", "Launch", "Ranks"}, training)
