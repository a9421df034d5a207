"""What becomes of values that are there, and of those that are not, on their way from messages to tables."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

from diag.ingest.messages import (
    ABSENT,
    NO_TEXT,
    Message,
    message_class,
    optional_doubles,
    optional_floats,
    optional_ints,
    optional_texts,
)
from diag.ingest.nsys_rep.tables import ExportWriter, table
from tests.builders.nsys_report import message

ALL = {**optional_ints(whole=1), **optional_texts(text=2), **optional_doubles(double=3), **optional_floats(float=4)}
THINGS = table("THINGS", whole="INTEGER", text="TEXT", double="REAL")


def stored(folder: Path, *rows: tuple[object, ...]) -> list[tuple[object, ...]]:
    path = folder / "export.sqlite"
    with ExportWriter(path) as writer:
        writer.add(THINGS, THINGS.by_column(rows))
    db = sqlite3.connect(path)
    db.text_factory = bytes
    return db.execute("SELECT * FROM THINGS").fetchall()


def test_what_a_message_lacks_reads_as_absent() -> None:
    things = message_class(Message("Things", ALL)).FromString(b"")
    assert (things.whole, things.text) == (ABSENT, NO_TEXT)
    assert math.isnan(things.double)
    assert math.isnan(things.float)


def test_what_a_message_has_is_never_absent() -> None:
    things = message_class(Message("Things", ALL)).FromString(message({1: 0, 2: b""}))
    assert (things.whole, things.text) == (0, b"")


def test_what_is_absent_becomes_null(tmp_path: Path) -> None:
    assert stored(tmp_path, (ABSENT, NO_TEXT, math.nan)) == [(None, None, None)]


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    rows = [
        (0, b"", 0.0),
        (-(1 << 63), b"not \xff UTF-8", -1.5),
        ((1 << 63) - 1, b"behind\0a zero", math.inf),
        (-1, bytearray("Stra\u00dfe".encode()), 1e300),
    ]
    assert stored(tmp_path, *rows) == rows
