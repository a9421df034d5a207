from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable

from diag.tui.app import DiagApp
from diag.tui.navigation import ToFinding
from diag.tui.screens.evidence import EvidenceScreen
from diag.tui.screens.rule_page import RulePage
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, shown


def line_with(pilot: Pilot[None], text: str) -> int:
    return next(at for at, line in enumerate(shown(pilot).splitlines()) if text in line)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_list_finding_and_evidence_are_drawn(training: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "2")
        await check_picture(pilot, "findings")
        await press(pilot, "enter")
        await check_picture(pilot, "finding")
        await press(pilot, "enter")
        await check_picture(pilot, "evidence")

    drive([training], scenario, size=size)


def test_a_figure_opens_its_formula_sql_and_rows(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        await press(pilot, "2", "enter", "enter")
        finding = pilot.app.session.report.findings[0]
        sql = finding.evidence[0].sql
        assert sql is not None
        assert isinstance(pilot.app.screen, EvidenceScreen)
        text = shown(pilot)
        assert finding.evidence[0].formula in text
        assert "SELECT kind, start_ns" in text
        n_rows = await pilot.app.session.ask(lambda case: len(case.rows(sql)))
        assert pilot.app.screen.query_one(DataTable).row_count == n_rows > 0
        await press(pilot, "x")
        assert pilot.app.current_mode == "sql"
        assert f"{n_rows} rows" in shown(pilot)
        await press(pilot, "2", "escape")
        assert "Evidence" in shown(pilot)

    drive([training], scenario)


def test_every_figure_of_every_finding_opens(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        for finding in pilot.app.session.report.findings:
            for evidence in finding.evidence:
                await pilot.app.push_screen(EvidenceScreen(finding.title, evidence))
                await press(pilot)
                assert "✗" not in shown(pilot)
                await press(pilot, "escape")

    drive([training], scenario)


def test_severities_and_a_search_leave_some(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "2")
        assert "◐ warning" in shown(pilot)
        await press(pilot, "s")
        assert "◐ warning" not in shown(pilot)
        assert "● critical" in shown(pilot)
        await press(pilot, "s", "s")
        await press(pilot, "slash", *"sgemm", "enter")
        text = shown(pilot)
        assert "Hot kernel: ampere_sgemm" in text
        assert "Pageable host memory" not in text
        await press(pilot, "escape")
        assert "Pageable host memory" in shown(pilot)

    drive([training], scenario)


def test_what_was_clear_and_what_cannot_be_told_are_groups(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        await press(pilot, "2", "n", "enter")
        assert "The rule looked and found nothing" in shown(pilot)
        await press(pilot, "n", "enter")
        first = pilot.app.session.report.cannot_tell[0]
        assert "Cannot tell" in shown(pilot)
        assert first.because[:30].lower() in " ".join(shown(pilot).split()).lower()
        await press(pilot, "e")
        assert isinstance(pilot.app.screen, RulePage)
        assert "What it asks" in shown(pilot)
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, RulePage)

    drive([training], scenario)


def test_a_finding_leads_to_its_time_and_its_kernel(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        hot = next(f for f in pilot.app.session.report.findings if f.subject.kernel is not None)
        for key, mode in (("t", "timeline"), ("k", "kernels")):
            pilot.app.go(ToFinding(hot.id))
            await press(pilot)
            await press(pilot, key)
            assert pilot.app.current_mode == mode

    drive([training], scenario)


def test_the_command_that_explains_it_is_copied(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        finding = pilot.app.session.report.findings[0]
        await press(pilot, "2", "enter", "c")
        assert pilot.app.clipboard == f"diag explain {finding.id}"
        await press(pilot, "C")
        assert pilot.app.clipboard == finding.id

    drive([training], scenario)


def test_in_a_wide_terminal_the_finding_stands_beside_the_list(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "2", "down", "down")
        assert "Clear" in shown(pilot)
        assert shown(pilot).splitlines()[1].count("Pageable host memory") == 1

    drive([training], scenario, size=LARGE)
