"""Our reader and NVIDIA's own put the same into the case, value for value: every table and column of real reports.

What the official one does not tell is named here, with the reason; everything else is compared, and so is whatever is
added to the case later.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.store.case import Case
from tests.ingest.ncu_official.needs import official_reader

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
needs_reports = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")

NO_PROCESS = "the package tells of no process"
NO_SETTINGS = "the package does not tell how the tool was set"
NO_HEADER = "the package does not tell what stands in the header of a report"

UNTOLD: Mapping[str, Mapping[str, str]] = {
    "launch": {
        "process_id": NO_PROCESS,
        "tid": NO_PROCESS,
        "is_clock_locked": NO_SETTINGS,
        "cache_control": NO_SETTINGS,
        "replay": NO_SETTINGS,
    },
    "source": {
        "tool_version": NO_HEADER,
        "schema_version": NO_HEADER,
        "host": NO_HEADER,
        "is_cut": "the package reads a report that is cut without a word",
        "capabilities": "counts of the rows that are compared one by one",
    },
    "launch_instruction": {"sass": "machine code as text needs NVIDIA's disassembler, which the package holds"},
}
"""Columns that are not compared, and why."""

ASIDE: Mapping[str, str] = {
    "process": NO_PROCESS,
    "process_device": NO_PROCESS,
    "source_note": "what each reader has to say for itself",
    "name": "texts are compared where they are used",
    "metric": "names and units are compared with their values",
}
"""Tables that are not compared, and why."""


def reports() -> list[Path]:
    return sorted(Path(REPORTS, "ncu").glob("*.ncu-rep")) if REPORTS else []


@needs_reports
@pytest.mark.parametrize("report", reports(), ids=lambda path: path.stem)
def test_both_readers_put_the_same_into_the_case(report: Path) -> None:
    official_reader()
    ours, theirs = contents(report, with_ncu_report=False), contents(report, with_ncu_report=True)
    assert ours["launch_metric"].total() > 0
    assert {table: differences(ours[table], theirs[table]) for table in ours if ours[table] != theirs[table]} == {}


@needs_reports
def test_there_are_reports_to_compare() -> None:
    assert len(reports()) >= 9


def differences(ours: Counter[str], theirs: Counter[str]) -> str:
    """The first rows that only one of them has."""
    only = {"ours": sorted(ours - theirs), "theirs": sorted(theirs - ours)}
    return "; ".join(f"{len(rows)} rows only {who}: {rows[:3]}" for who, rows in only.items() if rows)


def contents(report: Path, *, with_ncu_report: bool) -> dict[str, Counter[str]]:
    """Rows of each table, as texts that tell 1 from 1.0, with what ids mean in the place of ids."""
    options = ImportOptions(use_cache=False, with_ncu_report=with_ncu_report)
    with open_inputs([report], options) as case:
        meaning = meanings(case)
        return {table: Counter(rows(case, table, meaning)) for table in case.tables if table not in ASIDE}


Meanings = Mapping[str, Mapping[int, object]]


def meanings(case: Case) -> Meanings:
    """What each id stands for, by the column that holds it."""
    names = dict(case.db.execute("SELECT id, text FROM name"))
    launches = dict(case.db.execute("SELECT id, number FROM launch"))
    return {
        **dict.fromkeys(("name_id", "short_name_id", "domain_id", "file_id"), names),
        "launch_id": launches,
        "metric_id": {i: (name, unit) for i, name, unit in case.db.execute("SELECT id, name, unit FROM metric")},
        "device_id": dict(case.db.execute("SELECT id, gpu_index FROM device")),
    }


def rows(case: Case, table: str, meaning: Meanings) -> Iterator[str]:
    cursor = case.db.execute(f'SELECT * FROM "{table}"')
    columns = [column for column, *_ in cursor.description]
    skipped = {"id", "source_id", *UNTOLD.get(table, ())}
    chosen = [(at, meaning.get(column, {})) for at, column in enumerate(columns) if column not in skipped]
    for row in cursor:
        yield repr([means.get(row[at], row[at]) for at, means in chosen])
