"""Device operations and the calls that launched them, as parallel arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.timeline.intervals import Intervals

KINDS = ("kernel", "copy", "memset", "graph")
KERNEL, COPY, MEMSET, GRAPH = range(4)

COPY_KINDS = (
    "unknown", "h2d", "d2h", "d2d", "p2p", "h2h", "h2a", "a2h", "a2a", "a2d", "d2a",
    "unified h2d", "unified d2h", "unified d2d",
)  # fmt: skip
LINK_COPY_KINDS = tuple(COPY_KINDS.index(kind) for kind in ("h2d", "d2h", "h2a", "a2h", "unified h2d", "unified d2h"))
"""Copies that cross the link between host and device. Device-to-device copies are memory traffic."""

MEMORY_KINDS = (
    "unknown", "pageable", "pinned", "device", "array", "managed", "device static", "managed static",
)  # fmt: skip
PAGEABLE = MEMORY_KINDS.index("pageable")

LARGEST_UNSTAGED_BYTES = 64 << 10
"""Copies to the device up to this size leave pageable memory without blocking the host (CUDA C++ Programming Guide,
"Concurrent Execution between Host and Device")."""

NONE = -1

Column = NDArray[np.int64]

OP_COLUMNS = {
    "id": "i8",
    "process_id": "i4",
    "device": "i4",
    "stream": "i8",
    "kind": "i1",
    "start_ns": "i8",
    "end_ns": "i8",
    "name_id": "i4",
    "short_name_id": "i4",
    "correlation": "i8",
    "bytes": "i8",
    "copy_kind": "i1",
    "src_memory": "i1",
    "dst_memory": "i1",
}
CALL_COLUMNS = {
    "process_id": "i4",
    "thread_id": "i4",
    "start_ns": "i8",
    "end_ns": "i8",
    "name_id": "i4",
    "correlation": "i8",
}


@dataclass(frozen=True, eq=False)
class GpuOps:
    """Operations in parallel arrays of the types of OP_COLUMNS, sorted by start. NONE stands for NULL."""

    id: Column  # of the row in gpu_op
    process_id: NDArray[np.int32]
    device: NDArray[np.int32]
    stream: Column
    kind: NDArray[np.int8]  # index into KINDS
    start_ns: Column
    end_ns: Column
    name_id: NDArray[np.int32]
    short_name_id: NDArray[np.int32]
    correlation: Column
    bytes: Column
    copy_kind: NDArray[np.int8]  # index into COPY_KINDS
    src_memory: NDArray[np.int8]  # index into MEMORY_KINDS
    dst_memory: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.start_ns)

    def select(self, selection: NDArray[np.bool_] | NDArray[np.intp] | slice) -> GpuOps:
        return GpuOps(*(getattr(self, field.name)[selection] for field in fields(self)))

    @property
    def duration_ns(self) -> Column:
        return self.end_ns - self.start_ns

    @property
    def blocks_host(self) -> NDArray[np.bool_]:
        """Copies whose call returns only when pageable memory was staged or written, be it an asynchronous one.

        CUDA Runtime API, "API synchronization behavior": an asynchronous copy to pageable memory returns when it has
        completed; one from it may synchronise with the stream and stages the data first.
        """
        staged = (self.src_memory == PAGEABLE) & (self.bytes > LARGEST_UNSTAGED_BYTES)
        return np.asarray((self.kind == COPY) & (staged | (self.dst_memory == PAGEABLE)))

    def union(self) -> Intervals:
        return Intervals.union_of(self.start_ns, self.end_ns)


@dataclass(frozen=True, eq=False)
class Calls:
    """CUDA calls in parallel arrays of the types of CALL_COLUMNS, sorted by process, thread and start."""

    process_id: NDArray[np.int32]
    thread_id: NDArray[np.int32]
    start_ns: Column
    end_ns: Column
    name_id: NDArray[np.int32]
    correlation: Column

    def __len__(self) -> int:
        return len(self.start_ns)

    def select(self, selection: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Calls:
        return Calls(*(getattr(self, field.name)[selection] for field in fields(self)))


def _code(column: str, values: tuple[str, ...]) -> str:
    """SQL for the index of a text column's value in our own list; 0 for any other text."""
    cases = " ".join(f"WHEN '{value}' THEN {index}" for index, value in enumerate(values))
    return f"CASE {column} {cases} ELSE 0 END"


_OPS = f"""
    SELECT id, process_id, device, COALESCE(stream, -1) AS stream, {_code("kind", KINDS)} AS kind, start_ns, end_ns,
           COALESCE(name_id, -1) AS name_id, COALESCE(short_name_id, -1) AS short_name_id,
           COALESCE(correlation, -1) AS correlation, COALESCE(bytes, 0) AS bytes,
           {_code("copy_kind", COPY_KINDS)} AS copy_kind,
           {_code("src_memory", MEMORY_KINDS)} AS src_memory,
           {_code("dst_memory", MEMORY_KINDS)} AS dst_memory
      FROM gpu_op
     WHERE source_id = {{source_id:d}}
"""

DETAIL_COLUMNS = (
    "context", "external_id", "graph_node", "graph", "graph_exec", "grid_x", "grid_y", "grid_z", "block_x", "block_y",
    "block_z", "cluster_x", "cluster_y", "cluster_z", "registers_per_thread", "shared_static_bytes",
    "shared_dynamic_bytes", "shared_executed_bytes", "local_per_thread_bytes", "peer_device", "address",
)  # fmt: skip
"""Columns of gpu_op that few rules ask for; `Trace.details` loads them."""

_DETAILS = "SELECT id, {columns} FROM gpu_op WHERE source_id = {source_id:d} ORDER BY id"

_CALLS = """
    SELECT t.process_id, a.thread_id, a.start_ns, a.end_ns, a.name_id, COALESCE(a.correlation, -1) AS correlation
      FROM api_call a JOIN thread t ON t.id = a.thread_id
     WHERE a.source_id = {source_id:d}
"""


def load_ops(case: Case, source_id: int) -> list[GpuOps]:
    """The operations of each (process, device), in that order."""
    columns = case.arrays(_OPS.format(source_id=source_id), OP_COLUMNS)
    owner = columns["process_id"].astype(np.int64) << 32 | columns["device"]
    parts = []
    for key in np.unique(owner).tolist():
        mine = np.flatnonzero(owner == key)
        mine = mine[_order_of_work(columns["start_ns"][mine], columns["correlation"][mine])]
        parts.append(GpuOps(*(columns[name][mine] for name in OP_COLUMNS)))
    return parts


def _order_of_work(starts_ns: Column, correlation: Column) -> NDArray[np.intp]:
    """By start, and of those that start in the same tick first the one that was launched first."""
    last = np.iinfo(np.int64).max
    return np.lexsort((np.where(correlation == NONE, last, correlation), starts_ns))


def load_details(case: Case, source_id: int, names: Sequence[str]) -> dict[str, Column]:
    """Columns of DETAIL_COLUMNS of all the operations of a source by id, with the ids themselves. NONE is NULL."""
    columns = ", ".join(f"COALESCE({name}, -1) AS {name}" for name in DETAIL_COLUMNS if name in names)
    sql = _DETAILS.format(columns=columns, source_id=source_id)
    return case.arrays(sql, {"id": "i8"} | dict.fromkeys(names, "i8"))


def load_calls(case: Case, source_id: int) -> Calls:
    columns = case.arrays(_CALLS.format(source_id=source_id), CALL_COLUMNS)
    order = np.argsort(columns["start_ns"], kind="stable")
    owner = columns["process_id"].astype(np.int64) << 32 | columns["thread_id"]
    order = order[np.argsort(owner[order], kind="stable")]
    return Calls(*(columns.pop(name)[order] for name in CALL_COLUMNS))


def blocking_calls(parts: Sequence[GpuOps], calls: Calls) -> NDArray[np.bool_]:
    """For each of all processes' calls, whether it launched a copy that `GpuOps.blocks_host`."""
    blocking = np.zeros(len(calls), bool)
    for part in parts:
        ids = part.correlation[part.blocks_host & (part.correlation != NONE)]
        if len(ids):
            first, stop = np.searchsorted(calls.process_id, [part.process_id[0], part.process_id[0] + 1])
            blocking[first:stop] |= np.isin(calls.correlation[first:stop], ids)
    return blocking


def launches_of(ops: GpuOps, calls: Calls) -> Column:
    """For each operation of one process, the index in `calls` (of that process) of the call that caused it, or NONE."""
    return calls_of(ops.correlation, calls.correlation)


def calls_of(correlation: Column, of_calls: Column) -> Column:
    """For each correlation id of one process, the index of its call, or NONE; `of_calls` are those of its calls.

    Where nested calls share an id, the outermost (first) counts.
    """
    known = np.flatnonzero(of_calls != NONE)
    by_correlation = known[np.argsort(of_calls[known], kind="stable")]
    ids = of_calls[by_correlation]
    at = np.searchsorted(ids, correlation, side="left")
    found = (at < len(ids)) & (correlation != NONE)
    found[found] = ids[at[found]] == correlation[found]
    call = np.full(len(correlation), NONE, np.int64)
    call[found] = by_correlation[at[found]]
    return call
