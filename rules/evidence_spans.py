"""When what a finding speaks of happened, for views to jump to.

A report does not keep it. The rows behind its evidence have times, and the SQL that comes with each figure gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from diag.errors import UsageError
from diag.rules.finding import Finding
from diag.store.case import Case
from diag.store.reading import TimeIsOver, first_rows

MOST_STEPS = 500_000_000
"""Of SQLite, which take seconds: the SQL lies in the case, which may have been edited. No time, so that the page of a
case is the same on every machine."""


@dataclass(frozen=True)
class EvidenceSpans:
    """Start and end of rows behind a figure, the longest first, on the clock of the finding's source."""

    label: str  # of the figure
    spans: Sequence[tuple[int, int]]


def is_about_gaps(finding: Finding) -> bool:
    """Whether the rows behind a finding are what lies around the time that it speaks of."""
    return finding.rule == "idle.gpu"


def evidence_spans(case: Case, finding: Finding, most: int) -> EvidenceSpans | None:
    """Of the first figure whose rows have times, at most so many; None where none has, or where it took too long."""
    with suppress(TimeIsOver):
        for evidence in finding.evidence:
            if evidence.sql and (spans := _longest(case, evidence.sql, most)):
                return EvidenceSpans(evidence.label, spans)
    return None


def _longest(case: Case, sql: str, most: int) -> Sequence[tuple[int, int]]:
    """Empty where the rows have no times. Raises TimeIsOver where it takes too many steps."""
    with suppress(UsageError):
        longest = _LONGEST.format(sql=sql.strip().rstrip(";"), most=most)
        return [
            (start_ns, end_ns) for start_ns, end_ns in first_rows(case.db, longest, most, most_steps=MOST_STEPS).rows
        ]
    return ()


_LONGEST = """
    SELECT start_ns, end_ns
      FROM ({sql})
     WHERE typeof(start_ns) = 'integer' AND typeof(end_ns) = 'integer' AND end_ns > start_ns
     ORDER BY end_ns - start_ns DESC, start_ns
     LIMIT {most}
"""
