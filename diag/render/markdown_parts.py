"""Pieces of GitHub-flavoured Markdown; whatever comes from a file is made safe here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diag.render.escape import markdown_code, markdown_prose, one_line
from diag.render.layout import elide, shorten
from diag.render.table import Table

LONGEST_TEXT = 1_200
LONGEST_NAME = 120


def text(said: str) -> str:
    return markdown_prose(elide(one_line(said), LONGEST_TEXT))


def name(of: str) -> str:
    return markdown_code(elide(one_line(of), LONGEST_NAME))


def table_blocks(table: Table) -> Iterable[str]:
    """Heading, rows and notes of a table."""
    names = shorten([one_line(row[table.name_column]) for row in table.rows], LONGEST_NAME)
    rows = [
        [markdown_code(own) if i == table.name_column else text(cell) for i, cell in enumerate(row)]
        for own, row in zip(names, table.rows, strict=True)
    ]
    yield f"### {text(table.title)}"
    yield grid(table.header, rows, numbers=set(range(len(table.header))) - {table.name_column})
    yield text(" ".join(table.notes))


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[int]) -> str:
    """A table of cells that are Markdown already."""
    rule = ["---:" if i in numbers else "---" for i in range(len(header))]
    return "\n".join("| " + " | ".join(cell or " " for cell in row) + " |" for row in (header, rule, *rows))
