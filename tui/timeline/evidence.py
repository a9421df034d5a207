"""Stretches of time that a finding speaks of, for one to jump to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.rules.evidence_spans import evidence_spans
from diag.rules.finding import Finding
from diag.store.case import Case

MOST = 1_000
"""The longest stretches of a finding."""


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


def stretches_of(case: Case, finding: Finding) -> Stretches:
    """From the first evidence whose rows have times; else the window that the finding is about."""
    assert finding.subject.window is not None
    if found := evidence_spans(case, finding, MOST):
        return Stretches(finding, found.label, sorted(found.spans))
    return Stretches(finding, "its window", [finding.subject.window])
