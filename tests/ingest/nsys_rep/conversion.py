"""Reports turned into exports, and what stands in the tables of one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from diag.ingest.nsys_rep.convert import write_export
from tests.builders.nsys_report import Report


def converted(report: Path, folder: Path) -> Path:
    """The export that diag makes of a report, in a folder."""
    export = folder / f"{report.stem}.diag.sqlite"
    write_export(report, export)
    return export


def converted_build(report: Report, folder: Path) -> Path:
    path = folder / "built.nsys-rep"
    path.write_bytes(report.content())
    return converted(path, folder)


def rows(export: Path, table: str) -> list[tuple[Any, ...]] | None:
    """A table as it stands in the file, texts as bytes; None where there is no such table."""
    with closing(sqlite3.connect(f"file:{export}?immutable=1", uri=True)) as db:
        db.text_factory = bytes
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            return None
        return db.execute(f'SELECT * FROM "{table}"').fetchall()


def columns(export: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(f"file:{export}?immutable=1", uri=True)) as db:
        return [name for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def named_rows(export: Path, table: str) -> list[dict[str, Any]]:
    """A table's rows by the names of their columns; texts as bytes."""
    names = columns(export, table)
    return [dict(zip(names, row, strict=True)) for row in rows(export, table) or []]
