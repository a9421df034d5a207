"""Tables that can be sorted and filtered: cells with what they are sorted by. Without JavaScript they are tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from diag.render.html.parts import bar, fitting, name, paragraphs, section, tag, text
from diag.render.table import NOT_CAPTURED, Table

Row = TypeVar("Row")

MOST_ROWS = 500
MOST_BYTES = 120_000
"""Of the rows of one table."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """`key` is what it is sorted by, None where nothing is known; without one it is sorted as text."""

    header: str
    text: Callable[[Row], str | None]
    key: Callable[[Row], float | None] | None = None
    share: Callable[[Row], float | None] | None = None  # drawn as a bar
    about: str = ""

    def cell(self, row: Row) -> str:
        said = self.text(row)
        if self.key is None:
            return tag("td", name(said) if said else NOT_CAPTURED, class_="name")
        key, share = self.key(row), self.share(row) if self.share else None
        drawn = "" if share is None else bar(share)
        return tag("td", drawn, NOT_CAPTURED if said is None else text(said), data_key=key)


def grid(identity: str, title: str, columns: Sequence[Column[Row]], rows: Sequence[Row], *notes: str) -> str:
    """A section with the first rows, as many as there is room for; nothing where there are none. Columns in which no
    row has anything are left out.
    """
    of = [column for column in columns if any(column.text(row) is not None for row in rows)]
    made = (tag("tr", *(column.cell(row) for column in of)) for row in rows[:MOST_ROWS])
    heads = [(column.header, column.key is not None, column.about) for column in of]
    return _section(identity, title, heads, fitting(made, MOST_BYTES), len(rows), notes)


def grid_of(identity: str, table: Table, total: int | None = None) -> str:
    """A table of another renderer, sorted by the numbers that its cells say."""
    heads = [(header, at != table.name_column, "") for at, header in enumerate(table.header)]
    made = (
        tag("tr", *(tag("td", name(cell), class_=None if is_number else "name") for cell, (_, is_number, _) in
                    zip(row, heads, strict=True)))
        for row in table.rows[:MOST_ROWS]
    )  # fmt: skip
    return _section(identity, table.title, heads, fitting(made, MOST_BYTES), total or len(table.rows), table.notes)


def _section(
    identity: str,
    title: str,
    heads: Sequence[tuple[str, bool, str]],
    rows: Sequence[str],
    total: int,
    notes: Sequence[str],
) -> str:
    if not rows:
        return ""
    header = tag(
        "tr",
        *(
            tag("th", text(said), scope="col", class_=None if is_number else "name", title=about or None)
            for said, is_number, about in heads
        ),
    )
    caption = tag("caption", text(title), class_="unseen")
    table = tag("table", caption, tag("thead", header), tag("tbody", *rows), class_="grid")
    scrolled = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=f"{title}, table")
    return section(identity, title, scrolled, paragraphs([*_left_out(len(rows), total), *notes], "note"))


def _left_out(shown: int, total: int) -> Iterator[str]:
    if shown < total:
        yield f"The first {shown:,} of {total:,} rows, in the order of the report. All: `diag report --format json`."
