"""The tables of a case as its schema explains them: SQLite keeps the comments of each definition."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_NAME = re.compile(r"\s*(\w+)\s+(?:INTEGER|TEXT|REAL|BLOB|ANY)\b")


@dataclass(frozen=True)
class ColumnNote:
    name: str
    kind: str  # 'INTEGER', 'TEXT', 'REAL', 'BLOB', or '' where nothing tells
    note: str


@dataclass(frozen=True)
class TableNote:
    """`schema` is 'main', or 'source1' for the export that source 1 was read from."""

    schema: str
    name: str
    is_view: bool
    note: str
    columns: Sequence[ColumnNote]

    @property
    def sql(self) -> str:
        """The name as a statement wants it."""
        quoted = self.name if self.name.isidentifier() else '"' + self.name.replace('"', '""') + '"'
        return quoted if self.schema == "main" else f"{self.schema}.{quoted}"


def table_notes(db: sqlite3.Connection) -> list[TableNote]:
    """All tables and views, those of the case first, each in the order of its schema."""
    schemas = [name for _, name, _ in db.execute("PRAGMA database_list") if name != "temp"]
    return [table for schema in schemas for table in _tables(db, schema)]


def _tables(db: sqlite3.Connection, schema: str) -> Iterator[TableNote]:
    listed = f"SELECT name, type, sql FROM {schema}.sqlite_master WHERE type IN ('table', 'view') ORDER BY rowid"
    for name, kind, sql in db.execute(listed).fetchall():
        table_note, notes = comments(sql or "")
        info = db.execute("SELECT name, type FROM pragma_table_info(?, ?)", (name, schema)).fetchall()
        columns = [ColumnNote(column, of_type, notes.get(column, "")) for column, of_type in info]
        yield TableNote(schema, name, kind == "view", table_note, columns)


def comments(sql: str) -> tuple[str, dict[str, str]]:
    """The comment on a table and those on its columns; a line of comment alone goes on with the one before.

    >>> comments('CREATE TABLE a ( -- all\\n  -- of it\\n  x INTEGER, y INTEGER, -- where\\n  z TEXT\\n)')
    ('all of it', {'x': 'where', 'y': 'where'})
    """
    table: list[str] = []
    columns: dict[str, list[str]] = {}
    open_notes = [table]
    for line in sql.splitlines():
        code, _, comment = line.partition("--")
        if code.strip() and not code.upper().startswith("CREATE"):
            names = [found[1] for part in code.split(",") if (found := _NAME.match(part))]
            open_notes = [columns.setdefault(name, []) for name in names]
        if comment:
            for note in open_notes:
                note.append(comment.strip())
    return " ".join(table), {name: " ".join(note) for name, note in columns.items() if note}
