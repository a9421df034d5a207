"""A finding on one line of a list."""

from __future__ import annotations

from textual.content import Content

from diag.model import units
from diag.render import phrases
from diag.render.layout import elide
from diag.render.palette import SEVERITIES
from diag.rules.finding import Finding
from diag.rules.report import Report
from diag.tui.text import safe

_WORD = max(len(ink.label) for ink in SEVERITIES.values())


def finding_line(report: Report, finding: Finding, width: int) -> Content:
    """Severity by sign and word, what could be won at most, the title, and where it is."""
    ink = SEVERITIES[finding.severity]
    won = f"≤ {units.time(finding.recoverable_ns)}" if finding.recoverable_ns is not None else ""
    if finding.recoverable_share:
        won = f"≤ {units.share(finding.recoverable_share)}"
    where = phrases.about(report, finding)
    said = safe(finding.title) + (f", {safe(where)}" if where else "")
    start = f"{ink.sign} {ink.label:<{_WORD}} {won:>9}  "
    return Content.styled(start, ink.color) + Content(elide(said, max(16, width - len(start))))
