"""What could be won by each finding, as an upper bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.render import phrases
from diag.render.plots.axes import time_axis
from diag.render.plots.bars import Bar, Group, Part, chart, used
from diag.rules.finding import SEVERITIES, Finding
from diag.rules.report import Report

MOST_FINDINGS = 12


def findings(report: Report) -> str:
    """As they are ranked; those that say the same elsewhere once. Empty where no finding has a bound."""
    every = phrases.alike(report.findings, report.baseline)
    bounded = [group for group in every if group[0].recoverable_ns]
    shown = bounded[:MOST_FINDINGS]
    if not shown:
        return ""
    groups = [_group(report, number, alike) for number, alike in enumerate(shown, 1)]
    looks = used(groups)
    return chart(
        "What could be won at most, by finding",
        "Upper bounds, ranked by severity, then by share. Several may speak of the same time: do not add them up.",
        groups,
        time_axis("recoverable time", max(group[0].recoverable_ns or 0 for group in shown)),
        legend=[each for each in reversed(SEVERITIES) if each in looks],
        notes=list(_notes(len(bounded) - len(shown), len(every) - len(bounded))),
    )


def _group(report: Report, number: int, alike: Sequence[Finding]) -> Group:
    finding, *same = alike
    about = phrases.about(report, finding)
    others = f" and {len(same)} more" if same else ""
    heading = f"{number}. {finding.title}{f', {about}' if about else ''}{others}"
    ns = finding.recoverable_ns or 0
    share = f", {units.share(finding.recoverable_share)} of {_whole(finding)}" if finding.recoverable_share else ""
    said = f"≤ {units.time(ns)}{share}"
    return Group([Bar(finding.severity, [Part(ns, finding.severity, f"{finding.severity}, {said}")], said)], heading)


def _whole(finding: Finding) -> str:
    return "the window" if finding.share_of == "window" else "profiled time"


def _notes(left_out: int, unbounded: int) -> Iterator[str]:
    if left_out:
        yield f"{units.count(left_out, 'more finding')} with a bound not drawn."
    if unbounded:
        yield f"{units.count(unbounded, 'more finding')} without a bound on what could be won: diag report tells them."
