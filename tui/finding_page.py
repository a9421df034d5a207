"""One finding in full: its argument, its figures to be opened, and where it leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual.content import Content

from diag.model import units
from diag.render import phrases
from diag.render.layout import cells, elide, pad, shorten
from diag.render.palette import SEVERITIES
from diag.rules.engine import rules
from diag.rules.finding import Evidence, Finding
from diag.rules.report import Report
from diag.tui.navigation import Target, ToFinding, ToKernel, ToLaunch, ToRoofline, ToTimeline
from diag.tui.text import safe
from diag.tui.widgets.page import LONGEST_LINE, Entry, heading, prose

JUMPS = {
    "timeline": "t  its time on the timeline",
    "kernel": "k  all launches of its kernel",
    "launch": "l  its profile",
    "roofline": "r  its point in the roofline",
}


def jumps(report: Report, finding: Finding) -> dict[str, Target]:
    """Where the finding leads, by the names in JUMPS."""
    about, found = finding.subject, dict[str, Target]()
    row = phrases.device_of(report, about)
    window = about.window or (row.window if row else None)
    if window is not None:
        found["timeline"] = ToTimeline(about.source, window, about.process, about.device)
    if about.kernel is not None:
        found["kernel"] = ToKernel(about.kernel)
    if about.launch is not None:
        found["launch"] = ToLaunch(about.launch)
        if any(kernel.launch == about.launch for kernel in report.rooflines):
            found["roofline"] = ToRoofline(about.launch)
    return found


def finding_entries(
    report: Report,
    finding: Finding,
    width: int,
    *,
    go: Callable[[Target], object],
    explain: Callable[[str], object],
    open_evidence: Callable[[Finding, Evidence], object],
) -> Iterator[Entry]:
    """The page of a finding. Figures, other findings, places and the rule are entries to be opened."""
    ink = SEVERITIES[finding.severity]
    yield Entry(prose(f"{ink.sign} {finding.title}", width, f"bold {ink.color}"))
    yield Entry(prose(_identity(report, finding), width, "dim", indent="  "))
    yield Entry(prose(finding.claim, width, indent="  "))
    if finding.evidence:
        yield heading("Evidence (Enter opens formula, SQL and rows)")
        yield from _evidence(finding, width, open_evidence)
    yield heading("What could be won")
    bound = _evidence_of_bound(finding)
    opens = partial(open_evidence, finding, bound) if bound is not None else None
    yield Entry(prose(_won(report, finding), width, indent="  "), opens, "won")
    for other in _overlapping(report, finding):
        shown = prose(f"overlaps {other.id}: {other.title}", width, indent="      ", first="    → ")
        yield Entry(shown, partial(go, ToFinding(other.id)), ("overlap", other.id))
    yield heading("What to do")
    for number, step in enumerate(finding.next, 1):
        yield Entry(prose(step, width, indent="     ", first=f"  {number}. "))
    yield heading("What would refute it")
    yield Entry(prose(finding.refute, width, indent="  "))
    yield heading("Go on with")
    for name, target in jumps(report, finding).items():
        yield Entry(Content(f"  {JUMPS[name]}"), partial(go, target), name)
    title = rules()[finding.rule].title if finding.rule in rules() else finding.rule
    yield Entry(
        prose(f"the rule {finding.rule}: {title}", width, indent="     ", first="  e  "),
        partial(explain, finding.rule),
        "rule",
    )


def _identity(report: Report, finding: Finding) -> str:
    share = f"{units.share(finding.share)} of {phrases.whole(finding.share_of)}" if finding.share is not None else ""
    parts = (
        phrases.severity(report, finding),
        f"{finding.confidence} confidence",
        share,
        phrases.about(report, finding),
        finding.id,
    )
    return ", ".join(filter(None, parts))


def _won(report: Report, finding: Finding) -> str:
    unbounded = "No bound can be given. " if finding.recoverable_ns is None else ""
    return unbounded + phrases.gain(finding, report)


def _evidence_of_bound(finding: Finding) -> Evidence | None:
    """The figure that says what could be won at most, where one of them does."""
    bound_ns = finding.recoverable_ns
    return next((each for *_, each in phrases.outline(finding.evidence) if bound_ns and each.value == bound_ns), None)


def _overlapping(report: Report, finding: Finding) -> list[Finding]:
    ids = set(report.overlaps.get(finding.id, ()))
    return [other for other in report.findings if other.id in ids]


def _evidence(finding: Finding, width: int, open_evidence: Callable[[Finding, Evidence], object]) -> Iterator[Entry]:
    """Labels and values in two columns, parts below their whole."""
    outline = phrases.outline(finding.evidence)
    width = min(width, LONGEST_LINE)
    labels = ["  " * (depth + 1) + safe(label) for depth, label, _ in outline]
    values = [safe(phrases.value(each)) for *_, each in outline]
    room = min(max(map(cells, labels)), width // 2)
    numbers = max(
        (cells(v) for v, (*_, e) in zip(values, outline, strict=True) if not isinstance(e.value, str)), default=0
    )
    for at, (label, value, (*_, each)) in enumerate(zip(shorten(labels, room), values, outline, strict=True)):
        space = " " * (min(numbers, width - room - 2) - cells(value)) if not isinstance(each.value, str) else ""
        start = f"{pad(label, room)}  {space}"
        shown = Content(start) + Content.styled(elide(value, max(8, width - cells(start))), "bold")
        yield Entry(shown, partial(open_evidence, finding, each), ("evidence", at))
