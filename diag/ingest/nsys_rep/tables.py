"""Tables of Nsight Systems' own SQLite export, and a writer for them.

Names, columns and types are those of `nsys export`, so that whatever reads its exports reads these. A table is made
when its first row comes: one that is absent says that nothing of the kind was recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from diag.ingest.nsys_rep.arrow import Columns, arrow_batch
from diag.store.new_database import NewDatabase


@dataclass(frozen=True)
class Table:
    name: str
    columns: Mapping[str, str]
    """SQL type of each column."""

    @property
    def create(self) -> str:
        columns = ", ".join(f'"{column}" {type_}' for column, type_ in self.columns.items())
        return f'CREATE TABLE "{self.name}" ({columns})'

    def by_column(self, rows: Iterable[Sequence[Any]]) -> Columns:
        """Rows that have a value for each column, in this table's order."""
        values = list(zip(*rows, strict=True))
        return dict(zip(self.columns, values, strict=True)) if values else {}


def table(name: str, /, **columns: str) -> Table:
    return Table(name, columns)


STRINGS = table("StringIds", id="INTEGER NOT NULL PRIMARY KEY", value="TEXT")
UNREAD = table("DIAG_UNREAD", what="TEXT", count="INTEGER")
"""Ours: classes of events, and fields of events, that are not understood, and how many events have them."""
READING = table(
    "DIAG_READING", declared="INTEGER", read="INTEGER", lost="INTEGER", areNamesLost="INTEGER", losses="TEXT"
)
"""Ours: how many events the report declares, how many were read or lost, and which of its parts are lost."""


class ExportWriter:
    """A new export at `path`, which is complete when the block ends; to be thrown away when it fails."""

    def __init__(self, path: Path) -> None:
        self._database = NewDatabase(path)
        self._tables: dict[str, Table] = {}

    def __enter__(self) -> Self:
        self._database.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.__exit__(kind, error, at)

    def integers_in(self, columns: Collection[str]) -> set[int]:
        """The distinct integers in columns of these names, over all tables so far."""
        found: set[int] = set()
        for table in self._tables.values():
            for column in table.columns:
                if column in columns:
                    rows = self._database.rows(_DISTINCT.format(table=table.name, column=column))
                    found.update(row["value"] for row in rows)
        return found

    def add(self, table: Table, columns: Columns) -> None:
        if table.name not in self._tables:
            self._database.execute(table.create)
            self._tables[table.name] = table
        if columns:
            self._database.insert(table.name, arrow_batch(table.columns, columns))


_DISTINCT = """
    SELECT DISTINCT CAST("{column}" AS INTEGER) AS value FROM "{table}" WHERE "{column}" IS NOT NULL
"""
