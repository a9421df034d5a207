"""What the tables of an Nsight Systems export mean, over all its schema versions.

Tables and columns come and go between versions (2.9 of 2022 to 3.28 of 2026, and the exports of 2021 that carry no
version at all), so every statement asks the file which columns it has. Labels come from the file's own ENUM tables;
`nsys_enums` has those of files that bring none.

Source: Nsight Systems User Guide, "SQLite Export Schema Reference"; CUPTI documentation for the enumerations.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diag.ingest import nsys_enums
from diag.ingest.input_file import LONGEST_NS
from diag.ingest.nsys_statements import CONDITIONS

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
COPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
GRAPH_EVENT = "CUDA_GRAPH_EVENTS"  # of nodes in the versions that have no table of their own for them
GRAPH_NODE_EVENT = "CUDA_GRAPH_NODE_EVENTS"
ALLOCATION = "CUDA_GPU_MEMORY_USAGE_EVENTS"
MEMORY_POOL = "CUDA_GPU_MEMORY_POOL_EVENTS"
GPU_PAGE_FAULT = "CUDA_UM_GPU_PAGE_FAULT_EVENTS"
CPU_PAGE_FAULT = "CUDA_UM_CPU_PAGE_FAULT_EVENTS"
API = "CUPTI_ACTIVITY_KIND_RUNTIME"
SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
CUDA_EVENT = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
CUPTI_OVERHEAD = "CUPTI_ACTIVITY_KIND_OVERHEAD"
NSYS_OVERHEAD = "PROFILER_OVERHEAD"
NVTX = "NVTX_EVENTS"
OS_CALL = "OSRT_API"
OS_STACK = "OSRT_CALLCHAINS"
SAMPLE = "COMPOSITE_EVENTS"
SAMPLE_STACK = "SAMPLING_CALLCHAINS"
SCHED = "SCHED_EVENTS"
DIAGNOSTIC = "DIAGNOSTIC_EVENT"
GPU_METRICS = "GPU_METRICS"
NETWORK_METRICS = ("NET_NIC_METRIC", "NET_IB_SWITCH_METRIC")
STRINGS = "StringIds"
READING = "DIAG_READING"  # these two: of diag's own reader of reports
UNREAD = "DIAG_UNREAD"

GRAPH_MODE = "CUDA_GRAPH_TRACE_OPTIONS:MODE"  # an option of the capture, after the process that it is about

GPU_TABLES = (KERNEL, COPY, MEMSET, GRAPH)
MEMORY_TABLES = (ALLOCATION, MEMORY_POOL, GPU_PAGE_FAULT, CPU_PAGE_FAULT)
CUDA_TABLES = (*GPU_TABLES, API, SYNC)
EVENT_TABLES = (*CUDA_TABLES, NVTX, OS_CALL, SAMPLE, SCHED, GPU_METRICS, *NETWORK_METRICS)

COPY_KINDS = {
    "Unknown": "unknown",
    "Host-to-Device": "h2d",
    "Device-to-Host": "d2h",
    "Host-to-Array": "h2a",
    "Array-to-Host": "a2h",
    "Array-to-Array": "a2a",
    "Array-to-Device": "a2d",
    "Device-to-Array": "d2a",
    "Device-to-Device": "d2d",
    "Host-to-Host": "h2h",
    "Peer-to-Peer": "p2p",
    "Unified Host-to-Device": "unified h2d",
    "Unified Device-to-Host": "unified d2h",
    "Unified Device-to-Device": "unified d2d",
}
MEMORY_OPERATIONS = {"Allocation": "alloc", "Deallocation": "free"}
SYNC_KINDS = {
    "Unknown": "unknown",
    "Event sync": "event",
    "Stream wait sync": "stream wait",
    "Stream sync": "stream",
    "Context sync": "context",
}
OVERHEAD_KINDS = {
    "Driver JIT compiler (CUDA)": "jit",
    "Buffer flush (Profiler)": "profiler",
    "Instrumentation (Profiler)": "profiler",
    "Resource creation/destruction (Profiler)": "profiler",
    "Runtime module loading (CUDA)": "module loading",
    "Lazy function loading (CUDA)": "lazy loading",
    "Command buffer full (CUDA)": "command buffer full",
}
SCHED_STATES = {
    "Running": "runnable",
    "Interruptible": "blocked",
    "Uninterruptible": "blocked",
    "Stopped": "blocked",
    "Terminated": "blocked",
    "Waiting": "blocked",
}
"""What the state of a thread that leaves its core means; the other states leave it open."""
PREEMPTED = ("DispatchInt", "Preempted", "QuantumEnd", "YieldExecution", "ReadyToRun", "DeferredPreempt")
"""What a thread is "blocked" on that could go on running."""

LONGEST_TEXT_BYTES = 4096
"""Of a range's text: a chunk of ranges is held in memory, and each may name the same long text."""
LONGEST_NAME_BYTES = 1 << 16
"""Of a kernel's name, which is held once. Template arguments do fill some KB."""

_LATEST_NS = 1 << 60  # 36 years of recording: sums and differences of such times fit in 64 bits
_BOUNDS = {
    "longest_ns": str(LONGEST_NS),
    "earliest": str(-_LATEST_NS),
    "latest": str(_LATEST_NS),
    "last_device": str((1 << 16) - 1),
    "longest": str(LONGEST_TEXT_BYTES),
}


@dataclass(frozen=True)
class Export:
    """Tables and columns that the attached export (schema `src`) really has."""

    db: sqlite3.Connection
    columns: Mapping[str, frozenset[str]]

    @classmethod
    def probe(cls, db: sqlite3.Connection) -> Export:
        # Tables of their own only: a view or virtual table of the same name could compute for ever.
        tables = [
            as_text(name)
            for (name,) in db.execute(
                "SELECT CAST(name AS BLOB) FROM pragma_table_list WHERE schema = 'src' AND type = 'table'"
            )
        ]
        # Names as BLOBs, too: one that is no text is the name of no column that is looked for.
        find = "SELECT CAST(name AS BLOB) FROM pragma_table_info(?, 'src')"
        return cls(db, {table: frozenset(as_text(name) for (name,) in db.execute(find, (table,))) for table in tables})

    def __contains__(self, table: str) -> bool:
        return table in self.columns

    def sql(self, statement: str, table: str, **parts: str) -> str:
        """`statement` with `{table}`, `{parts}` and columns filled in; a column that the file lacks becomes NULL.

        Only names written in this package are ever filled in, never text from the file.
        """
        names = _Columns(self.columns.get(table, frozenset()), {"table": table, **_BOUNDS, **parts})
        names |= {name: condition.format_map(names) for name, condition in CONDITIONS.items()}
        return statement.format_map(names)

    def rows(self, table: str, statement: str, **parts: str) -> list[tuple[Any, ...]]:
        """What a SELECT on a table gives; nothing where the file has no such table."""
        return self.db.execute(self.sql(statement, table, **parts)).fetchall() if table in self else []

    def string(self, table: str, column: str) -> str:
        """SQL for the text, as BLOB, whose id stands in a column of `table t`; NULL where the file cannot say."""
        if STRINGS not in self or column not in self.columns.get(table, ()):
            return "NULL"
        return (
            f"(SELECT substr(CAST(s.value AS BLOB), 1, {LONGEST_TEXT_BYTES}) "
            f'FROM "{STRINGS}" s WHERE s.id = t."{column}")'
        )

    def labels(self, enum: str) -> dict[int, str]:
        """Label of each value of an enumeration: the file's own where it has them."""
        labels = nsys_enums.labels(enum)
        if enum in self:
            column = "label" if "label" in self.columns[enum] else "name"
            rows = self.db.execute(f'SELECT id, CAST({column} AS BLOB) FROM src."{enum}"')
            labels |= {number: as_text(label) for number, label in rows if isinstance(number, int)}
        return labels

    def count(self, table: str, condition: str = "TRUE") -> int:
        """Rows of a table, or those for which a condition like "{is_timed}" holds; 0 without the table."""
        sql = self.sql(f"SELECT COUNT(*) FROM src.{{table}} t WHERE {condition}", table)
        return int(self.db.execute(sql).fetchone()[0]) if table in self else 0


def left_out_note(count: int, table: str) -> str:
    return f"{count:,} rows of {table} have no valid time, device or thread and were left out."


def as_text(value: object) -> str:
    """Text that was read as BLOB, for not every text in an export is UTF-8."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
    return text[:LONGEST_NAME_BYTES]


def optional_text(value: object) -> str | None:
    return as_text(value) or None


class _Columns(dict[str, str]):
    def __init__(self, present: frozenset[str], parts: Mapping[str, str]) -> None:
        super().__init__(parts)
        self._present = present

    def __missing__(self, column: str) -> str:
        return f't."{column}"' if column in self._present else "NULL"
