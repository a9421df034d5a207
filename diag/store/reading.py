"""SQL of a user on a case: it may read and nothing else, and what is wrong with it is a sentence."""

from __future__ import annotations

import itertools
import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from diag.errors import UsageError
from diag.store.sqlite_errors import IS_STOPPED, SIGNAL_CHECK_STEPS, is_interrupt, let_signals_in

_PRAGMAS = ("table_info", "table_xinfo", "table_list", "index_list", "index_info")

LONGEST_TEXT = 10_000
"""Characters of a value that `first_rows` keeps; a case may hold texts of any length."""

BLOB_HEAD_BYTES = 32


class TimeIsOver(sqlite3.OperationalError):
    """A statement took longer than it may. `is_interrupt` holds of it, as of those that a signal ends."""

    sqlite_errorcode = sqlite3.SQLITE_INTERRUPT


@dataclass(frozen=True)
class Blob:
    n_bytes: int
    head: bytes


@dataclass(frozen=True)
class Rows:
    """The first rows of a query, their values None, numbers, texts or Blobs. `is_cut`: there are more."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    is_cut: bool


def first_rows(
    db: sqlite3.Connection, sql: str, most: int, seconds: float | None = None, *, most_steps: int | None = None
) -> Rows:
    """At most `most` rows of one SELECT, which may run for so many seconds, or take about so many steps of SQLite's
    virtual machine: these are the same on every machine.

    Raises UsageError when it is no SELECT, TimeIsOver when it takes more, and sqlite3.OperationalError when a signal
    interrupts it.
    """
    with only_reading(db), _limited(db, seconds, most_steps):
        try:
            cursor = checked_rows(db, sql)
            rows = [list(map(_bounded_value, row)) for row in itertools.islice(cursor, most)]
            is_cut = len(rows) == most and cursor.fetchone() is not None
        except (sqlite3.Error, sqlite3.Warning) as error:
            if (said := sentence(error)) is None:
                raise
            raise UsageError(said) from error
    return Rows(distinct([name for name, *_ in cursor.description]), rows, is_cut)


def _bounded_value(value: Any) -> Any:
    match value:
        case bytes():
            return Blob(len(value), value[:BLOB_HEAD_BYTES])
        case str() if len(value) > LONGEST_TEXT:
            return value[:LONGEST_TEXT] + "…"
    return value


def checked_rows(db: sqlite3.Connection, sql: str) -> sqlite3.Cursor:
    """The rows of the statement. Raises UsageError when it has none, and what SQLite raises."""
    check_text(sql)
    cursor = db.execute(sql)
    if not cursor.description:
        raise UsageError(f"{sql!r} asks for nothing. Write one SELECT.")
    return cursor


def check_text(sql: str) -> None:
    """Raises UsageError for bytes that are no characters: Python keeps those of a command line as lone surrogates."""
    if any("\ud800" <= character <= "\udfff" for character in sql):
        raise UsageError(f"{sql!r} is not UTF-8, and SQL is. Set your terminal to UTF-8.")


@contextmanager
def only_reading(db: sqlite3.Connection) -> Iterator[None]:
    """Meanwhile whatever would write is refused, and text that is not UTF-8 can be read: exports hold what programs
    called things."""
    # SQLite sets a table-valued function up when it is first used, which looks to the authorizer like a write.
    for function in ("json_each", "json_tree", *(f"pragma_{name}" for name in _PRAGMAS)):
        db.execute(f"SELECT 1 FROM {function} LIMIT 0")
    text_factory = db.text_factory
    db.text_factory = lambda text: text.decode("utf-8", "replace")
    db.execute("PRAGMA query_only = ON")
    db.set_authorizer(_allow_reading)
    try:
        yield
    finally:
        db.set_authorizer(None)
        db.execute("PRAGMA query_only = OFF")
        db.text_factory = text_factory


def _allow_reading(action: int, first: str | None, *_: object) -> int:
    allowed = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
    looks = action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS
    return sqlite3.SQLITE_OK if action in allowed or looks else sqlite3.SQLITE_DENY


@contextmanager
def _limited(db: sqlite3.Connection, seconds: float | None, most_steps: int | None) -> Iterator[None]:
    if seconds is None and most_steps is None:
        yield
        return
    end_s = math.inf if seconds is None else time.monotonic() + seconds
    last = math.inf if most_steps is None else most_steps // SIGNAL_CHECK_STEPS
    looks, is_stopped = itertools.count(1), IS_STOPPED.get()
    is_over = False

    def must_end() -> bool:
        nonlocal is_over
        is_over = next(looks) > last or time.monotonic() > end_s
        return is_over or is_stopped()

    db.set_progress_handler(must_end, SIGNAL_CHECK_STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if is_interrupt(error) and is_over:
            raise TimeIsOver("It took longer than it may.") from error
        raise
    finally:
        let_signals_in(db)


def sentence(error: sqlite3.Error | sqlite3.Warning) -> str | None:
    """What SQLite says against a statement, without what to do next; None when it was interrupted."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        return None
    if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY):
        return "A case is read-only here: write one SELECT."
    return f"SQLite: {str(error).rstrip('.')}."


def distinct(columns: Sequence[str]) -> list[str]:
    """Names under which no column of a join hides another: id, id_2."""
    taken: list[str] = []
    for name in columns:
        again = (f"{name}_{number}" for number in itertools.count(2))
        taken.append(next(choice for choice in itertools.chain([name], again) if choice not in taken))
    return taken
