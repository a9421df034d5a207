"""What tests of rules speak of: asking a rule, its three cases, the figures of a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diag.rules import engine, thresholds
from diag.rules.finding import Answer, Evidence, Finding
from diag.rules.report import Report
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport

Ask = Callable[[str, NsysExport], list[Answer]]
AskWithin = Callable[[str, NsysExport, Intervals], list[Answer]]
"""Asks about a part of the trace only."""
Analyse = Callable[..., Report]
Query = Callable[[NsysExport, Evidence], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class ThreeCases:
    """What every rule ships with: it fires, its healthy twin is clear, and where evidence is missing it cannot tell."""

    fires: Callable[[], NsysExport]
    clear: Callable[[], NsysExport]
    untold: Callable[[], NsysExport]


def answers_of(rule_id: str, export: NsysExport, folder: Path, scope: Intervals | None = None) -> list[Answer]:
    """What one rule says of a synthetic export, or of a part of it."""
    with imported(export, folder) as case:
        (source,) = case.sources
        limits = thresholds.load().get(rule_id, {})
        return list(engine.run(engine.rules()[rule_id], Trace(case, source, scope), limits))


def only_finding(answers: Sequence[Answer]) -> Finding:
    (finding,) = (answer for answer in answers if isinstance(answer, Finding))
    return finding


def figures(finding: Finding) -> dict[str, float | int | str]:
    """The evidence of a finding by its label."""
    return {evidence.label: evidence.value for evidence in finding.evidence}
