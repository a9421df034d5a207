"""When what a finding speaks of happened: the longest rows first, in bounded time, and an interruption is no answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path

import pytest

from diag.rules import evidence_spans as module
from diag.rules.evidence_spans import EvidenceSpans, evidence_spans
from diag.rules.finding import Evidence, Finding, Subject
from diag.store.case import Case
from diag.store.sqlite_errors import IS_STOPPED

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
ENDLESS = f"{NUMBERS} SELECT i AS start_ns, i + 1 AS end_ns FROM n"
SPANS = "SELECT column1 AS start_ns, column2 AS end_ns FROM (VALUES (5, 9), (0, 20), (7, NULL), (3, 3))"


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with Case.create(tmp_path / "a.diag") as case:
        yield case


def finding(*sql: str | None) -> Finding:
    evidence = [Evidence(f"figure {at}", 1, "count", "", each) for at, each in enumerate(sql)]
    return Finding("title", "claim", Subject(1), "", "", [], evidence)


def test_the_first_figure_whose_rows_have_times_tells_them(case: Case) -> None:
    found = evidence_spans(case, finding(None, "SELECT 1 AS x", f"{SPANS};"), most=5)
    assert found == EvidenceSpans("figure 2", [(0, 20), (5, 9)])
    assert evidence_spans(case, finding(None, "SELECT 1 AS x"), most=5) is None


def test_a_figure_that_takes_too_long_ends_the_search(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 1_000_000)
    assert evidence_spans(case, finding(ENDLESS, SPANS), most=1) is None
    assert evidence_spans(case, finding(SPANS, ENDLESS), most=1) == EvidenceSpans("figure 0", [(0, 20)])


def test_who_is_told_to_stop_stops(case: Case) -> None:
    def stopped() -> None:
        IS_STOPPED.set(lambda: True)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            evidence_spans(case, finding(ENDLESS, SPANS), most=1)

    copy_context().run(stopped)
