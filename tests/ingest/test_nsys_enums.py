"""The enumerations that diag brings are those of real exports, of every version."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from diag.ingest.nsys_enums import enumerations, labels

RENAMED = {
    ("ENUM_NSYS_EVENT_TYPE", "SLIEvent"): "SLIEvent (DEPRECATED)",
    ("ENUM_NSYS_EVENT_TYPE", "NVENC"): "NvEncode",
    ("ENUM_NSYS_EVENT_TYPE", "NVDEC"): "NVDecode",
    ("ENUM_NSYS_EVENT_TYPE", "OSRuntimeStartStop"): "TraceStartFinish",
    **{("ENUM_NSYS_EVENT_CLASS", f"SLI{when}"): f"SLI{when} (Deprecated)" for when in ("", " start", " finish")},
    **{("ENUM_NSYS_EVENT_CLASS", f"NVENC{when}"): f"NVENCODE{when}" for when in ("", " start", " finish")},
    **{("ENUM_NSYS_EVENT_CLASS", f"NVDEC{when}"): f"NVDECODE{when}" for when in ("", " start", " finish")},
}
"""Labels that newer versions changed."""


def labels_of(export: Path) -> dict[str, dict[int, str]]:
    """Those of the enumerations that diag brings, too, by table."""
    with closing(sqlite3.connect(f"file:{export}?immutable=1", uri=True)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'ENUM_%'")}
        return {
            table: dict(db.execute(f'SELECT id, label FROM "{table}"').fetchall())
            for table in sorted(tables & enumerations().keys())
        }


def test_real_exports_have_no_other_labels() -> None:
    folder = Path(os.environ.get("DIAG_REAL_REPORTS", ""), "nsys")
    found = {export: labels_of(export) for export in sorted(folder.glob("*.sqlite"))}
    if not found:
        pytest.skip("DIAG_REAL_REPORTS names no folder of real reports")
    for tables in found.values():
        for table, theirs in tables.items():
            renamed = {number: RENAMED.get((table, label), label) for number, label in theirs.items()}
            assert renamed.items() <= labels(table).items(), table
    seen = {table: set[int]().union(*(tables.get(table, ()) for tables in found.values())) for table in enumerations()}
    assert seen == {table: set(values) for table, values in enumerations().items()}


def test_numbers_and_names_are_used_once() -> None:
    for table, values in enumerations().items():
        assert len({value.name for value in values.values()}) == len(values), table
        assert all(value.name and value.label for value in values.values()), table
