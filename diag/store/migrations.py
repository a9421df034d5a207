"""Cases of older schemas: brought up to date on a copy, for a case that belongs to the user is never written.

Newer schemas only add tables and columns, so that the copy is a new case that takes over what both have. What is new in
it stays empty, and `source.capabilities` says of it that it was not captured.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from diag.errors import InputError
from diag.store.case import APPLICATION_ID, SCHEMA_VERSION, Case
from diag.store.columns import sqlite_uri

OLDEST = 1

NOT_TAKEN = {"report", "sqlite_schema", "sqlite_sequence"}
"""What the rules of that time said, today's say again."""


def up_to_date(case: Path, folder: Path) -> Path:
    """`case` itself when there is nothing to do, else a copy of today's schema in `folder`.

    A file that is no case, newer than this diag or older than OLDEST is left to Case.open to refuse.
    """
    version = _version(case)
    if version is None or not OLDEST <= version < SCHEMA_VERSION:
        return case
    copy = folder / f"schema-{SCHEMA_VERSION}-{case.name}"
    with Case.create(copy) as newer:
        try:
            newer.db.execute("ATTACH ? AS old", (sqlite_uri(case, "immutable"),))
            with newer.transaction():
                for table in sorted(_tables(newer.db, "main") & _tables(newer.db, "old") - NOT_TAKEN):
                    _take_over(newer.db, table)
        except sqlite3.Error as error:
            sentence = f"{case} is a case of schema {version} that cannot be brought up to date: {error}."
            raise InputError(sentence) from error
    return copy


def _tables(db: sqlite3.Connection, schema: str) -> set[str]:
    """Only real tables: a view in the place of one could stand for anything."""
    return {
        name
        for (name,) in db.execute("SELECT name FROM pragma_table_list WHERE schema = ? AND type = 'table'", (schema,))
    }


def _take_over(db: sqlite3.Connection, table: str) -> None:
    shared = ", ".join(name for (name,) in db.execute(_SHARED_COLUMNS, {"table": table}))
    db.execute(f"INSERT INTO main.{table} ({shared}) SELECT {shared} FROM old.{table}")


_SHARED_COLUMNS = """
    SELECT name FROM pragma_table_info(:table, 'main')
    INTERSECT
    SELECT name FROM pragma_table_info(:table, 'old')
"""


def _version(case: Path) -> int | None:
    try:
        with closing(sqlite3.connect(sqlite_uri(case, "immutable"), uri=True)) as db:
            is_case = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
            return int(db.execute("PRAGMA user_version").fetchone()[0]) if is_case else None
    except sqlite3.Error:
        return None
