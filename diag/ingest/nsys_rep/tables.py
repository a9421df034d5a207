"""Tables of Nsight Systems' own SQLite export, and a writer for them.

Names, columns and types are those of `nsys export`, so that whatever reads its exports reads these. A table is made
when its first row comes: one that is absent says that nothing of the kind was recorded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from diag.store.columns import sqlite_uri

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    name: str
    columns: Mapping[str, str]
    """SQL type of each column; a row has a value for each, in this order."""

    @property
    def create(self) -> str:
        columns = ", ".join(f'"{column}" {type_}' for column, type_ in self.columns.items())
        return f'CREATE TABLE "{self.name}" ({columns})'

    @property
    def insert(self) -> str:
        # Texts come as bytes, for not every one is UTF-8; SQLite takes them for what they are.
        values = ", ".join("CAST(? AS TEXT)" if type_ == "TEXT" else "?" for type_ in self.columns.values())
        return f'INSERT INTO "{self.name}" VALUES ({values})'


def table(name: str, /, **columns: str) -> Table:
    return Table(name, columns)


STRINGS = table("StringIds", id="INTEGER", value="TEXT")
UNREAD = table("DIAG_UNREAD", what="TEXT", count="INTEGER")
"""Ours: classes of events, and fields of events, that are not understood, and how many events have them."""
READING = table("DIAG_READING", declared="INTEGER", read="INTEGER", losses="TEXT")
"""Ours: how many events the report declares, how many were read, and which of its parts are lost."""


class ExportWriter:
    """A new export at `path`, which is complete when the block ends; to be thrown away when it fails."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(sqlite_uri(path, "rwc"), uri=True, isolation_level=None)
        self._tables: set[str] = set()

    def __enter__(self) -> Self:
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

    def add(self, table: Table, rows: Iterable[Row]) -> None:
        if table.name not in self._tables:
            self._db.execute(table.create)
            self._tables.add(table.name)
        self._db.executemany(table.insert, rows)
