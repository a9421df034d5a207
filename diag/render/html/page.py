"""The report as one HTML file that needs nothing else: no network, no fonts, no code but its own.

Its policy (CSP) allows the one style and the one script whose hashes it names, and no address outside: what came from a
trace could not run or phone home even if it got through the escaping. The bytes are ASCII, whatever the encoding.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

from diag import __version__
from diag.render import answers, baseline_phrases, experiment_phrases, phrases, source_phrases
from diag.render.html.devices import devices
from diag.render.html.findings import findings
from diag.render.html.grids import grids
from diag.render.html.parts import ascii_only, bar_widths, fitting, items, name, paragraphs, prose, section, tag, text
from diag.render.html.roofline import rooflines
from diag.render.html.timeline import Timeline
from diag.render.html.timeline_part import timeline_part
from diag.rules.report import Report
from diag.store.case import Source

MOST_ANSWER_BYTES = 60_000
MOST_SOURCE_BYTES = 60_000
MOST_CHANGE_BYTES = 40_000
MOST_NOTES = 50
"""On one input."""

MOST_BYTES = 2_990_000
"""Of the page: what can be sent by mail, and opens at once."""

STYLES = ("page.css", "timeline.css")
SCRIPTS = ("page.js", "grid.js", "roofline.js", "decode.js", "view.js", "draw.js", "pointer.js", "timeline.js")
"""In the order in which they stand in the page; they share one scope."""


def render_html(report: Report, timeline: Timeline | None = None) -> str:
    """Verdict first, then findings, devices, the timeline, and every table: at most `MOST_BYTES`, whatever the trace.

    Each part is bounded by itself; only names of the strangest kinds could make all of them together too long, and then
    the timeline is left out.
    """
    page = _page(report, timeline)
    return page if len(page) <= MOST_BYTES else _page(report, None, "The timeline does not fit into this file.")


def _page(report: Report, timeline: Timeline | None, remark: str = "") -> str:
    content = "".join(
        [
            findings(report, timeline),
            _baseline(report),
            devices(report),
            timeline_part(timeline),
            rooflines(report.rooflines),
            grids(report),
            _cannot_tell(report),
            _clear(report),
            _sources(report),
            _experiments(report),
        ]
    )
    body = (
        tag("a", "To the report", href="#report", class_="skip"),
        tag("header", _verdict(report)),
        _contents(content),
        tag("main", content, paragraphs([remark], "note"), id="report"),
        tag("footer", text(f"Made by diag {__version__}. This file needs nothing else, and sends nothing anywhere.")),
        f"<script>{_asset(SCRIPTS)}</script>",
    )
    head = (
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        tag("title", text(f"{report.verdict.title} - diag", 200)),
        f"<style>{_asset(STYLES)}</style>",
    )
    return ascii_only(
        f'<!doctype html>\n<html lang="en"><head>{"".join(head)}</head>\n<body>{"".join(body)}</body></html>\n'
    )


@cache
def _asset(files: tuple[str, ...]) -> str:
    folder = resources.files("diag.render.html") / "assets"
    whole = "\n".join((folder / file).read_text(encoding="ascii") for file in files)
    return f'(() => {{\n"use strict";\n{whole}}})();\n' if files is SCRIPTS else whole + bar_widths()


@cache
def _policy() -> str:
    def digest(asset: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(asset.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; script-src {digest(_asset(SCRIPTS))}; style-src {digest(_asset(STYLES))}; "
        "base-uri 'none'; form-action 'none'"
    )


def _verdict(report: Report) -> str:
    finding = phrases.lead(report)
    said = [
        tag("p", "diag report", class_="mark-of-origin"),
        tag("h1", text(report.verdict.title), class_=finding.severity if finding else None),
        paragraphs(phrases.conditions(report), "condition"),
        paragraphs([report.verdict.summary], "summary"),
    ]
    if finding:
        about = phrases.about(report, finding)
        known = (phrases.severity(report, finding), f"{finding.confidence} confidence", f"rule {finding.rule}", about)
        said.append(paragraphs([", ".join(filter(None, known))], "note"))
    return tag("div", *said, class_="verdict") + tag(
        "button", "Dark theme", type="button", id="theme", class_="needs-script", aria_pressed="false"
    )


def _contents(content: str) -> str:
    """Links to the sections that are there."""
    links = [
        tag("a", title, href=f"#{identity}") for identity, title in _SECTIONS if f'<section id="{identity}"' in content
    ]
    return tag("nav", items(links), aria_label="Contents")


_SECTIONS = (
    ("findings", "Findings"),
    ("baseline", "Against the baseline"),
    ("devices", "Devices"),
    ("timeline", "Timeline"),
    ("roofline", "Roofline"),
    ("measurements", "Probes"),
    ("measured-collectives", "Measured collectives"),
    ("live-devices", "Devices watched"),
    ("live-processes", "Processes watched"),
    ("ranks", "Ranks"),
    ("collectives", "Collectives"),
    ("kernels", "Kernels"),
    ("ranges", "Ranges"),
    ("operators", "Operators"),
    ("launches", "Launches"),
    ("vendor", "NVIDIA's rules"),
    ("copies", "Copies"),
    ("hardware", "Shared hardware"),
    ("ceilings", "Ceilings"),
    ("cannot-tell", "Cannot tell"),
    ("clear", "Clear"),
    ("read", "Read"),
    ("experiments", "Experiments"),
)


def _baseline(report: Report) -> str:
    if report.baseline is None:
        return ""
    windows = baseline_phrases.window_changes(report, report.baseline)[:MOST_NOTES]
    return section(
        "baseline",
        "Against the baseline",
        tag("p", name(report.baseline.path)),
        paragraphs([*windows, baseline_phrases.summary(report, report.baseline)]),
        _list(baseline_phrases.changes(report, report.baseline), "change", MOST_CHANGE_BYTES),
    )


def _cannot_tell(report: Report) -> str:
    return section("cannot-tell", "Cannot tell", _list(answers.cannot_tell(report), "reason"))


def _clear(report: Report) -> str:
    return section("clear", "Clear", _list([alike.in_full() for alike in answers.clear(report)], "answer"))


def _experiments(report: Report) -> str:
    said, _ = experiment_phrases.latest(report.experiments, len(report.experiments))
    return section("experiments", "Experiments", _list(said, "experiment") if said else "")


def _list(said: list[str], what: str, most_bytes: int = MOST_ANSWER_BYTES) -> str:
    shown = fitting((tag("li", prose(each)) for each in said), most_bytes)
    more = len(said) - len(shown)
    return (tag("ul", *shown) if shown else "") + paragraphs(
        [f"{more:,} more {what}s: --format json."] if more else [], "note"
    )


def _sources(report: Report) -> str:
    shown = fitting((_source(report, source) for source in report.sources), MOST_SOURCE_BYTES)
    more = len(report.sources) - len(shown)
    hidden = [f"{more:,} more inputs: --format json."] if more else []
    return section("read", "Read", tag("ul", *shown) if shown else "", paragraphs(hidden, "note"))


def _source(report: Report, source: Source) -> str:
    said = [note for note in report.notes.get(source.id, ()) if note]
    more = len(said) - MOST_NOTES
    notes = items([*map(prose, said[:MOST_NOTES]), *([f"{more:,} more notes: --format json."] if more > 0 else [])])
    return tag("li", tag("strong", name(source.path)), f"<br>{text(source_phrases.description(source))}", notes)
