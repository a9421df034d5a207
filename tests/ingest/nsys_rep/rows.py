"""Rows that readers of events give, and those of an export, to compare."""

from __future__ import annotations

import sqlite3
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from diag.ingest.messages import ABSENT, NO_TEXT
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.events import EventDecoder, EventReader, Rows
from diag.ingest.nsys_tool import Nsys

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]


def tables_of(rows: Iterable[Rows]) -> Tables:
    """Rows by table, without their columns that are NULL."""
    found: dict[str, list[Row]] = defaultdict(list)
    for table, columns in rows:
        assert columns.keys() <= table.columns.keys()
        for values in zip(*columns.values(), strict=True):
            row = zip(columns, values, strict=True)
            found[table.name].append({name: value for name, value in row if value not in (None, ABSENT, NO_TEXT)})
    return found


def read(decoder: EventDecoder, blocks: Iterable[bytes]) -> Tables:
    rows = [found for block in blocks for found in decoder.rows(block)]
    return tables_of([*rows, *decoder.rest()])


def read_report(report: Path, readers: Sequence[EventReader]) -> Tables:
    with Container(report) as container:
        return read(EventDecoder(readers), container.blocks())


def exported_by(nsys: Nsys, report: Path) -> Path:
    """The export that an nsys makes of a report, beside it, with every table that it knows."""
    export = report.with_suffix(".exported.sqlite")
    options = ["--type=sqlite", "--lazy=false", "--force-overwrite=true", f"--output={export}"]
    ended = subprocess.run(
        [nsys.path, "export", *options, report], check=False, capture_output=True, text=True, timeout=240
    )
    assert export.exists(), ended.stdout + ended.stderr
    return export


def rows_of(export: Path, table: str) -> tuple[set[str], list[Row]]:
    """The columns of a table and its rows; none where the export has no such table."""
    with sqlite3.connect(f"file:{export}?immutable=1", uri=True) as db:
        db.text_factory = bytes
        columns = [name.decode() for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        found = db.execute(f'SELECT * FROM "{table}"').fetchall() if columns else []
    return set(columns), [
        {name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in found
    ]


def in_any_order(rows: Iterable[Row], columns: Collection[str] | None = None) -> list[list[tuple[str, Any]]]:
    """Rows, or some of their columns, sorted."""
    return sorted(sorted((name, v) for name, v in row.items() if columns is None or name in columns) for row in rows)


def assert_as_exported(ours: Tables, export: Path, table: str) -> int:
    """The same rows, in every column that the export has, NULL where it has NULL; returns how many."""
    columns, theirs = rows_of(export, table)
    assert in_any_order(ours.get(table, ()), columns) == in_any_order(theirs)
    return len(theirs)
