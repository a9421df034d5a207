"""Sound databases of kinds that nsys does not write, but that a tool in between may have made of an export."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Command, small_export, snapshot

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


def _page_size(path: Path, size: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA page_size = {size}")
        db.execute("VACUUM")


def _without_rowid(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        columns = ", ".join(f'"{row[1]}"' for row in db.execute(f"PRAGMA table_info({KERNEL})"))
        db.execute(f"CREATE TABLE k ({columns}, PRIMARY KEY (start, streamId)) WITHOUT ROWID")
        db.execute(f"INSERT INTO k SELECT * FROM {KERNEL}")
        db.execute(f"DROP TABLE {KERNEL}")
        db.execute(f"ALTER TABLE k RENAME TO {KERNEL}")


def _strict_and_indexed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE mine (id INTEGER PRIMARY KEY, a TEXT NOT NULL CHECK (a <> '')) STRICT")
        db.execute(f'CREATE INDEX by_time ON {KERNEL} (start, "end")')
        db.execute(f"CREATE INDEX of_few ON {KERNEL} (deviceId) WHERE start > 1000")
        db.execute(f"CREATE INDEX by_length ON {KERNEL} (abs(start))")


def _auto_vacuumed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("VACUUM")


def _with_free_pages(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE large AS SELECT zeroblob(500000) AS data")
        db.execute("DROP TABLE large")


def _marked(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 12345")
        db.execute("PRAGMA user_version = 7")


READ: dict[str, Callable[[Path], None]] = {
    "small pages": lambda path: _page_size(path, 512),
    "large pages": lambda path: _page_size(path, 65536),
    "WITHOUT ROWID": _without_rowid,
    "strict tables and indexes": _strict_and_indexed,
    "auto-vacuum": _auto_vacuumed,
    "free pages": _with_free_pages,
    "marked as another application's": _marked,
}


@pytest.mark.parametrize("kind", READ)
def test_it_is_read_like_any_other(kind: str, diag: Command, export: Path) -> None:
    shown = json.loads(diag("report", export, "--format", "json").is_quiet_success())
    READ[kind](export)
    before = snapshot(export.parent)
    again = json.loads(diag("report", export, "--format", "json").is_quiet_success())
    assert snapshot(export.parent) == before
    for report in (shown, again):
        report["sources"][0]["sha256"] = ""
    assert again == shown


def _utf16(path: Path) -> None:
    with closing(sqlite3.connect(path)) as old:
        lines = list(old.iterdump())
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA encoding = 'UTF-16'")
        db.executescript("\n".join(lines))


def _encrypted(path: Path) -> None:
    """As SQLCipher leaves it: no header, all noise."""
    content = path.read_bytes()
    path.write_bytes(bytes(byte ^ 0xA5 for byte in content))


def _blank_header(path: Path) -> None:
    path.write_bytes(bytes(100) + path.read_bytes()[100:])


def _of_the_future(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[18:20] = b"\x09\x09"  # file format write and read version
    path.write_bytes(bytes(content))


def _foreign_journal(path: Path) -> None:
    path.with_name(path.name + "-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(range(256)) * 20)


def _foreign_wal(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    path.with_name(path.name + "-wal").write_bytes(bytes(range(256)) * 20)


ODD: dict[str, Callable[[Path], None]] = {
    "UTF-16": _utf16,
    "encrypted": _encrypted,
    "blank header": _blank_header,
    "a later file format": _of_the_future,
    "a journal of something else": _foreign_journal,
    "a -wal of something else": _foreign_wal,
}


@pytest.mark.parametrize("kind", ODD)
def test_it_is_read_or_refused_in_one_sentence(kind: str, diag: Command, export: Path) -> None:
    ODD[kind](export)
    before = snapshot(export.parent)
    ran = diag("report", export)
    assert snapshot(export.parent) == before
    if ran.status:
        assert str(export) in ran.is_one_sentence(3)
        assert not diag.cases()
    else:
        ran.is_quiet_success()
    assert not diag.leftovers()


def test_a_hot_journal_is_rolled_back_in_a_copy(diag: Command, tmp_path: Path) -> None:
    """What a killed writer leaves: pages of its transaction in the file, those before it in the journal."""
    folder, live = tmp_path / "in", tmp_path / "live"
    folder.mkdir()
    live.mkdir()
    path = small_export(2000).write(live / "report.sqlite")
    shown = json.loads(diag("report", path, "--format", "json").is_quiet_success())
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        db.execute(f"DELETE FROM {KERNEL} WHERE start > 100000")
        for file in live.iterdir():
            shutil.copyfile(file, folder / file.name)
        db.execute("ROLLBACK")
    assert (folder / "report.sqlite-journal").stat().st_size
    before = snapshot(folder)
    again = json.loads(diag("report", folder / "report.sqlite", "--format", "json").is_quiet_success())
    assert snapshot(folder) == before
    assert again["devices"] == shown["devices"]
