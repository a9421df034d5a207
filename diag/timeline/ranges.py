"""CPU ranges of a source as arrays: NVTX ranges, PyTorch operators, Python functions, annotations."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.store.columns import Arrays
from diag.timeline import nesting

KINDS = ("nvtx", "process", "mark", "operator", "python", "annotation")
"""What a range is. 'process' ranges (NVTX start/end) nest with nothing; a 'mark' is an instant."""

NESTING_KINDS = tuple(KINDS.index(kind) for kind in ("nvtx", "operator", "python", "annotation"))

OPEN_NS = np.iinfo(np.int64).max
"""End of a range that was still open when the capture ended."""

COLUMNS = {"thread_id": "<i4", "start_ns": "<i8", "end_ns": "<i8", "name_id": "<i4", "kind": "|i1"}
"""Columns of a `column_block` of cpu_range and their types."""


@dataclass(frozen=True, eq=False)
class Ranges:
    """Ranges in parallel arrays, in nesting order (thread, start, longest first).

    `name_id` is that of the single text, or of its pattern where the case keeps columns only (docs/formats/case.md).
    """

    thread_id: NDArray[np.int32]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    name_id: NDArray[np.int32]
    kind: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.start_ns)

    def select(self, selection: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Ranges:
        return Ranges(*(getattr(self, field.name)[selection] for field in fields(self)))


_ROWS = """
    SELECT thread_id, start_ns, COALESCE(end_ns, 9223372036854775807) AS end_ns, name_id,
           CASE kind WHEN 'nvtx' THEN 0 WHEN 'process' THEN 1 WHEN 'mark' THEN 2 WHEN 'operator' THEN 3
                     WHEN 'python' THEN 4 ELSE 5 END AS kind
      FROM cpu_range
     WHERE source_id = {source_id:d}
"""

_BLOCKS = """
    SELECT data
      FROM column_block
     WHERE source_id = ? AND table_name = 'cpu_range' AND column_name = ?
     ORDER BY block
"""


def load_ranges(case: Case, source_id: int) -> Ranges:
    """All ranges of a source, whether the case holds them as rows or as columns."""
    columns = load_columns(case, source_id)
    if not len(columns["start_ns"]):
        columns = case.arrays(_ROWS.format(source_id=source_id), COLUMNS)
    order = nesting.nesting_order(columns["thread_id"], columns["start_ns"], columns["end_ns"])
    return Ranges(*(columns.pop(name)[order] for name in COLUMNS))


def load_columns(case: Case, source_id: int) -> Arrays:
    """The ranges that the case keeps as columns, as stored; none where it keeps rows."""
    return {
        name: np.frombuffer(b"".join(data for (data,) in case.db.execute(_BLOCKS, (source_id, name))), dtype)
        for name, dtype in COLUMNS.items()
    }
