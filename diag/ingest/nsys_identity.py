"""Who is who in an Nsight Systems export: its source row, and the maps from its ids to those of the case.

Statements that copy events join temporary tables `map_...` (key, value): processes, threads, names, and labels of
enumerations. They live as long as the `IdMaps` block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from diag.ingest import nsys_statements as sql
from diag.ingest import nsys_tables as nsys
from diag.ingest.input_file import InputFile, instant
from diag.ingest.nsys_tables import Export, as_text, optional_text
from diag.ingest.rank_names import rank_of_environment
from diag.store.case import Case

MPS_SERVER = "nvidia-cuda-mps-server"
"""The process through which clients of the Multi-Process Service share a GPU (NVIDIA MPS documentation)."""


_THREAD_TABLES = (
    nsys.API,
    nsys.GRAPH_EVENT,
    nsys.GRAPH_NODE_EVENT,
    nsys.NVTX,
    nsys.OS_CALL,
    nsys.SAMPLE,
    nsys.SCHED,
    nsys.CUPTI_OVERHEAD,
    nsys.NSYS_OVERHEAD,
)
_NAME_COLUMNS = {
    "demangledName": (nsys.KERNEL,),
    "shortName": (nsys.KERNEL,),
    "nameId": (nsys.API, nsys.OS_CALL, nsys.CUPTI_OVERHEAD, nsys.NSYS_OVERHEAD),
    "CpuInstruction": (nsys.CPU_PAGE_FAULT,),
    "symbol": (nsys.OS_STACK, nsys.SAMPLE_STACK),
    "module": (nsys.OS_STACK, nsys.SAMPLE_STACK),
}

_PROCESS_TABLES = (*nsys.GPU_TABLES, nsys.SYNC, nsys.CUDA_EVENT, *nsys.MEMORY_TABLES)
_TRANSLATED = {
    "memory_operation": ("ENUM_CUDA_DEV_MEM_EVENT_OPER", nsys.MEMORY_OPERATIONS),
    "thread_state": ("ENUM_SAMPLING_THREAD_STATE", nsys.SCHED_STATES),
}
"""Maps of labels that have a word of ours; others have none."""
_IN_THEIR_OWN_WORDS = {
    "memory": "ENUM_CUDA_MEM_KIND",
    "migration_cause": "ENUM_CUDA_UNIF_MEM_MIGRATION",
    "access": "ENUM_CUDA_UNIF_MEM_ACCESS_TYPE",
    "pool": "ENUM_CUDA_MEMPOOL_TYPE",
    "pool_operation": "ENUM_CUDA_MEMPOOL_OPER",
    "severity": "ENUM_DIAGNOSTIC_SEVERITY_LEVEL",
}


def metadata(export: Export, table: str) -> dict[str, list[str]]:
    """Name and values of a metadata table, without those that may be a secret."""
    result: dict[str, list[str]] = {}
    if table in export:
        for name, value in export.db.execute(sql.METADATA.format(table=table)):
            result.setdefault(as_text(name), []).append(as_text(value))
    return result


def add_source(export: Export, file: InputFile, case: Case) -> int:
    meta = {**metadata(export, "EXPORT_META_DATA"), **metadata(export, "META_DATA_EXPORT")}
    first = {name: values[0] for name, values in meta.items()}
    start, end = _one(export, "ANALYSIS_DETAILS", sql.ANALYSIS, 2)
    (host,) = _one(export, "TARGET_INFO_SYSTEM_ENV", sql.HOST, 1)
    (environment,) = _one(export, "TARGET_INFO_SYSTEM_ENV", sql.ENVIRONMENT, 1)
    rank, world_size = rank_of_environment(environment)
    (utc_epoch_ns,) = _one(export, "TARGET_INFO_SESSION_START_TIME", sql.SESSION_START, 1)
    return case.add_source(
        kind="nsys-sqlite",
        path=str(file.path),
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        tool=first.get("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
        tool_version=first.get("EXPORT_PRODUCT_VERSION"),
        schema_version=first.get("EXPORT_SCHEMA_VERSION"),
        host=optional_text(host),
        rank=rank,
        rank_origin=None if rank is None else "environment",
        world_size=world_size,
        clock_offset_ns=instant(utc_epoch_ns) or 0,
        time_resolution_ns=1,
        capture_start_ns=instant(start),
        capture_end_ns=instant(end),
    )


def _one(export: Export, table: str, statement: str, width: int) -> tuple[Any, ...]:
    rows = export.rows(table, statement)
    return rows[0] if rows else (None,) * width


class IdMaps:
    """The maps of one export, for the time of a `with` block; making them fills `process` and `thread`."""

    def __init__(self, export: Export, case: Case, source_id: int) -> None:
        self.export = export
        self.case = case
        self.source_id = source_id
        self._made: list[str] = []
        self.n_mps_servers = 0

    def __enter__(self) -> IdMaps:
        self._map_processes_and_threads()
        self._map_names()
        self._map_labels()
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:  # after an error nothing is kept, and SQLite may refuse
            for name in self._made:
                self.export.db.execute(f"DROP TABLE map_{name}")

    def _map_processes_and_threads(self) -> None:
        threads = self._distinct("globalTid", _THREAD_TABLES) | self._distinct("endGlobalTid", (nsys.NVTX,))
        processes = self._distinct("globalPid", _PROCESS_TABLES) | {_global_pid(tid) for tid in threads}
        names = dict(self.export.rows("PROCESSES", sql.PROCESSES))
        self.n_mps_servers = sum(MPS_SERVER in as_text(name) for name in names.values())
        ids = {}
        for global_pid in sorted(processes):
            row = {"source_id": self.source_id, "pid": _pid(global_pid), "name": optional_text(names.get(global_pid))}
            ids[global_pid] = self.case.insert_returning_id("process", row)
        string = self.export.string("ThreadNames", "nameId")
        thread_names = dict(self.export.rows("ThreadNames", sql.THREAD_NAMES, string=string))
        thread_ids = {}
        for tid in sorted(threads):
            name = optional_text(thread_names.get(tid))
            row = {"process_id": ids[_global_pid(tid)], "tid": tid & 0xFFFFFF, "name": name}
            thread_ids[tid] = self.case.insert_returning_id("thread", row)
        self._make("process", ids)
        self._make("thread", thread_ids)

    def _distinct(self, column: str, tables: Iterable[str]) -> set[int]:
        """Distinct integers in a column over those of the tables that have it."""
        found: set[int] = set()
        for table in tables:
            if column in self.export.columns.get(table, ()):
                rows = self.export.rows(table, f"SELECT DISTINCT {{{column}}} FROM src.{{table}} t")
                found.update(value for (value,) in rows if isinstance(value, int))
        return found

    def _map_names(self) -> None:
        wanted: set[int] = set()
        for column, tables in _NAME_COLUMNS.items():
            wanted |= self._distinct(column, tables)
        texts = {string_id: f"#{string_id}" for string_id in wanted}
        if nsys.STRINGS in self.export:
            text = f"substr(CAST(value AS BLOB), 1, {nsys.LONGEST_NAME_BYTES})"
            find = f'SELECT {text} FROM src."{nsys.STRINGS}" WHERE id = ?'
            for string_id in wanted:
                if (row := self.export.db.execute(find, (string_id,)).fetchone()) and row[0] is not None:
                    texts[string_id] = as_text(row[0])
        ids = self.case.intern(texts[string_id] for string_id in sorted(texts))
        self._make("string", {string_id: ids[text] for string_id, text in texts.items()})

    def _map_labels(self) -> None:
        labels = self.export.labels
        copies, syncs = labels("ENUM_CUDA_MEMCPY_OPER"), labels("ENUM_CUPTI_SYNC_TYPE")
        self._make("copy_kind", {k: nsys.COPY_KINDS.get(label, label.lower()) for k, label in copies.items()})
        self._make("sync_kind", {k: nsys.SYNC_KINDS.get(label, label.lower()) for k, label in syncs.items()})
        overheads, blocks = labels("ENUM_CUPTI_OVERHEAD_TYPE"), labels("ENUM_SCHEDULING_THREAD_BLOCK")
        self._make("overhead_kind", {k: nsys.OVERHEAD_KINDS.get(v, "unknown") for k, v in overheads.items()})
        self._make("thread_block", {k: "runnable" for k, label in blocks.items() if label in nsys.PREEMPTED})
        self._make("stream_flag", labels("ENUM_CUPTI_STREAM_TYPE"))
        for name, (enum, words) in _TRANSLATED.items():
            self._make(name, {k: words[label] for k, label in labels(enum).items() if label in words})
        for name, enum in _IN_THEIR_OWN_WORDS.items():
            self._make(name, {k: label.lower() for k, label in labels(enum).items()})

    def _make(self, name: str, values: Mapping[int, int | str]) -> None:
        self.export.db.execute(f"CREATE TEMP TABLE map_{name} (key INTEGER PRIMARY KEY, value)")
        self.export.db.executemany(f"INSERT INTO map_{name} VALUES (?, ?)", values.items())
        self._made.append(name)


def _global_pid(global_tid: int) -> int:
    return global_tid & ~0xFFFFFF


def _pid(global_pid: int) -> int:
    return global_pid >> 24 & 0xFFFFFF
