"""A file that a second thread fills: whole, or an error that says where it was to be."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow
import pytest

from diag.errors import StorageError
from diag.store.new_database import NewDatabase


def batch(*numbers: int) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pydict({"n": pyarrow.array(numbers, pyarrow.int64())})


def test_rows_come_in_order_and_can_be_asked_for_on_the_way(tmp_path: Path) -> None:
    with NewDatabase(tmp_path / "new.sqlite") as database:
        database.execute("CREATE TABLE t (n INTEGER)")
        for n in range(50):
            database.insert("t", batch(2 * n, 2 * n + 1))
        assert database.rows("SELECT COUNT(*) AS rows FROM t") == [{"rows": 100}]
        database.insert("t", batch(100))
    with closing(sqlite3.connect(tmp_path / "new.sqlite")) as db:
        assert [n for (n,) in db.execute("SELECT n FROM t ORDER BY rowid")] == list(range(101))


def fill(path: Path, n: int, error: Exception | None = None) -> None:
    with NewDatabase(path) as database:
        database.execute("CREATE TABLE t (n INTEGER NOT NULL CHECK (n < 5))")
        database.insert("t", batch(n))
        if error:
            raise error


def test_what_the_second_thread_cannot_write_is_an_error_of_the_first(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"The disk of {tmp_path}.*Free some space"):
        fill(tmp_path / "new.sqlite", 7)


def test_an_error_in_the_block_is_not_lost(tmp_path: Path) -> None:
    for n in (1, 7):
        with pytest.raises(KeyError):
            fill(tmp_path / f"{n}.sqlite", n, KeyError())
