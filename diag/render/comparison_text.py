"""A comparison for a terminal: the verdict, whether the runs may be compared, then what moved."""

from __future__ import annotations

from diag.compare.changes import Answer
from diag.compare.comparison import Comparison
from diag.render import comparison_phrases, phrases
from diag.render.comparison_tables import tables
from diag.render.text import INDENT, NARROWEST, Lines, Page

_COLORS: dict[Answer, str] = {"regressed": "1;31", "improved": "1;32"}
_BOLD = "1"


def render_comparison(comparison: Comparison, *, width: int = 80, color: bool = False, top: int = 5) -> str:
    """In lines of at most `width` columns (24 at least); tables and lists show `top` rows."""
    page = Page(max(width, NARROWEST), color)
    sections = [
        _verdict(page, comparison),
        _nccl(page, comparison, top),
        _conditions(page, comparison),
        *(page.table(table) for table in tables(comparison, top)),
        _findings(page, comparison, top),
        _judged(page, comparison),
        _read(page, comparison, top),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _verdict(page: Page, comparison: Comparison) -> Lines:
    heading = page.heading(comparison_phrases.title(comparison), _COLORS.get(comparison.answer, _BOLD))
    return [*heading, *(line for said in comparison_phrases.summary(comparison) for line in page.prose(said))]


def _nccl(page: Page, comparison: Comparison, top: int) -> Lines:
    said = comparison_phrases.nccl(comparison)
    if not said:
        return []
    most = max(top, phrases.FEW_ROWS)
    lines = [line for each in said[:most] for line in page.prose(each, INDENT * 2, INDENT)]
    if said[most:]:
        lines += page.prose(phrases.more(len(said), most))
    return [*page.heading("What NCCL did differently"), *lines]


def _conditions(page: Page, comparison: Comparison) -> Lines:
    said = map(comparison_phrases.condition, comparison.conditions)
    return [
        *page.heading("May they be compared?"),
        *(line for each in said for line in page.prose(each, INDENT * 2, INDENT)),
    ]


def _findings(page: Page, comparison: Comparison, top: int) -> Lines:
    if not comparison.findings:
        return []
    moved = comparison_phrases.findings_that_moved(comparison)
    lines = [line for each in moved[:top] for line in page.prose(comparison_phrases.finding(each), INDENT * 2, INDENT)]
    if moved[top:]:
        lines += page.prose(phrases.more(len(moved), top))
    tally = page.dim(f"All: {comparison_phrases.findings_tally(comparison)}.")
    return [*page.heading("Findings"), *lines, *tally]


def _judged(page: Page, comparison: Comparison) -> Lines:
    said = comparison_phrases.how_judged(comparison)
    return [*page.heading("How it was judged"), *(line for each in said for line in page.prose(each))]


def _read(page: Page, comparison: Comparison, top: int) -> Lines:
    lines: Lines = []
    for is_before, side in ((True, comparison.before), (False, comparison.after)):
        lines += page.prose(comparison_phrases.side(side, is_before), INDENT * 2, INDENT)
        runs = comparison_phrases.runs(side)[: max(top, phrases.FEW_ROWS)]
        lines += [line for run in runs for line in page.dim(run, INDENT * 2)]
        lines += [line for lack in comparison_phrases.lacks(side) for line in page.prose(lack, INDENT * 2)]
    return [*page.heading("Read"), *lines]
