"""The report as GitHub-flavoured Markdown, for a pull request or an issue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diag.render import answers, phrases
from diag.render.escape import markdown_code, markdown_prose, one_line
from diag.render.layout import elide, shorten
from diag.render.tables import Table, tables
from diag.rules.finding import Finding
from diag.rules.report import Report

LONGEST_TEXT = 1_200
LONGEST_NAME = 120


def render_markdown(report: Report, *, top: int = 5) -> str:
    """The verdict, why, what to do, then everything else; tables and lists show `top` rows."""
    blocks = [
        f"## {_text(report.verdict.title)}",
        *(_text(condition) for condition in phrases.conditions(report)),
        _text(report.verdict.summary),
        *_baseline(report, top),
        *_lead(report),
        *_others(report, top),
        *(block for table in tables(report, top) for block in _table(table)),
        *_cannot_tell(report),
        *_clear(report),
        *_sources(report, top),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _text(text: str) -> str:
    return markdown_prose(elide(one_line(text), LONGEST_TEXT))


def _name(name: str) -> str:
    return markdown_code(elide(one_line(name), LONGEST_NAME))


def _lead(report: Report) -> Iterable[str]:
    finding = phrases.lead(report)
    if not finding:
        return
    yield _identity(report, finding)
    yield "### Why"
    if finding.claim not in report.verdict.summary:
        yield _text(finding.claim)
    rows = [[_text(each.label), _text(phrases.value(each)), _text(each.formula)] for each in finding.evidence]
    yield _grid(("evidence", "value", "formula"), rows, numbers={1}) if rows else ""
    if finding.next:
        yield "### What to do"
        yield "\n".join(f"{number}. {_text(step)}" for number, step in enumerate(finding.next, 1))
    yield "### What would refute it"
    yield _text(finding.refute)
    yield "### What could be won"
    yield _text(phrases.won(finding, report))


def _identity(report: Report, finding: Finding) -> str:
    about = phrases.subject(report, finding.subject)
    parts = [phrases.severity(report, finding), f"{finding.confidence} confidence", f"rule {_name(finding.rule)}"]
    said = ", ".join([*parts, _text(about)] if about else parts)
    return f"{said}; more: {_name(f'diag explain {finding.id}')}"


def _baseline(report: Report, top: int) -> Iterable[str]:
    if report.baseline is None:
        return
    changes = phrases.baseline_changes(report, report.baseline)
    shown = changes[: max(top, phrases.FEW_ROWS)]
    yield f"### Against the baseline {_name(report.baseline.path)}"
    if windows := phrases.window_changes(report, report.baseline)[: max(top, phrases.FEW_ROWS)]:
        yield "\n".join(f"- {_text(window)}" for window in windows)
    yield _text(phrases.baseline_summary(report, report.baseline))
    yield "\n".join(f"- {_text(change)}" for change in shown)
    if len(shown) < len(changes):
        yield _text(phrases.more(len(changes), len(shown)))


def _others(report: Report, top: int) -> Iterable[str]:
    same, groups = phrases.likewise(report)
    if same or groups:
        yield "### Also found" if phrases.lead(report) else "### Found"
        yield _text(phrases.elsewhere(report, same) or "")
        yield "\n".join(_item(report, group) for group in groups[:top])
    if groups[top:]:
        yield _text(phrases.rest(groups, top))


def _item(report: Report, alike: Sequence[Finding]) -> str:
    finding = alike[0]
    about = phrases.subject(report, finding.subject)
    title = f"**{_text(finding.title)}**" + (f", {_text(about)}" if about else "")
    said = _text(phrases.in_short(report, alike))
    return f"- {phrases.severity(report, finding)}: {title} {_name(finding.id)}\\\n  {said}"


def _table(table: Table) -> Iterable[str]:
    names = shorten([one_line(row[table.name_column]) for row in table.rows], LONGEST_NAME)
    rows = [
        [markdown_code(name) if i == table.name_column else _text(cell) for i, cell in enumerate(row)]
        for name, row in zip(names, table.rows, strict=True)
    ]
    yield f"### {_text(table.title)}"
    yield _grid(table.header, rows, numbers=set(range(len(table.header))) - {table.name_column})
    yield _text(" ".join(table.notes))


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[int]) -> str:
    """A table of cells that are Markdown already."""
    rule = ["---:" if i in numbers else "---" for i in range(len(header))]
    return "\n".join("| " + " | ".join(cell or " " for cell in row) + " |" for row in (header, rule, *rows))


def _cannot_tell(report: Report) -> Iterable[str]:
    if reasons := answers.cannot_tell(report):
        yield "### Cannot tell"
        yield "\n".join(f"- {_text(reason)}" for reason in reasons)


def _clear(report: Report) -> Iterable[str]:
    if rules := answers.clear(report):
        yield "### Clear"
        yield "\n".join(f"- {_text(alike.in_full())}" for alike in rules)


def _sources(report: Report, top: int) -> Iterable[str]:
    if not report.sources:
        return
    yield "### Read"
    lines = []
    shown = report.sources[: max(top, phrases.FEW_ROWS)]
    for source in shown:
        lines.append(f"- {_name(source.path)}: {_text(phrases.source(source))}")
        lines += [f"  - {_text(note)}" for note in report.notes.get(source.id, ()) if note]
    yield "\n".join(lines)
    yield _text(phrases.hidden_sources(report, len(shown)))
