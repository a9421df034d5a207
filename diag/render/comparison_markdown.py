"""A comparison as GitHub-flavoured Markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Iterable

from diag.compare.comparison import Comparison
from diag.render import comparison_phrases, phrases
from diag.render.comparison_tables import tables
from diag.render.markdown_parts import table_blocks, text


def render_comparison(comparison: Comparison, *, top: int = 5) -> str:
    """The verdict, whether the runs may be compared, then what moved; tables and lists show `top` rows."""
    blocks = [
        f"## {text(comparison_phrases.title(comparison))}",
        *map(text, comparison_phrases.summary(comparison)),
        *_nccl(comparison, top),
        "### May they be compared?",
        "\n".join(f"- {text(comparison_phrases.condition(each))}" for each in comparison.conditions),
        *(block for table in tables(comparison, top) for block in table_blocks(table)),
        *_findings(comparison, top),
        *_read(comparison, top),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _nccl(comparison: Comparison, top: int) -> Iterable[str]:
    said = comparison_phrases.nccl(comparison)
    most = max(top, phrases.FEW_ROWS)
    if said:
        yield "### What NCCL did differently"
        yield "\n".join(f"- {text(each)}" for each in said[:most])
        yield text(phrases.more(len(said), most)) if said[most:] else ""


def _findings(comparison: Comparison, top: int) -> Iterable[str]:
    if not comparison.findings:
        return
    moved = comparison_phrases.findings_that_moved(comparison)
    yield "### Findings"
    yield "\n".join(f"- {text(comparison_phrases.finding(each))}" for each in moved[:top])
    yield text(phrases.more(len(moved), top)) if moved[top:] else ""
    yield text(f"All: {comparison_phrases.findings_tally(comparison)}.")


def _read(comparison: Comparison, top: int) -> Iterable[str]:
    yield "### How it was judged"
    yield from map(text, comparison_phrases.how_judged(comparison))
    yield "### Read"
    lines = []
    for is_before, side in ((True, comparison.before), (False, comparison.after)):
        lines.append(f"- {text(comparison_phrases.side(side, is_before))}")
        lines += [f"  - {text(run)}" for run in comparison_phrases.runs(side)[: max(top, phrases.FEW_ROWS)]]
        lines += [f"  - {text(lack)}" for lack in comparison_phrases.lacks(side)]
    yield "\n".join(lines)
