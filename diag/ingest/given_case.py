"""A case that comes from elsewhere: whether its rows still fit each other as those of an import do.

Its tables are known to be as `diag` made them (`Case.open`), but anyone may edit a case, and a disk may. What the
timeline relies on is checked once, in one statement per table: references to other tables, and times whose sums fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from diag.errors import InputError
from diag.ingest.given_tracks import WRONG_ROWS, tracks_fit
from diag.ingest.input_file import LATEST_NS, LONGEST_NS
from diag.store.case import IMPORT_AGAIN, Case
from diag.timeline.ranges import COLUMNS, KINDS, OPEN_NS, load_columns

_REFERENCES = {
    "source_id": "source",
    "process_id": "process",
    "thread_id": "thread",
    "end_thread_id": "thread",
    "device_id": "device",
    "domain_id": "name",
    "name_id": "name",
    "short_name_id": "name",
    "symbol_id": "name",
    "module_id": "name",
    "file_id": "name",
    "category_id": "name",
    "launch_id": "launch",
    "metric_id": "metric",
    "series_id": "counter_series",
}
_NEVER_NEGATIVE = ("bytes", "count", "input_bytes", "output_bytes")
_SOURCE = f"""
    NOT json_valid(capabilities) OR json_type(capabilities) <> 'object' OR time_resolution_ns < 1
    OR abs(clock_offset_ns) > {LATEST_NS}
    OR EXISTS (SELECT 1 FROM json_each(iif(json_valid(capabilities), capabilities, '{{}}'))
                WHERE type NOT IN ('integer', 'null'))
"""


def check_rows(case: Case, path: Path) -> None:
    """Raises InputError, naming the `path` that the user gave, when a table holds rows that no import makes."""
    if (table := table_that_does_not_fit(case)) is not None:
        raise InputError(f"{path} is no case any more: its table {table} holds rows that do not fit. {IMPORT_AGAIN}")


def table_that_does_not_fit(case: Case) -> str | None:
    """The first one with rows that no import makes."""
    for table in sorted(case.tables):
        wrong = " OR ".join(_wrong(table, [row["name"] for row in case.rows(_COLUMNS, (table,))]))
        if wrong and case.value(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {wrong})"):
            return table
    if not all(_columns_fit(case, source.id) for source in case.sources):
        return "column_block"
    return None if _tracks_fit(case) else "track_block"


_COLUMNS = """
    SELECT c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name = ?
"""


def _wrong(table: str, columns: list[str]) -> Iterator[str]:
    """SQL conditions that hold for rows of which no import makes any. NULL is never wrong here: columns are typed."""
    if table == "source":
        yield _SOURCE
    if table == "live_snapshot":
        yield "NOT json_valid(body)"
    if table == "track":
        yield WRONG_ROWS
    for column in columns:
        if target := _REFERENCES.get(column):
            yield f"{column} IS NOT NULL AND {column} NOT IN (SELECT id FROM {target})"  # NULL is not in an empty table
        elif column in ("start_ns", "time_ns"):
            yield f"{column} NOT BETWEEN {-LATEST_NS} AND {LATEST_NS}"
        elif column in _NEVER_NEGATIVE:
            yield f"{column} < 0"
    if {"start_ns", "end_ns"} <= set(columns) and table != "track":
        yield f"end_ns NOT BETWEEN start_ns AND start_ns + {LONGEST_NS}"


def _columns_fit(case: Case, source_id: int) -> bool:
    try:
        columns = load_columns(case, source_id)
    except ValueError:  # the length of a block is no multiple of its type's
        return False
    if len({len(columns[name]) for name in COLUMNS}) > 1:
        return False
    start_ns, end_ns = columns["start_ns"], columns["end_ns"]
    threads = [row["id"] for row in case.rows("SELECT id FROM thread")]
    is_sound = (
        (start_ns >= -LATEST_NS)
        & (start_ns <= LATEST_NS)
        & ((end_ns == OPEN_NS) | (end_ns >= start_ns) & (end_ns <= start_ns + LONGEST_NS))
        & np.isin(columns["kind"], range(len(KINDS)))
        & np.isin(columns["thread_id"], threads)
        & np.isin(columns["name_id"], list(case.names))
    )
    return bool(is_sound.all())


def _tracks_fit(case: Case) -> bool:
    try:
        return tracks_fit(case)
    except InputError:  # columns of a track are not of one length
        return False
