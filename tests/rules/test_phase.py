"""Findings of startup weigh what they take of steady state."""

from __future__ import annotations

import pytest

from tests.rules.asking import Analyse, Ask, figures, only_finding
from tests.rules.scenes import starting


def test_a_finding_of_startup_says_so_and_weighs_what_remains(ask: Ask) -> None:
    """Idle from 100 to 1000, all but 10 of it in startup: of the steady 2010 that is half a percent."""
    finding = only_finding(ask("idle.gpu", starting().export))
    assert finding.severity == "info"
    assert "890 ns of it is startup (the first 990 ns)" in finding.claim
    assert figures(finding)["in startup"] == 890
    assert figures(finding)["share of steady state"] == pytest.approx(5 / 2010)


def test_a_finding_of_steady_state_stays_what_it_is(ask: Ask) -> None:
    scene = starting()
    scene.main.launch(scene.gpu, called=5990, start=6000, end=6100)
    finding = only_finding(ask("idle.gpu", scene.export))
    assert finding.severity == "critical"
    assert "startup" not in finding.claim


def test_the_report_gives_the_startup_of_each_device(report_on: Analyse) -> None:
    assert [row.startup_ns for row in report_on(starting().export).devices] == [990]
    assert [row.startup_ns for row in report_on(starting(steps=1).export).devices] == [None]
