"""`diag hang` for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model.units import count
from diag.render.hang_page import Block, Figures, Items, Outline, Section, page
from diag.render.hang_view import HangView
from diag.render.text import INDENT, MOST_EVIDENCE, NARROWEST, Lines, Page

_CRITICAL = "1;31"
_BOLD = "1"
_DEEPEST = 12
"""Levels that are still indented further."""


def render_hang_text(view: HangView, *, width: int = 80, color: bool = False, top: int = 5) -> str:
    """Lines of at most `width` columns (24 at least), the answer first."""
    paper = Page(max(width, NARROWEST), color)
    first, *rest = page(view, top=top)
    code = _CRITICAL if view.lead is not None and view.lead.severity == "critical" else _BOLD
    sections = [_set(paper, first, code), *(_set(paper, section, _BOLD) for section in rest)]
    if view.lead is not None:
        rule = f"rule {view.lead.rule}, {view.lead.confidence} confidence; more: diag explain {view.lead.id}"
        sections[0] += paper.dim(rule)
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _set(paper: Page, section: Section, code: str) -> Lines:
    return [*paper.heading(section.title, code), *(line for block in section.blocks for line in _block(paper, block))]


def _block(paper: Page, block: Block) -> Iterator[str]:
    match block:
        case str():
            yield from paper.prose(block)
        case Items(lines, is_numbered=True):
            yield from paper.numbered(lines)
        case Items(lines):
            for line in lines:
                yield from paper.prose(line, INDENT * 2, INDENT)
        case Outline(lines):
            for depth, line in lines:
                indent = INDENT * (1 + min(depth, _DEEPEST))
                yield from paper.prose(line, indent + INDENT, indent)
        case Figures(evidence):
            yield from paper.evidence(evidence[:MOST_EVIDENCE])
            if (hidden := len(evidence) - MOST_EVIDENCE) > 0:
                yield from paper.dim(f"{count(hidden, 'more figure')}: diag explain")
