"""Ways to have dumps read, for the tests beside."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diag.ingest.importer import ImportOptions, open_inputs
from diag.store.case import Case

ENTRY: dict[str, Any] = {
    "record_id": 7,
    "pg_id": 1,
    "process_group": ("1", "DATA"),
    "collective_seq_id": 3,
    "p2p_seq_id": 0,
    "op_id": 4,
    "profiling_name": "nccl:all_reduce",
    "time_created_ns": 1_758_610_505_885_199_777,
    "input_sizes": [[2, 3]],
    "input_dtypes": ["Float"],
    "output_sizes": [[2, 3]],
    "output_dtypes": ["Float"],
    "state": "scheduled",
    "time_discovered_started_ns": None,
    "time_discovered_completed_ns": None,
    "retired": False,
    "timeout_ms": 600_000,
    "is_p2p": False,
}
"""As version 2.9 writes it."""


def dump_of(*entries: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"version": "2.9", "entries": list(entries), **parts}


def pickled(path: Path, dump: object, protocol: int = 2) -> Path:
    path.write_bytes(pickle.dumps(dump, protocol=protocol))
    return path


@contextmanager
def opened(*paths: Path) -> Iterator[Case]:
    with open_inputs(paths, ImportOptions(use_cache=False)) as case:
        yield case


def entries(case: Case) -> Sequence[dict[str, Any]]:
    """The entries of a case with their groups and calls, in their order."""
    return [dict(row) for row in case.rows(_ENTRIES)]


_ENTRIES = """
    SELECT e.*, g.name AS group_name, g.description, g.ranks, g.local_id, c.op, c.input_sizes, c.input_dtypes
      FROM recorder_entry e JOIN process_group g ON g.id = e.group_id JOIN call_signature c ON c.id = e.signature_id
     ORDER BY e.id
"""
