"""What SQLite reports, in words for the person at the terminal."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from diag.errors import StorageError

SIGNAL_CHECK_STEPS = 100_000
"""Steps of SQLite's virtual machine between two looks at pending signals: a few milliseconds."""

WHERE_ELSE = "Free some space, or set DIAG_CACHE or TMPDIR to another disk."

_READ_FAILED = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ)
_NOT_THE_INPUT = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)


IS_STOPPED: ContextVar[Callable[[], bool]] = ContextVar("is_stopped", default=lambda: False)
"""Whether nobody wants any more what this thread works out. A signal tells the main thread, this tells others."""


def let_signals_in(db: sqlite3.Connection) -> None:
    """Long statements end on a signal, or when `IS_STOPPED`, and are interrupted then.

    Python runs a signal's handler only when SQLite calls Python now and then.
    """
    db.set_progress_handler(IS_STOPPED.get(), SIGNAL_CHECK_STEPS)


@contextmanager
def ended_when(db: sqlite3.Connection, is_unwanted: Callable[[], bool]) -> Iterator[None]:
    """Meanwhile long statements of this thread are interrupted also when `is_unwanted`.

    `Connection.interrupt` from another thread is lost where it comes between two statements.
    """
    is_stopped = IS_STOPPED.get()
    before = IS_STOPPED.set(lambda: is_unwanted() or is_stopped())
    let_signals_in(db)
    try:
        yield
    finally:
        IS_STOPPED.reset(before)
        let_signals_in(db)


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """An interrupted statement is a KeyboardInterrupt, as SQLite swallows the one that interrupted it, a full disk is
    a StorageError about `path`, and want of memory, which SQLite may call an I/O error, a MemoryError.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        if _code(error) == sqlite3.SQLITE_IOERR_NOMEM:
            raise MemoryError(str(error)) from error
        if _is_full(error):
            raise StorageError(f"The disk of {shown_folder(path)} is full. {WHERE_ELSE}") from error
        raise


def shown_folder(path: Path) -> Path:
    """The folder of a file, as a person knows it: private ones in it are gone by now."""
    folder = path.absolute().parent
    return folder.parent if folder.name.startswith((".", "diag-")) else folder


def is_interrupt(error: sqlite3.Error) -> bool:
    return _code(error) == sqlite3.SQLITE_INTERRUPT


def is_about_input(error: sqlite3.Error) -> bool:
    """Whether an error while copying an input into a case speaks of the input and not of the case."""
    return _code(error) in _READ_FAILED or _code(error) & 0xFF not in _NOT_THE_INPUT


def _is_full(error: sqlite3.Error) -> bool:
    return _code(error) == sqlite3.SQLITE_FULL or (
        _code(error) & 0xFF == sqlite3.SQLITE_IOERR and _code(error) not in _READ_FAILED
    )


def _code(error: sqlite3.Error) -> int:
    # What Python itself raises about a value, for example text that is not UTF-8, has no code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
