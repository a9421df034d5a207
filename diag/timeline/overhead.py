"""Time that is not the program's own choice: what the profiler cost, and what the driver said of its own work."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.timeline.intervals import Intervals, Times


@dataclass(frozen=True, eq=False)
class Overhead:
    """Overhead rows of one process in parallel arrays, sorted by start."""

    start_ns: Times
    end_ns: Times
    thread_id: NDArray[np.int64]
    name_id: NDArray[np.int64]  # or NONE

    def union(self, which: NDArray[np.bool_] | slice = slice(None)) -> Intervals:
        return Intervals.union_of(self.start_ns[which], self.end_ns[which])


def load_overhead(case: Case, source_id: int, process_id: int, *kinds: str) -> Overhead:
    """Rows of some kinds (schema.sql, `overhead.kind`)."""
    rows = case.db.execute(_OF_PROCESS, (source_id, process_id, json.dumps(kinds))).fetchall()
    columns = np.array(rows, np.int64).reshape(-1, 4)
    return Overhead(*(columns[:, i] for i in range(4)))


_OF_PROCESS = """
    SELECT o.start_ns, o.end_ns, o.thread_id, COALESCE(o.name_id, -1)
      FROM overhead o JOIN thread t ON t.id = o.thread_id
     WHERE o.source_id = ? AND t.process_id = ? AND o.kind IN (SELECT value FROM json_each(?))
     ORDER BY o.start_ns
"""
