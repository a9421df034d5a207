"""Workloads that were watched, from the case."""

from __future__ import annotations

import msgspec

from diag.errors import InputError
from diag.model.live import Snapshot
from diag.model.live_run import LiveRun
from diag.store.case import Case

KIND = "live"
"""Of the sources."""

MOST_LOADED_BYTES = 64 << 20
"""Of JSON, which takes some four times as much in memory. Of a longer record every second, third, … snapshot is taken:
counters lose nothing by that, and what is sampled has more samples than it needs.
"""


def live_runs(case: Case) -> list[LiveRun]:
    """One for each source of this kind, in the order of the sources.

    Raises InputError for a case that holds snapshots in their place that no watch writes.
    """
    return [_run(case, source.id) for source in case.sources if source.kind == KIND]


def _run(case: Case, source_id: int) -> LiveRun:
    n_bytes = case.value(_SIZE, (source_id,)) or 0
    bodies = case.rows(_BODIES, {"source": source_id, "step": 1 + n_bytes // MOST_LOADED_BYTES})
    try:
        snapshots = [msgspec.json.decode(row["body"], type=Snapshot) for row in bodies]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(f"{case.path} holds a snapshot that diag watch did not write ({said}). {_AGAIN}") from error
    pid = next((row["pid"] for row in bodies), None)
    return LiveRun(pid, sorted(snapshots, key=lambda snapshot: snapshot.clock_ns), source_id)


_AGAIN = "Record again: diag watch --record FILE"
_SIZE = "SELECT SUM(LENGTH(CAST(body AS BLOB))) FROM live_snapshot WHERE source_id = ?"
_BODIES = """
    SELECT pid, CAST(body AS BLOB) AS body
      FROM live_snapshot
     WHERE source_id = :source
       AND (:step = 1 OR rowid % :step = 0
            OR body LIKE '%"xids":[{%' OR json_array_length(body, '$.stacks') > 0
            OR rowid IN (SELECT MIN(rowid) FROM live_snapshot WHERE source_id = :source
                         UNION SELECT MAX(rowid) FROM live_snapshot WHERE source_id = :source))
"""
"""What a snapshot saw for the first time, XIDs and stacks, is in no other one."""
