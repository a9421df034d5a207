"""Tables of Nsight Systems' own SQLite export, and a writer for them.

Names, columns and types are those of `nsys export`, so that whatever reads its exports reads these. A table is made
when its first row comes: one that is absent says that nothing of the kind was recorded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from diag.ingest.nsys_rep.messages import ABSENT, NO_TEXT
from diag.store.bulk import ColumnValues, insert_columns, is_all
from diag.store.columns import sqlite_uri
from diag.store.sqlite_errors import let_signals_in


@dataclass(frozen=True)
class Table:
    name: str
    columns: Mapping[str, str]
    """SQL type of each column."""

    @property
    def create(self) -> str:
        columns = ", ".join(f'"{column}" {type_}' for column, type_ in self.columns.items())
        return f'CREATE TABLE "{self.name}" ({columns})'

    def by_column(self, rows: Iterable[Sequence[Any]]) -> ColumnValues:
        """Rows that have a value for each column, in this table's order."""
        values = list(zip(*rows, strict=True))
        return dict(zip(self.columns, values, strict=True)) if values else {}


_VALUES = {
    # SQL that makes of what is bound the value of a column of this type.
    "INTEGER": f"NULLIF(?, {ABSENT})",
    # Texts come as bytes, for not every one is UTF-8; SQLite takes them for what they are.
    "TEXT": f"CAST(NULLIF(?, x'{NO_TEXT.hex()}') AS TEXT)",
}


def table(name: str, /, **columns: str) -> Table:
    return Table(name, columns)


STRINGS = table("StringIds", id="INTEGER NOT NULL PRIMARY KEY", value="TEXT")
UNREAD = table("DIAG_UNREAD", what="TEXT", count="INTEGER")
"""Ours: classes of events, and fields of events, that are not understood, and how many events have them."""
READING = table("DIAG_READING", declared="INTEGER", read="INTEGER", lost="INTEGER", losses="TEXT")
"""Ours: how many events the report declares, how many were read or lost, and which of its parts are lost."""


class ExportWriter:
    """A new export at `path`, which is complete when the block ends; to be thrown away when it fails."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(sqlite_uri(path, "rwc"), uri=True, isolation_level=None)
        self._tables: dict[str, Table] = {}

    def __enter__(self) -> Self:
        let_signals_in(self._db)
        # The file is made anew if anything goes wrong: neither journal nor waiting for the disk is of use.
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("BEGIN")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None:
                self._db.execute("COMMIT")
        finally:
            self._db.close()

    def integers_in(self, columns: Collection[str]) -> set[int]:
        """The distinct integers in columns of these names, over all tables so far."""
        found: set[int] = set()
        for table in self._tables.values():
            for column in table.columns:
                if column in columns:
                    rows = self._db.execute(f'SELECT DISTINCT "{column}" FROM "{table.name}"')
                    found.update(value for (value,) in rows if isinstance(value, int))
        return found

    def add(self, table: Table, columns: ColumnValues) -> None:
        if table.name not in self._tables:
            self._db.execute(table.create)
            self._tables[table.name] = table
        there = {
            name: values for name, values in columns.items() if not (is_all(values, ABSENT) or is_all(values, NO_TEXT))
        }
        # NULLIF costs a twentieth of a row, and looking whether it is needed a fifth of that.
        sql = {
            name: _VALUES.get(table.columns[name], "?")
            for name, values in there.items()
            if table.columns[name] != "INTEGER" or ABSENT in values
        }
        insert_columns(self._db, table.name, there, values=sql)
