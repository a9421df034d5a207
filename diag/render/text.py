"""The report for a terminal: the verdict, why, what to do, then everything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.render import answers, baseline_phrases, experiment_phrases, phrases, source_phrases
from diag.render.escape import one_line
from diag.render.layout import GUTTER, cells, columns, columns_left_out, elide, pad, shorten, wrap
from diag.render.roofline_text import roofline_lines
from diag.render.table import Table
from diag.render.tables import tables
from diag.rules.finding import Evidence, Finding, Severity
from diag.rules.report import Report

NARROWEST = 24
LONGEST_LINE = 100
"""Running text is set no wider than this, however wide the terminal."""

MOST_EVIDENCE = 12
"""Figures of a finding that a report shows; `diag explain` shows all."""

LONGEST_TEXT = 1_200
"""Cells. A sentence may quote a name of any length."""

INDENT = "  "
Lines = list[str]

_BOLD, _DIM = "1", "2"
_COLORS: dict[Severity, str] = {"critical": "1;31", "warning": "1;33", "info": "1;36"}


def render_text(
    report: Report,
    *,
    width: int = 80,
    color: bool = False,
    braille: bool = True,
    top: int = 5,
    explain_all: bool = False,
) -> str:
    """The report in lines of at most `width` columns (24 at least); tables and lists show `top` rows.

    `explain_all` argues every finding as fully as the first, each with its formulas and SQL.
    """
    page = Page(max(width, NARROWEST), color)
    sections = [
        _verdict(page, report),
        _baseline(page, report, top),
        *_lead(page, report, explain_all),
        *_others(page, report, top, explain_all),
        *(page.table(table) for table in tables(report, top)),
        _rooflines(page, report, top, braille),
        _cannot_tell(page, report),
        _clear(page, report),
        _sources(page, report, top),
        _experiments(page, report, top),
    ]
    return _joined(sections)


def render_finding(finding: Finding, *, width: int = 80, color: bool = False) -> str:
    """One finding in full: its argument, and the formula and SQL behind each number."""
    page = Page(max(width, NARROWEST), color)
    title = [*page.heading(finding.title, _COLORS[finding.severity]), *_identity(page, finding)]
    return _joined([title, *_argument(page, None, finding, in_full=True)])


def _joined(sections: Iterable[Lines]) -> str:
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


@dataclass(frozen=True)
class Page:
    """Sets text into lines that fit. Everything shown passes through here, and is made safe here."""

    width: int
    color: bool

    def ink(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text

    def heading(self, text: str, code: str = _BOLD) -> Lines:
        return [self.ink(line, code) for line in wrap(_bounded(text), self.prose_width)]

    def prose(self, text: str, indent: str = INDENT, first: str | None = None) -> Lines:
        return wrap(_bounded(text), self.prose_width, indent, first) if text else []

    def dim(self, text: str, indent: str = INDENT) -> Lines:
        return [self.ink(line, _DIM) for line in self.prose(text, indent)]

    def query(self, sql: str, indent: str) -> Lines:
        """Never shortened: it is there to be run."""
        return [self.ink(line, _DIM) for line in wrap(one_line(sql), self.prose_width, indent)] if sql else []

    def numbered(self, items: Sequence[str]) -> Lines:
        room = len(str(len(items)))
        indent = INDENT + " " * (room + 2)
        return [
            line
            for number, item in enumerate(items, 1)
            for line in self.prose(item, indent, f"{INDENT}{number:>{room}}. ")
        ]

    def evidence(self, evidence: Sequence[Evidence]) -> Lines:
        """Labels and values, parts below their whole. Numbers end in one column; a text too long for the line goes on
        below itself.
        """
        outline = phrases.outline(evidence)
        labels = [INDENT * depth + one_line(label) for depth, label, _ in outline]
        values = [_bounded(phrases.value(each)) for *_, each in outline]
        is_number = [not isinstance(each.value, str) for *_, each in outline]
        numbers = max((cells(value) for value, right in zip(values, is_number, strict=True) if right), default=0)
        most = self.prose_width // 2
        if all(is_number):  # a text needs the other half
            most = max(most, self.prose_width - numbers - len(INDENT + GUTTER))
        room = min(max(map(cells, labels), default=0), most)
        numbers = min(numbers, self.prose_width - room - len(INDENT + GUTTER))
        lines: Lines = []
        for label, value, right in zip(shorten(labels, room), values, is_number, strict=True):
            space = " " * (numbers - cells(value)) if right else ""
            first = f"{INDENT}{pad(label, room)}{GUTTER}{space}"
            lines += wrap(value, self.prose_width, " " * cells(first), first)
        return lines

    def table(self, table: Table) -> Lines:
        safe = Table(
            table.title,
            table.header,
            [[one_line(cell) for cell in row] for row in table.rows],
            table.name_column,
            wraps_names=table.wraps_names,
        )
        header, *rows = columns(safe, self.width, INDENT)
        left_out = columns_left_out(safe, self.width, INDENT)
        narrow = [f"Too narrow here for: {', '.join(left_out)}."] if left_out else []
        notes = [line for note in (*narrow, *table.notes) for line in self.dim(note)]
        return [*self.heading(table.title), self.ink(header, _DIM), *rows, *notes]

    @property
    def prose_width(self) -> int:
        return min(self.width, LONGEST_LINE)


def _bounded(text: str) -> str:
    return elide(one_line(text), LONGEST_TEXT)


def _verdict(page: Page, report: Report) -> Lines:
    finding = phrases.lead(report)
    identity = _identity(page, finding, report) if finding else []
    code = _COLORS[finding.severity] if finding else _BOLD
    conditions = [line for condition in phrases.conditions(report) for line in page.prose(condition)]
    summary = page.prose(report.verdict.summary)
    return [*page.heading(report.verdict.title, code), *conditions, *summary, *identity]


def _identity(page: Page, finding: Finding, report: Report | None = None) -> Lines:
    known = f"{phrases.severity(report, finding)}, {finding.confidence} confidence"
    if report is None:  # all of it is told, so that more is only about its rule
        return page.dim(f"{known}, {finding.id}; its rule: diag explain {finding.rule}")
    about = phrases.about(report, finding)
    parts = (known, f"rule {finding.rule}", about)
    return page.dim(f"{', '.join(filter(None, parts))}; more: diag explain {finding.id}")


def _baseline(page: Page, report: Report, top: int) -> Lines:
    """What has changed since an earlier run."""
    if report.baseline is None:
        return []
    changes = baseline_phrases.changes(report, report.baseline)
    shown = changes[: max(top, phrases.FEW_ROWS)]
    windows = baseline_phrases.window_changes(report, report.baseline)
    lines = [line for window in windows[: max(top, phrases.FEW_ROWS)] for line in page.prose(window)]
    lines += page.prose(baseline_phrases.summary(report, report.baseline))
    lines += [line for change in shown for line in page.prose(change, INDENT * 2, INDENT)]
    if len(shown) < len(changes):
        lines += page.prose(phrases.more(len(changes), len(shown)))
    return _titled(page, f"Against the baseline {report.baseline.path}", lines)


def _lead(page: Page, report: Report, in_full: bool) -> Iterable[Lines]:
    finding = phrases.lead(report)
    return _argument(page, report, finding, in_full, said=report.verdict.summary) if finding else ()


def _argument(page: Page, report: Report | None, finding: Finding, in_full: bool, said: str = "") -> Iterable[Lines]:
    """Why, what to do, what would refute it and what could be won: a section each. `said` need not be said again."""
    claim = page.prose(finding.claim) if finding.claim not in said else []
    shown = finding.evidence if in_full else finding.evidence[:MOST_EVIDENCE]
    terms = "" if in_full else "; ".join(f"{label}: {formula}" for label, formula in phrases.terms(finding, shown))
    hidden = len(finding.evidence) - len(shown)
    more = f"{units.count(hidden, 'more figure')}: diag explain {finding.id}" if hidden else ""
    under = [*page.dim(f"{terms}." if terms else ""), *page.dim(more)]
    yield _titled(page, "Why", [*claim, *page.evidence(shown), *under])
    if in_full:
        yield _titled(page, "How it was computed", _derivation(page, finding))
    yield _titled(page, "What to do", page.numbered(finding.next))
    yield _titled(page, "What would refute it", page.prose(finding.refute))
    yield _titled(page, "What could be won", page.prose(phrases.won(finding, report)))


def _titled(page: Page, title: str, lines: Lines) -> Lines:
    return [*page.heading(title), *lines] if lines else []


def _derivation(page: Page, finding: Finding) -> Lines:
    """The formula of each number, and the query that shows its rows."""
    lines: Lines = []
    for evidence in finding.evidence:
        lines += page.prose(f"{evidence.label} = {evidence.formula}", INDENT * 2, INDENT)
        lines += page.query(evidence.sql or "", INDENT * 2)
    return lines


def _others(page: Page, report: Report, top: int, in_full: bool) -> Iterable[Lines]:
    if in_full:
        for finding in phrases.others(report):
            yield [*page.heading(_headline(report, finding), _COLORS[finding.severity]), *_identity(page, finding)]
            yield from _argument(page, report, finding, in_full)
        return
    same, groups = phrases.likewise(report)
    paragraphs = [page.prose(phrases.elsewhere(report, same) or "")] if same else []
    paragraphs += [_paragraph(page, report, group) for group in groups[:top]]
    if groups[top:]:
        paragraphs.append(page.prose(phrases.rest(groups, top)))
    for at, paragraph in enumerate(paragraphs):
        yield paragraph if at else _titled(page, "Also found" if phrases.lead(report) else "Found", paragraph)


def _headline(report: Report, finding: Finding) -> str:
    about = phrases.about(report, finding)
    return f"{phrases.severity(report, finding)}: {finding.title}" + (f", {about}" if about else "")


def _paragraph(page: Page, report: Report, alike: Sequence[Finding]) -> Lines:
    finding = alike[0]
    title = page.prose(f"{_headline(report, finding)} [{finding.id}]")
    body = page.prose(phrases.in_short(report, alike), INDENT * 2)
    return [*(page.ink(line, _COLORS[finding.severity]) for line in title), *body]


def _rooflines(page: Page, report: Report, top: int, braille: bool) -> Lines:
    """The kernels that take most of the time, beneath the roofs of their device."""
    lines = roofline_lines(report.rooflines[:top], width=page.width - len(INDENT), braille=braille)
    return _titled(page, "Roofline", [INDENT + line for line in lines])


def _cannot_tell(page: Page, report: Report) -> Lines:
    reasons = answers.cannot_tell_in_short(report)
    return _titled(page, "Cannot tell", [line for reason in reasons for line in page.prose(reason, INDENT * 2, INDENT)])


def _clear(page: Page, report: Report) -> Lines:
    lines: Lines = []
    for alike in answers.clear(report):
        if alike.where:
            lines += page.prose(f"{alike.where}: {alike.names_or_number}", INDENT * 2, INDENT)
        else:
            lines += page.prose(alike.names)
    return _titled(page, "Clear", lines)


def _sources(page: Page, report: Report, top: int) -> Lines:
    lines: Lines = []
    shown = report.sources[: max(top, phrases.FEW_ROWS)]
    for source in shown:
        lines += page.prose(source.path, INDENT * 2, INDENT)
        lines += page.dim(source_phrases.description(source), INDENT * 2)
        for note in report.notes.get(source.id, ()):
            lines += page.prose(note, INDENT * 2)
    if hidden := phrases.hidden_sources(report, len(shown)):
        lines += page.prose(hidden)
    return _titled(page, "Read", lines)


def _experiments(page: Page, report: Report, top: int) -> Lines:
    said, left_out = experiment_phrases.latest(report.experiments, max(top, phrases.FEW_ROWS))
    lines = [line for each in said for line in page.prose(each, INDENT * 2, INDENT)]
    return _titled(page, "Experiments", lines + page.dim(left_out))
