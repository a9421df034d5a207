"""Reader of what `diag watch --record` wrote, beside other inputs of the same job. Alone such a file is a case."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from diag.ingest.given_case import check_rows
from diag.ingest.input_file import InputFile
from diag.launches.live_runs import KIND
from diag.store.case import Case
from diag.store.columns import sqlite_uri


def is_record(path: Path) -> bool:
    """Whether a case holds nothing but what was watched."""
    try:
        with closing(sqlite3.connect(sqlite_uri(path, "immutable"), uri=True)) as db:
            return {kind for (kind,) in db.execute("SELECT DISTINCT kind FROM source")} == {KIND}
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def read(file: InputFile, case: Case) -> None:
    """Adds the snapshots of a record to the case, inside the caller's transaction. Series over time, which are made of
    them, stay in the record. Raises InputError when its rows do not fit.
    """
    with Case.open(file.data, "immutable") as record:
        check_rows(record, file.path)
        for source in record.sources:
            new_id = case.add_source(
                kind=KIND, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool=source.tool,
                tool_version=source.tool_version, host=source.host, time_resolution_ns=source.time_resolution_ns,
                capture_start_ns=source.capture_start_ns, capture_end_ns=source.capture_end_ns,
            )  # fmt: skip
            rows = record.db.execute(_SNAPSHOTS, (source.id,))
            case.db.executemany(_INSERT, ((new_id, *row) for row in rows))
            case.finish_source(new_id, source.capabilities, record.notes(source.id))


_SNAPSHOTS = "SELECT pid, time_ns, body FROM live_snapshot WHERE source_id = ? ORDER BY rowid"
_INSERT = "INSERT INTO live_snapshot (source_id, pid, time_ns, body) VALUES (?, ?, ?, ?)"
