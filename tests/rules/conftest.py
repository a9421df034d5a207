"""Fixtures that ask rules about synthetic exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.finding import Evidence
from diag.rules.report import Report
from tests.builders.imported import Recorded, imported
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse, Ask, AskWithin, Query, answers_of


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """The answers of one rule."""
    return lambda rule_id, export: answers_of(rule_id, export, tmp_path)


@pytest.fixture
def ask_within(tmp_path: Path) -> AskWithin:
    """The answers of one rule about a part of the trace."""
    return lambda rule_id, export, scope: answers_of(rule_id, export, tmp_path, scope)


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """The rows that the SQL of some evidence shows."""

    def rows(export: Recorded, evidence: Evidence) -> list[tuple[Any, ...]]:
        assert evidence.sql is not None
        with imported(export, tmp_path) as case:
            return case.db.execute(evidence.sql).fetchall()

    return rows


@pytest.fixture
def report_on(tmp_path: Path) -> Analyse:
    """The whole report, of a part of the trace if its window or range_name is given."""

    def report(export: NsysExport, **scope: Any) -> Report:
        with imported(export, tmp_path) as case:
            return analyse(case, AnalysisOptions(**scope))

    return report
