"""The builder writes what Nsight Systems writes: every table and column that it uses exists in real exports."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders.nsys_export import SYNTHETIC, NsysExport
from tests.builders.nsys_schema import SCHEMAS, TABLES

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
REAL = {
    "2.9": ["a100-saxpy-schema2.9"],
    "3.1": ["v100-julia-one-kernel"],
    "3.16": ["h200-fuser-matmul"],
    "3.20": ["t4-power-iteration"],
    "3.25": ["h100x2-offload"],
}


def columns(db: sqlite3.Connection, table: str) -> dict[str, str]:
    rows = db.execute("SELECT name, type, [notnull] FROM pragma_table_info(?)", (table,))
    return {name: f"{kind}{' NOT NULL' if needed else ''}" for name, kind, needed in rows}


@pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")
@pytest.mark.parametrize("schema", REAL)
def test_columns_are_those_of_real_exports(schema: str) -> None:
    for name in REAL[schema]:
        with closing(sqlite3.connect(f"file:{REPORTS}/nsys/{name}.sqlite?immutable=1", uri=True)) as db:
            for table in TABLES:
                if real := columns(db, table):
                    ours = SCHEMAS[schema].columns(table)
                    assert ours.items() <= real.items(), f"{table} of {name}"


@pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")
@pytest.mark.parametrize("schema", REAL)
def test_enumerations_are_those_of_real_exports(schema: str) -> None:
    for name in REAL[schema]:
        with closing(sqlite3.connect(f"file:{REPORTS}/nsys/{name}.sqlite?immutable=1", uri=True)) as db:
            real_enums = {
                e for (e,) in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'ENUM!_%' ESCAPE '!'")
            }
            ours = SCHEMAS[schema].enums()
            assert bool(ours) == bool(real_enums)
            for enum in ours.keys() & real_enums:
                assert ours[enum].items() <= dict(db.execute(f"SELECT id, label FROM {enum}")).items(), enum


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_says_that_it_is_synthetic(schema: str, tmp_path: Path) -> None:
    path = NsysExport(schema).write(tmp_path / "report.sqlite")
    with closing(sqlite3.connect(path)) as db:
        if (table := SCHEMAS[schema].metadata_table) is None:
            assert db.execute("SELECT value FROM StringIds").fetchall() == [("SYNTHETIC: made by diag tests",)]
        else:
            assert SYNTHETIC in db.execute(f"SELECT name, value FROM {table}").fetchall()


def test_only_tables_with_rows_are_written(tmp_path: Path) -> None:
    export = NsysExport("2.9")
    gpu = export.process().gpu()
    gpu.kernel(0, 10)
    with closing(sqlite3.connect(export.write(tmp_path / "report.sqlite"))) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert tables == {"StringIds", "EXPORT_META_DATA", "PROCESSES", "CUPTI_ACTIVITY_KIND_KERNEL"}


def test_a_column_that_no_version_has_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="has no column gridW"):
        NsysExport().process().gpu().kernel(0, 10, gridW=3)
