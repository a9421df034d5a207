"""The report as GitHub-flavoured Markdown, for a pull request or an issue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diag.render import answers, baseline_phrases, experiment_phrases, phrases, source_phrases
from diag.render.markdown_parts import grid, name, table_blocks, text
from diag.render.tables import tables
from diag.rules.finding import Finding
from diag.rules.report import Report


def render_markdown(report: Report, *, top: int = 5) -> str:
    """The verdict, why, what to do, then everything else; tables and lists show `top` rows."""
    blocks = [
        f"## {text(report.verdict.title)}",
        *(text(condition) for condition in phrases.conditions(report)),
        text(report.verdict.summary),
        *_baseline(report, top),
        *_lead(report),
        *_others(report, top),
        *(block for table in tables(report, top) for block in table_blocks(table)),
        *_cannot_tell(report),
        *_clear(report),
        *_sources(report, top),
        *_experiments(report, top),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _lead(report: Report) -> Iterable[str]:
    finding = phrases.lead(report)
    if not finding:
        return
    yield _identity(report, finding)
    yield "### Why"
    if finding.claim not in report.verdict.summary:
        yield text(finding.claim)
    rows = [[text(each.label), text(phrases.value(each)), text(each.formula)] for each in finding.evidence]
    yield grid(("evidence", "value", "formula"), rows, numbers={1}) if rows else ""
    if finding.next:
        yield "### What to do"
        yield "\n".join(f"{number}. {text(step)}" for number, step in enumerate(finding.next, 1))
    yield "### What would refute it"
    yield text(finding.refute)
    yield "### What could be won"
    yield text(phrases.won(finding, report))


def _identity(report: Report, finding: Finding) -> str:
    about = phrases.about(report, finding)
    parts = [phrases.severity(report, finding), f"{finding.confidence} confidence", f"rule {name(finding.rule)}"]
    said = ", ".join([*parts, text(about)] if about else parts)
    return f"{said}; more: {name(f'diag explain {finding.id}')}"


def _baseline(report: Report, top: int) -> Iterable[str]:
    if report.baseline is None:
        return
    changes = baseline_phrases.changes(report, report.baseline)
    shown = changes[: max(top, phrases.FEW_ROWS)]
    yield f"### Against the baseline {name(report.baseline.path)}"
    if windows := baseline_phrases.window_changes(report, report.baseline)[: max(top, phrases.FEW_ROWS)]:
        yield "\n".join(f"- {text(window)}" for window in windows)
    yield text(baseline_phrases.summary(report, report.baseline))
    yield "\n".join(f"- {text(change)}" for change in shown)
    if len(shown) < len(changes):
        yield text(phrases.more(len(changes), len(shown)))


def _others(report: Report, top: int) -> Iterable[str]:
    same, groups = phrases.likewise(report)
    if same or groups:
        yield "### Also found" if phrases.lead(report) else "### Found"
        yield text(phrases.elsewhere(report, same) or "")
        yield "\n".join(_item(report, group) for group in groups[:top])
    if groups[top:]:
        yield text(phrases.rest(groups, top))


def _item(report: Report, alike: Sequence[Finding]) -> str:
    finding = alike[0]
    about = phrases.about(report, finding)
    title = f"**{text(finding.title)}**" + (f", {text(about)}" if about else "")
    said = text(phrases.in_short(report, alike))
    return f"- {phrases.severity(report, finding)}: {title} {name(finding.id)}\\\n  {said}"


def _cannot_tell(report: Report) -> Iterable[str]:
    if reasons := answers.cannot_tell(report):
        yield "### Cannot tell"
        yield "\n".join(f"- {text(reason)}" for reason in reasons)


def _clear(report: Report) -> Iterable[str]:
    if rules := answers.clear(report):
        yield "### Clear"
        yield "\n".join(f"- {text(alike.in_full())}" for alike in rules)


def _sources(report: Report, top: int) -> Iterable[str]:
    if not report.sources:
        return
    yield "### Read"
    lines = []
    shown = report.sources[: max(top, phrases.FEW_ROWS)]
    for source in shown:
        lines.append(f"- {name(source.path)}: {text(source_phrases.description(source))}")
        lines += [f"  - {text(note)}" for note in report.notes.get(source.id, ()) if note]
    yield "\n".join(lines)
    yield text(phrases.hidden_sources(report, len(shown)))


def _experiments(report: Report, top: int) -> Iterable[str]:
    said, left_out = experiment_phrases.latest(report.experiments, max(top, phrases.FEW_ROWS))
    if said:
        yield "### Experiments"
        yield "\n".join(f"- {text(each)}" for each in said)
        yield text(left_out)
