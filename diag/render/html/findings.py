"""Findings one below the other, each to be opened: claim, figures with formula and SQL, what to do and what refutes."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.render import phrases
from diag.render.html.parts import LONGEST_QUERY, bar, fitting, items, name, paragraphs, prose, section, tag, text
from diag.render.html.places import Window
from diag.render.html.timeline import Timeline
from diag.render.palette import SEVERITIES
from diag.rules.finding import Evidence, Finding
from diag.rules.report import Report

MOST_FINDINGS = 200
MOST_BYTES = 250_000
MOST_EVIDENCE = 40
"""Figures of one finding."""


def findings(report: Report, timeline: Timeline | None) -> str:
    """The one that the verdict rests on first and open, then the others as they are ranked."""
    lead = phrases.lead(report)
    ranked = [*([lead] if lead else []), *phrases.others(report)]
    made = (_finding(report, finding, timeline, is_open=not at) for at, finding in enumerate(ranked[:MOST_FINDINGS]))
    shown = fitting(made, MOST_BYTES)
    number = units.count(len(ranked), "finding")
    said = f"{number}, the one that the verdict rests on first." if ranked else ""
    if len(shown) < len(ranked):
        said = f"The first {len(shown):,} of {number} as they are ranked. All: `diag report --format json`."
    return section("findings", "Findings", paragraphs([said], "note"), *shown)


def _finding(report: Report, finding: Finding, timeline: Timeline | None, *, is_open: bool) -> str:
    parts = (
        _titled("Evidence", tag("p", prose(finding.claim)) + _figures(finding)),
        _titled("What could be won", paragraphs([phrases.won(finding, report)])),
        _titled("What would refute it", paragraphs([finding.refute])),
        _titled("What to do", items((prose(step) for step in finding.next), "ol")),
        _places(finding, timeline),
        tag("p", _identity(report, finding), class_="identity"),
    )
    body = tag("div", *parts, class_="argument")
    return tag("details", _summary(report, finding), body, class_="finding", id=finding.id, open=is_open) + "\n"


def _summary(report: Report, finding: Finding) -> str:
    ink, about = SEVERITIES[finding.severity], phrases.about(report, finding)
    severity = tag(
        "span", f"{ink.sign} {text(phrases.severity(report, finding))}", class_=f"severity {finding.severity}"
    )
    title = tag("h3", text(finding.title), f" {tag('span', text(about), class_='about')}" if about else "")
    share = tag("span", bar(finding.share), text(units.share(finding.share)), class_="share") if finding.share else ""
    return tag("summary", severity, title, share)


def _titled(title: str, content: str) -> str:
    return tag("h4", title) + content if content else ""


def _figures(finding: Finding) -> str:
    shown = finding.evidence[:MOST_EVIDENCE]
    rows = "".join(_figure(depth, label, each) for depth, label, each in phrases.outline(shown))
    if not rows:
        return ""
    heads = (tag("th", head, scope="col", class_=look) for head, look in _HEADS)
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", rows), class_="figures")
    hidden = len(finding.evidence) - len(shown)
    more = [f"{units.count(hidden, 'more figure')}: `diag explain {finding.id}`"] if hidden else []
    return tag("div", table, class_="wide") + paragraphs(more, "note")


_HEADS = (("figure", "name"), ("value", None), ("how it was computed", "name"))


def _figure(depth: int, label: str, evidence: Evidence) -> str:
    query = ""
    if evidence.sql:
        sql = tag("code", text(evidence.sql, LONGEST_QUERY))
        query = tag("details", tag("summary", "SQL"), tag("pre", sql), class_="sql")
    return tag(
        "tr",
        tag("th", name(label), scope="row", class_=f"name depth-{min(depth, 3)}"),
        tag("td", text(phrases.value(evidence)), class_="name" if isinstance(evidence.value, str) else None),
        tag("td", prose(evidence.formula), query, class_="name"),
    )


def _identity(report: Report, finding: Finding) -> str:
    parts = (
        f"{finding.confidence} confidence",
        f"rule {tag('code', text(finding.rule))}",
        f"id {tag('code', text(finding.id))}",
        f"more: {tag('code', text(f'diag explain {finding.id}'))}",
    )
    overlap = report.overlaps.get(finding.id, ())
    others = ", ".join(tag("code", text(each)) for each in overlap[: phrases.MOST_NAMED])
    return ", ".join(parts) + (f"; partly the same time as {others}" if others else "")


def _places(finding: Finding, timeline: Timeline | None) -> str:
    """Buttons that the script makes work; without it they are not shown."""
    buttons = "".join(_buttons(finding, timeline)) if timeline else ""
    return tag("p", "In the timeline: ", buttons, class_="places needs-script") if buttons else ""


def _buttons(finding: Finding, timeline: Timeline) -> Iterator[str]:
    origin_ns = timeline.origin_ns.get(finding.subject.source)
    if origin_ns is None:
        return
    if finding.subject.window:
        start, end = finding.subject.window
        yield _button("all of its window", (start - origin_ns, end - origin_ns), finding)
    for at, (start, end) in enumerate(timeline.places.get(finding.id, ()), 1):
        yield _button(f"{_PLACES[at - 1]}, {units.time(end - start)}", (start, end), finding)


_PLACES = ("longest", "second longest", "third longest")


def _button(said: str, window: Window, finding: Finding) -> str:
    start, end = window
    return tag(
        "button",
        text(said),
        type="button",
        class_="place",
        data_from=start,
        data_to=end,
        data_device=None if finding.subject.device is None else _device(finding),
    )


def _device(finding: Finding) -> str:
    """As the groups of the timeline name theirs."""
    return f"{finding.subject.source}.{finding.subject.process}.{finding.subject.device}"
