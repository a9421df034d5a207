"""Stretches of time that a finding speaks of, for one to jump to.

A report does not keep them. The rows behind its evidence have times, and SQL gives them; a finding about idle time has
no rows, but gaps.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import monotonic

from diag.rules.finding import Finding
from diag.store.case import Case
from diag.store.sqlite_errors import let_signals_in

MOST = 1_000
"""The longest stretches of a finding."""

LONGEST_QUERY_S = 5.0
"""SQL comes with the report, which may have been edited."""

STEPS_BETWEEN_LOOKS = 100_000


@dataclass(frozen=True)
class Stretches:
    """Of one finding, by start, on the clock of its source. `says` is what they are."""

    finding: Finding
    says: str
    spans: Sequence[tuple[int, int]]

    @property
    def longest(self) -> int:
        return max(range(len(self.spans)), key=lambda at: self.spans[at][1] - self.spans[at][0])


def with_time(findings: Sequence[Finding]) -> list[Finding]:
    """Findings about a part of a timeline, in their order."""
    return [finding for finding in findings if finding.subject.window is not None]


def is_about_gaps(finding: Finding) -> bool:
    return finding.rule == "idle.gpu"


def stretches_of(case: Case, finding: Finding) -> Stretches:
    """From the first evidence whose rows have times; else the window that the finding is about."""
    assert finding.subject.window is not None
    for evidence in finding.evidence:
        if evidence.sql is not None and (spans := _spans(case, evidence.sql)):
            return Stretches(finding, evidence.label, spans)
    return Stretches(finding, "its window", [finding.subject.window])


def _spans(case: Case, sql: str) -> list[tuple[int, int]]:
    """Empty where the query has no times, no rows or no end."""
    with suppress(sqlite3.Error), _no_longer_than(case.db, LONGEST_QUERY_S):
        rows = case.db.execute(_LONGEST.format(sql=sql), (MOST,)).fetchall()
        return sorted((start_ns, end_ns) for start_ns, end_ns in rows if isinstance(start_ns, int))
    return []


@contextmanager
def _no_longer_than(db: sqlite3.Connection, seconds: float) -> Iterator[None]:
    end_s = monotonic() + seconds
    db.set_progress_handler(lambda: monotonic() > end_s, STEPS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        let_signals_in(db)


_LONGEST = """
    SELECT start_ns, end_ns FROM ({sql})
     WHERE typeof(start_ns) = 'integer' AND typeof(end_ns) = 'integer' AND end_ns > start_ns
     ORDER BY end_ns - start_ns DESC LIMIT ?
"""
