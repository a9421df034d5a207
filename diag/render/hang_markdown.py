"""`diag hang` as GitHub-flavoured Markdown, for an issue or a chat."""

from __future__ import annotations

from collections.abc import Iterator

from diag.render import phrases
from diag.render.hang_page import Block, Figures, Items, Outline, Section, page
from diag.render.hang_view import HangView
from diag.render.markdown_parts import grid, text


def render_hang_markdown(view: HangView, *, top: int = 5, **_: object) -> str:
    first, *rest = page(view, top=top)
    parts = [f"## {text(first.title)}", *_blocks(first)]
    for section in rest:
        parts += [f"### {text(section.title)}", *_blocks(section)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _blocks(section: Section) -> list[str]:
    return [part for block in section.blocks for part in _block(block)]


def _block(block: Block) -> Iterator[str]:
    match block:
        case str():
            yield text(block)
        case Items(lines, is_numbered=True):
            yield "\n".join(f"{at}. {text(line)}" for at, line in enumerate(lines, 1))
        case Items(lines):
            yield "\n".join(f"- {text(line)}" for line in lines)
        case Outline(lines):
            yield "\n".join(f"{'  ' * depth}- {text(line)}" for depth, line in lines)
        case Figures(evidence):
            rows = [[text(each.label), text(phrases.value(each)), text(each.formula)] for each in evidence]
            yield grid(("evidence", "value", "formula"), rows, numbers={1})
