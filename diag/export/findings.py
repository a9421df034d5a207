"""Findings and their evidence as tables, whatever a case keeps of earlier looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from diag.export.table import Row, Table
from diag.rules.finding import Finding

_FINDING = (
    ("rank", "INTEGER"),
    ("id", "TEXT"),
    ("rule", "TEXT"),
    ("severity", "TEXT"),
    ("title", "TEXT"),
    ("claim", "TEXT"),
    ("confidence", "TEXT"),
    ("share", "REAL"),
    ("recoverable_ns", "INTEGER"),
    ("counterfactual", "TEXT"),
    ("refute", "TEXT"),
    ("next", "TEXT"),
    ("source_id", "INTEGER"),
    ("pid", "INTEGER"),
    ("device", "INTEGER"),
    ("range", "TEXT"),
    ("kernel", "TEXT"),
    ("load", "TEXT"),
    ("window_start_ns", "INTEGER"),
    ("window_end_ns", "INTEGER"),
)
_EVIDENCE = (
    ("finding_id", "TEXT"),
    ("rule", "TEXT"),
    ("label", "TEXT"),
    ("value", "REAL"),  # NULL where the evidence is a text
    ("text", "TEXT"),
    ("unit", "TEXT"),
    ("formula", "TEXT"),
    ("sql", "TEXT"),
)


def finding_table(findings: Sequence[Finding]) -> Table:
    """One row for each finding, ranked; what it is about in columns of its own."""
    return Table("finding", _FINDING, partial(_batch, [_finding(rank, f) for rank, f in enumerate(findings)]))


def evidence_table(findings: Sequence[Finding]) -> Table:
    """One row for each number or text that a finding rests on."""
    return Table("evidence", _EVIDENCE, partial(_batch, [row for finding in findings for row in _evidence(finding)]))


TABLES: Mapping[str, Callable[[Sequence[Finding]], Table]] = {"evidence": evidence_table, "finding": finding_table}


def _batch(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    yield rows


def _finding(rank: int, finding: Finding) -> Row:
    about = finding.subject
    start_ns, end_ns = about.window or (None, None)
    return (
        rank, finding.id, finding.rule, finding.severity, finding.title, finding.claim, finding.confidence,
        finding.share, finding.recoverable_ns, finding.counterfactual, finding.refute, "\n".join(finding.next),
        about.source, about.process, about.device, about.range, about.kernel, about.load, start_ns, end_ns,
    )  # fmt: skip


def _evidence(finding: Finding) -> Iterator[Row]:
    for each in finding.evidence:
        is_text = isinstance(each.value, str)
        value, text = (None, each.value) if is_text else (float(each.value), None)
        yield finding.id, finding.rule, each.label, value, text, each.unit, each.formula, each.sql
