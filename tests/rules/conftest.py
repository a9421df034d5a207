"""Fixtures that ask rules about synthetic exports."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.rules import engine, thresholds
from diag.rules.analysis import analyse
from diag.rules.finding import Answer
from diag.rules.report import Report
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse, Ask


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """The answers of one rule."""

    def answers(rule_id: str, export: NsysExport) -> list[Answer]:
        with imported(export, tmp_path) as case:
            (source,) = case.sources
            limits = thresholds.load().get(rule_id, {})
            return list(engine.run(engine.rules()[rule_id], Trace(case, source), limits))

    return answers


@pytest.fixture
def report_on(tmp_path: Path) -> Analyse:
    """The whole report."""

    def report(export: NsysExport) -> Report:
        with imported(export, tmp_path) as case:
            return analyse(case)

    return report
