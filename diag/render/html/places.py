"""Where in a timeline a finding shows most: the longest gaps of its device, or the longest rows behind its figures."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from diag.rules.finding import Finding
from diag.store.case import Case

PLACES = 3
"""Of a finding."""

Window = tuple[int, int]
"""ns on the axis of the picture."""

Device = tuple[int, int | None, int | None]
"""Source, pid and ordinal."""


def places_of(
    case: Case, finding: Finding, origin_ns: int, gaps: Mapping[Device, Sequence[Window]]
) -> Sequence[Window]:
    """The longest first. `gaps` are those of each device, likewise; `origin_ns` is subtracted from the case's times."""
    about = finding.subject
    if finding.rule == "idle.gpu":  # whose rows are the operations, and not what lies between them
        return gaps.get((about.source, about.process, about.device), ())[:PLACES]
    queries = (evidence.sql for evidence in finding.evidence if evidence.sql)
    found = (_longest_rows(case, sql) for sql in queries)
    rows = next((rows for rows in found if rows), [])
    return [(start - origin_ns, end - origin_ns) for start, end in rows]


def around(place: Window, length_ns: int) -> Window:
    """With as much before and after, so that one sees what led to it."""
    start, end = place
    margin = end - start
    return max(0, start - margin), min(length_ns, end + margin)


def _longest_rows(case: Case, sql: str) -> list[Window]:
    """Start and end of the longest rows of a query; none where its rows have no times."""
    try:
        rows = case.db.execute(_LONGEST.format(sql=sql.strip().rstrip(";"), most=PLACES)).fetchall()
    except sqlite3.OperationalError:  # it has no such columns
        return []
    return [(start, end) for start, end in rows]


_LONGEST = """
    SELECT start_ns, end_ns
      FROM ({sql})
     WHERE end_ns > start_ns
     ORDER BY end_ns - start_ns DESC, start_ns
     LIMIT {most:d}
"""
