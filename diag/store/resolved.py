"""Tables as an analyst wants them: names in the place of their ids, pids and tids beside them, durations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

DICTIONARY = ("name_id", "short_name_id", "domain_id", "symbol_id", "module_id", "file_id")
"""Columns that hold ids of the table `name`; without `_id`, they hold its texts."""

BESIDE = {
    "process_id": [("process", "pid", "pid")],
    "thread_id": [("thread", "tid", "tid")],
    "end_thread_id": [("thread", "tid", "end_tid")],
    "launch_id": [("launch", "number", "launch")],
    "metric_id": [("metric", "name", "metric"), ("metric", "unit", "unit")],
}
"""Columns with ids of rows that are known by something else: the table, its columns, and their names here."""


@dataclass(frozen=True)
class Column:
    name: str
    sql: str  # an expression over the table as `t`
    kind: str  # 'INTEGER', 'TEXT', 'REAL', 'BLOB', or '' where nothing tells


def plain_columns(db: sqlite3.Connection, table: str) -> list[Column]:
    """The columns of a table or view as they are."""
    return [column for name, kind in _columns(db, table) for column in _as_stored(name, kind)]


def resolved_columns(db: sqlite3.Connection, table: str) -> list[Column]:
    """The same with every id resolved and, where there are start and end, the duration."""
    return list(_resolved(dict(_columns(db, table)), is_dictionary=table == "name"))


def _as_stored(name: str, kind: str) -> Iterator[Column]:
    """The column; one that holds anything as two, numbers and texts, since frames and files have one type a column."""
    if kind != "ANY":
        yield Column(name, f't."{name}"', kind)
        return
    yield Column(name, f'iif(typeof(t."{name}") = \'text\', NULL, t."{name}")', "REAL")
    yield Column(f"{name}_text", f'iif(typeof(t."{name}") = \'text\', t."{name}", NULL)', "TEXT")


def _resolved(columns: dict[str, str], *, is_dictionary: bool) -> Iterator[Column]:
    for name, kind in columns.items():
        if name in DICTIONARY and not is_dictionary and name.removesuffix("_id") not in columns:
            yield Column(name.removesuffix("_id"), f'(SELECT text FROM name WHERE id = t."{name}")', "TEXT")
            continue
        yield from _as_stored(name, kind)
        for table, column, beside in BESIDE.get(name, ()):
            if beside not in columns:
                kind = "TEXT" if table == "metric" else "INTEGER"
                yield Column(beside, f'(SELECT {column} FROM {table} WHERE id = t."{name}")', kind)
        if name == "end_ns" and "start_ns" in columns and "duration_ns" not in columns:
            yield Column("duration_ns", "t.end_ns - t.start_ns", "INTEGER")


def _columns(db: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    declared = db.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
    return [(name, kind or _kind_of_values(db, table, name)) for name, kind in declared]


def _kind_of_values(db: sqlite3.Connection, table: str, column: str) -> str:
    """Where a view does not say what a column holds, its first value does; '' without any."""
    sql = f'SELECT upper(typeof("{column}")) FROM "{table}" WHERE "{column}" IS NOT NULL LIMIT 1'
    found = db.execute(sql).fetchone()
    return str(found[0]) if found else ""


def query(columns: list[Column], table: str, where: str = "") -> str:
    """SQL for these columns of a table or view of the case; `where` is a condition over it as `t`."""
    chosen = ", ".join(f'{column.sql} AS "{column.name}"' for column in columns)
    condition = f" WHERE {where}" if where else ""
    return f'SELECT {chosen} FROM "{table}" t{condition}'
