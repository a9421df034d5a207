"""SQLite databases with a -wal or -journal beside them: read from a private copy, in which SQLite settles the two."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from diag.errors import InputError, StorageError
from diag.store.columns import sqlite_uri
from diag.store.sqlite_errors import reported


def companions(path: Path) -> list[Path]:
    """Files in which SQLite keeps what it has not yet merged into the database."""
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    # os.path and not Path: with the suffix a name may be too long, which is no error here.
    return [file for file in beside if os.path.isfile(file) and file.stat().st_size]


def settled_copy(path: Path, beside: Sequence[Path], folder: Path) -> Path:
    """A copy in `folder` with the companions merged; the originals stay as they are.

    Raises InputError when they do not fit together and StorageError when the copy cannot be written.
    """
    copy = Path(tempfile.mkdtemp(dir=folder), "settled.sqlite")
    try:
        for file in (path, *beside):
            shutil.copyfile(file, copy.with_name(copy.name + file.name.removeprefix(path.name)))
    except OSError as error:
        raise StorageError(f"Cannot copy {path} into {folder}: {error.strerror}. Free some space.") from error
    try:
        with reported(copy), closing(sqlite3.connect(copy)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise InputError(f"{path} and the {beside[0].name} beside it do not fit together: {error}.") from error
    return copy


def copy_while_written(path: Path, folder: Path) -> Path:
    """A copy in `folder` as of the last commit, of a case that another process writes, as a watch does that records.

    Raises InputError when it cannot be read.
    """
    copy = Path(tempfile.mkdtemp(dir=folder), path.name)
    try:
        with (
            reported(copy),
            closing(sqlite3.connect(sqlite_uri(path, "ro"), uri=True)) as db,
            closing(sqlite3.connect(copy)) as target,
        ):
            db.backup(target)
    except sqlite3.Error as error:
        raise InputError(f"{path} is being written and cannot be read meanwhile: {error}.") from error
    return copy
