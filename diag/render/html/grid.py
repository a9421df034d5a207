"""Tables that can be sorted and filtered: cells with what they are sorted by. Without JavaScript they are tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from diag.render.escape import one_line
from diag.render.html.parts import bar, fitting, name, paragraphs, section, tag, text
from diag.render.layout import shorten
from diag.render.table import NOT_CAPTURED, Table

Row = TypeVar("Row")

MOST_ROWS = 500
MOST_BYTES = 60_000
"""Of the rows of one table."""

SHORT_NAME = 56
LONGEST_NAME = 600
"""Characters, closed and opened."""


@dataclass(frozen=True)
class Column(Generic[Row]):
    """`key` is what it is sorted by, None where nothing is known; without one it is sorted as text."""

    header: str
    text: Callable[[Row], str | None]
    key: Callable[[Row], float | None] | None = None
    share: Callable[[Row], float | None] | None = None  # drawn as a bar
    about: str = ""
    is_long: bool = False  # names, which may be long, and then open to be read in full

    def cells(self, rows: Sequence[Row]) -> Iterator[str]:
        if self.is_long:
            return map(_long_name, *_shortened([self.text(row) or "" for row in rows]))
        return map(self._cell, rows)

    def _cell(self, row: Row) -> str:
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
    shown = rows[:MOST_ROWS]
    of = [column for column in columns if any(column.text(row) is not None for row in shown)]
    heads = [(column.header, column.key is not None, column.about) for column in of]
    made = zip(*(column.cells(shown) for column in of), strict=True)
    return _section(identity, title, heads, made, len(rows), notes)


def grid_of(identity: str, table: Table, total: int | None = None) -> str:
    """A table of another renderer, its names first, sorted by the numbers that its cells say."""
    numbers = [at for at in range(len(table.header)) if at != table.name_column]
    heads = [(table.header[table.name_column], False, ""), *((table.header[at], True, "") for at in numbers)]
    rows = table.rows[:MOST_ROWS]
    names = map(_long_name, *_shortened([row[table.name_column] for row in rows]))
    made = ((said, *(tag("td", text(row[at])) for at in numbers)) for said, row in zip(names, rows, strict=True))
    return _section(identity, table.title, heads, made, total or len(table.rows), table.notes)


def _shortened(names: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    safe = [one_line(each) for each in names]
    return safe, shorten(safe, SHORT_NAME)


def _long_name(full: str, short: str) -> str:
    if full == short:
        return tag("td", name(full), class_="name long")
    opened = tag("details", tag("summary", text(short)), text(full, LONGEST_NAME))
    return tag("td", opened, class_="name long")


def _section(
    identity: str,
    title: str,
    heads: Sequence[tuple[str, bool, str]],
    cells: Iterable[Sequence[str]],
    total: int,
    notes: Sequence[str],
) -> str:
    rows = fitting((tag("tr", *row) for row in cells), MOST_BYTES)
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
