"""Reads an Nsight Systems SQLite export into the case.

The export is attached read-only and its bulk tables are copied inside SQLite; only NVTX ranges pass through Arrow,
because their texts must be grouped. Rows without a valid time or device are left out and counted in a note.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from diag.errors import InputError
from diag.ingest import collectives
from diag.ingest import nsys_statements as sql
from diag.ingest import nsys_tables as nsys
from diag.ingest.input_file import InputFile, Progress, instant, silent
from diag.ingest.nsys_counters import read_counters
from diag.ingest.nsys_nvtx import read_nvtx
from diag.ingest.nsys_tables import Export, as_text
from diag.store.case import Case
from diag.store.columns import sqlite_uri
from diag.store.sqlite_errors import is_about_input


def read(file: InputFile, case: Case, *, progress: Progress = silent) -> int:
    """Adds the `attached` export to the case, inside the caller's transaction, and returns the source's id.

    Raises InputError when the file is not an export or SQLite finds it damaged.
    """
    db = case.db
    try:
        export = Export.probe(db)
        if not any(table in export for table in nsys.EVENT_TABLES):
            raise InputError(
                f"{file.path} is an SQLite database, but not an Nsight Systems export: it has none of the tables "
                f"{nsys.KERNEL}, {nsys.NVTX}, {nsys.OS_CALL}. Make one with: nsys export --type sqlite REPORT"
            )
        return _Import(file, case, export, progress).run()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # Unicode: SQLite's message quotes a damaged name
        if isinstance(error, UnicodeDecodeError) or is_about_input(error):
            raise _damaged(file, error) from error
        raise


@contextmanager
def attached(case: Case, file: InputFile) -> Iterator[None]:
    """Attaches the export as `src`, read-only; SQLite allows that only outside a transaction.

    Raises InputError when SQLite finds the file damaged.
    """
    try:
        case.db.execute("ATTACH ? AS src", (sqlite_uri(file.data, "immutable"),))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise _damaged(file, error) from error
    yield
    case.db.execute("DETACH src")  # after an error, neither would SQLite allow it nor is the case kept


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

_TRANSLATED_LABELS = ("copy_kind", "sync_kind", "overhead_kind", "memory_operation", "thread_state", "thread_block")
_PLAIN_LABELS = {
    "memory": "ENUM_CUDA_MEM_KIND",
    "migration_cause": "ENUM_CUDA_UNIF_MEM_MIGRATION",
    "access": "ENUM_CUDA_UNIF_MEM_ACCESS_TYPE",
    "pool": "ENUM_CUDA_MEMPOOL_TYPE",
    "pool_operation": "ENUM_CUDA_MEMPOOL_OPER",
    "severity": "ENUM_DIAGNOSTIC_SEVERITY_LEVEL",
}


def attach_exports(case: Case) -> list[str]:
    """Attaches the exports that the case was read from, as source1, source2, ..., where they still lie unchanged."""
    attached_as = []
    for source_id, path, size_bytes in case.db.execute(_EXPORTS).fetchall():
        file = Path(path)
        if file.is_file() and file.stat().st_size == size_bytes:
            with suppress(sqlite3.DatabaseError, UnicodeDecodeError):  # damaged since then
                case.db.execute(f"ATTACH ? AS source{source_id:d}", (sqlite_uri(file, "immutable"),))
                attached_as.append(f"source{source_id:d}")
    return attached_as


_EXPORTS = "SELECT id, path, size_bytes FROM source WHERE kind = 'nsys-sqlite' AND path LIKE '%.sqlite' LIMIT 8"


MPS_SERVER = "nvidia-cuda-mps-server"
"""The process through which clients of the Multi-Process Service share a GPU (NVIDIA MPS documentation)."""


class _Import:
    def __init__(self, file: InputFile, case: Case, export: Export, progress: Progress) -> None:
        self.file = file
        self.case = case
        self.db = case.db
        self.export = export
        self.progress = progress
        self.source_id = 0
        self.capabilities: dict[str, int | None] = {}
        self.notes: list[str] = []

    def run(self) -> int:
        capture = self._metadata("META_DATA_CAPTURE")
        self.source_id = self._add_source()
        self._map_processes_and_threads()
        self._map_names()
        self._map_labels()
        self.progress(f"{self.file.path.name}: GPU work")
        self._copy_gpu_work(capture.get("CAPTURE_EVENT_TYPE", []))
        self._copy_memory_events(capture)
        self._copy_devices()
        self.progress(f"{self.file.path.name}: CUDA calls")
        self._copy_cuda_calls()
        self._copy_graphs(capture)
        self.progress(f"{self.file.path.name}: host events")
        self._copy_host_events(capture.get("CAPTURE_EVENT_TYPE", []))
        self._copy_overhead()
        self._copy_diagnostics()
        self.progress(f"{self.file.path.name}: metrics")
        self.capabilities |= read_counters(self.export, self.case, self.source_id, self.notes)
        self.progress(f"{self.file.path.name}: NVTX ranges")
        self.capabilities["nvtx"] = read_nvtx(self.export, self.file, self.case, self.source_id, self.notes)
        collectives.link(self.case, self.source_id)
        communication = "SELECT COUNT(*) FROM collective WHERE source_id = ?"
        self.capabilities["collective"] = self.case.value(communication, (self.source_id,)) or None
        self.capabilities |= {"operator": None, "python": None, "annotation": None, "shapes": None}
        self.case.finish_source(self.source_id, self.capabilities, self.notes)
        self._drop_maps()
        return self.source_id

    # ---- identity ------------------------------------------------------------------------------------------------

    def _metadata(self, table: str) -> dict[str, list[str]]:
        """Name and values of a metadata table, without those that may be a secret."""
        result: dict[str, list[str]] = {}
        if table in self.export:
            for name, value in self.db.execute(sql.METADATA.format(table=table)):
                result.setdefault(as_text(name), []).append(as_text(value))
        return result

    def _add_source(self) -> int:
        meta = {**self._metadata("EXPORT_META_DATA"), **self._metadata("META_DATA_EXPORT")}
        first = {name: values[0] for name, values in meta.items()}
        start, end = self._one("ANALYSIS_DETAILS", sql.ANALYSIS, 2)
        (host,) = self._one("TARGET_INFO_SYSTEM_ENV", sql.HOST, 1)
        (utc_epoch_ns,) = self._one("TARGET_INFO_SESSION_START_TIME", sql.SESSION_START, 1)
        return self.case.add_source(
            kind="nsys-sqlite",
            path=str(self.file.path),
            sha256=self.file.sha256,
            size_bytes=self.file.size_bytes,
            tool=first.get("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
            tool_version=first.get("EXPORT_PRODUCT_VERSION"),
            schema_version=first.get("EXPORT_SCHEMA_VERSION"),
            host=_optional_text(host),
            clock_offset_ns=instant(utc_epoch_ns) or 0,
            time_resolution_ns=1,
            capture_start_ns=instant(start),
            capture_end_ns=instant(end),
        )

    def _one(self, table: str, statement: str, width: int) -> tuple[Any, ...]:
        nothing = (None,) * width
        if table not in self.export:
            return nothing
        return self.db.execute(self.export.sql(statement, table)).fetchone() or nothing

    def _distinct(self, column: str, tables: Iterable[str]) -> set[int]:
        """Distinct integers in a column over those of the tables that have it."""
        found: set[int] = set()
        for table in tables:
            if column in self.export.columns.get(table, ()):
                rows = self.db.execute(self.export.sql(f"SELECT DISTINCT {{{column}}} FROM src.{{table}} t", table))
                found.update(value for (value,) in rows if isinstance(value, int))
        return found

    def _map_processes_and_threads(self) -> None:
        threads = self._distinct("globalTid", _THREAD_TABLES) | self._distinct("endGlobalTid", (nsys.NVTX,))
        processes = self._distinct("globalPid", (*nsys.GPU_TABLES, nsys.SYNC, nsys.CUDA_EVENT, *nsys.MEMORY_TABLES)) | {
            _global_pid(tid) for tid in threads
        }
        names = dict(self._rows("PROCESSES", sql.PROCESSES))
        self.capabilities["mps_server"] = sum(MPS_SERVER in as_text(name) for name in names.values()) or None
        ids = {}
        for global_pid in sorted(processes):
            row = {"source_id": self.source_id, "pid": _pid(global_pid), "name": _optional_text(names.get(global_pid))}
            ids[global_pid] = self._insert_returning_id("process", row)
        string = self.export.string("ThreadNames", "nameId")
        thread_names = dict(self._rows("ThreadNames", sql.THREAD_NAMES, string=string))
        thread_ids = {
            tid: self._insert_returning_id(
                "thread",
                {
                    "process_id": ids[_global_pid(tid)],
                    "tid": tid & 0xFFFFFF,
                    "name": _optional_text(thread_names.get(tid)),
                },
            )
            for tid in sorted(threads)
        }
        self._make_map("process", ids)
        self._make_map("thread", thread_ids)

    def _map_names(self) -> None:
        wanted: set[int] = set()
        for column, tables in _NAME_COLUMNS.items():
            wanted |= self._distinct(column, tables)
        texts = {string_id: f"#{string_id}" for string_id in wanted}
        if nsys.STRINGS in self.export:
            text = f"substr(CAST(value AS BLOB), 1, {nsys.LONGEST_NAME_BYTES})"
            find = f'SELECT {text} FROM src."{nsys.STRINGS}" WHERE id = ?'
            for string_id in wanted:
                if (row := self.db.execute(find, (string_id,)).fetchone()) and row[0] is not None:
                    texts[string_id] = as_text(row[0])
        ids = self.case.intern(texts[string_id] for string_id in sorted(texts))
        self._make_map("string", {string_id: ids[text] for string_id, text in texts.items()})

    def _map_labels(self) -> None:
        copies = self.export.labels("ENUM_CUDA_MEMCPY_OPER")
        syncs = self.export.labels("ENUM_CUPTI_SYNC_TYPE")
        overheads = self.export.labels("ENUM_CUPTI_OVERHEAD_TYPE")
        self._make_map("copy_kind", {k: nsys.COPY_KINDS.get(label, label.lower()) for k, label in copies.items()})
        self._make_map("sync_kind", {k: nsys.SYNC_KINDS.get(label, label.lower()) for k, label in syncs.items()})
        self._make_map("overhead_kind", {k: nsys.OVERHEAD_KINDS.get(v, "unknown") for k, v in overheads.items()})
        operations = self.export.labels("ENUM_CUDA_DEV_MEM_EVENT_OPER")
        self._make_map("memory_operation", _translated(operations, nsys.MEMORY_OPERATIONS))
        states = self.export.labels("ENUM_SAMPLING_THREAD_STATE")
        self._make_map("thread_state", _translated(states, nsys.SCHED_STATES))
        blocks = self.export.labels("ENUM_SCHEDULING_THREAD_BLOCK")
        self._make_map("thread_block", {k: "runnable" for k, label in blocks.items() if label in nsys.PREEMPTED})
        for name, enum in _PLAIN_LABELS.items():
            self._make_map(name, {k: label.lower() for k, label in self.export.labels(enum).items()})

    def _make_map(self, name: str, values: Mapping[int, int | str]) -> None:
        self.db.execute(f"CREATE TEMP TABLE map_{name} (key INTEGER PRIMARY KEY, value)")
        self.db.executemany(f"INSERT INTO map_{name} VALUES (?, ?)", values.items())

    def _drop_maps(self) -> None:
        for name in ("process", "thread", "string", *_TRANSLATED_LABELS, *_PLAIN_LABELS):
            self.db.execute(f"DROP TABLE map_{name}")

    def _insert_returning_id(self, table: str, row: Mapping[str, Any]) -> int:
        columns, values = ", ".join(row), ", ".join(f":{column}" for column in row)
        return int(
            self.db.execute(f"INSERT INTO {table} ({columns}) VALUES ({values}) RETURNING id", row).fetchone()[0]
        )

    def _rows(self, table: str, statement: str, **parts: str) -> list[tuple[Any, ...]]:
        return self.db.execute(self.export.sql(statement, table, **parts)).fetchall() if table in self.export else []

    # ---- events --------------------------------------------------------------------------------------------------

    def _copy(self, table: str, statement: str, *, wanted: str = "TRUE", **parts: str) -> int:
        """Runs a bulk INSERT ... SELECT and returns how many rows it took; what it left out of the wanted is noted."""
        if table not in self.export:
            return 0
        taken = self._run(statement, table, **parts)
        if left_out := self.export.count(table, wanted) - taken:
            self.notes.append(nsys.left_out_note(left_out, table))
        return taken

    def _run(self, statement: str, table: str, **parts: str) -> int:
        """Runs an INSERT ... SELECT and returns how many rows it made."""
        return self.db.execute(self.export.sql(statement, table, **parts), {"source": self.source_id}).rowcount

    def _copy_gpu_work(self, capture_types: list[str]) -> None:
        captured = "Cuda" in capture_types or any(table in self.export for table in nsys.CUDA_TABLES)
        for fact, table, statement in (
            ("kernel", nsys.KERNEL, sql.KERNELS),
            ("copy", nsys.COPY, sql.COPIES),
            ("memset", nsys.MEMSET, sql.MEMSETS),
            ("graph", nsys.GRAPH, sql.GRAPHS),
        ):
            count = self._copy(table, statement)
            self.capabilities[fact] = count if captured else None
        if green := self.case.value(sql.COUNT_GREEN, (self.source_id,)):
            self.notes.append(
                f"{green} GPU operations ran in green contexts, on a part of the SMs that no table states."
            )
        has_memory_kind = nsys.COPY not in self.export or "srcKind" in self.export.columns[nsys.COPY]
        self.capabilities["memory_kind"] = self.capabilities["copy"] if has_memory_kind else None

    def _copy_memory_events(self, capture: Mapping[str, list[str]]) -> None:
        """Old versions of nsys write these tables whether or not they were recorded: an empty one says nothing."""
        self._copy(nsys.MEMORY_POOL, sql.MEMORY_POOLS)
        self.capabilities |= {
            "allocation": self._copy(nsys.ALLOCATION, sql.ALLOCATIONS)
            or _if_collected(capture, "COLLECT_GPU_MEMORY_USAGE"),
            "gpu_page_fault": self._copy(nsys.GPU_PAGE_FAULT, sql.GPU_PAGE_FAULTS)
            or _if_collected(capture, "COLLECT_UVM_GPU_PAGE_FAULTS"),
            "cpu_page_fault": self._copy(nsys.CPU_PAGE_FAULT, sql.CPU_PAGE_FAULTS)
            or _if_collected(capture, "COLLECT_UVM_CPU_PAGE_FAULTS"),
            "migration": self._migrations(),
        }

    def _migrations(self) -> int | None:
        """Copies of unified memory whose address is known; None when no copy of the file could say one."""
        if nsys.COPY in self.export and "virtualAddress" not in self.export.columns[nsys.COPY]:
            return None
        count = int(self.db.execute(sql.MIGRATIONS, {"source": self.source_id}).fetchone()[0])
        return None if self.capabilities["copy"] is None else count

    def _copy_devices(self) -> None:
        gpus = self._rows("TARGET_INFO_GPU", sql.GPUS)
        by_gpu: dict[int, int] = {}
        by_ordinal: dict[int, list[int]] = {}
        for gpu_index, ordinal, *facts in gpus:
            if not isinstance(gpu_index, int):
                continue
            row = dict(zip(sql.GPU_FACTS, facts, strict=True))
            row["uuid"], row["name"] = _optional_text(row["uuid"]), _optional_text(row["name"])
            row |= {key: _integer(value) for key, value in row.items() if key not in ("uuid", "name")}
            row["mig_instance"] = mig_instance(row["uuid"], row["name"])
            by_gpu[gpu_index] = self._insert_returning_id(
                "device", {"source_id": self.source_id, "gpu_index": gpu_index, **row}
            )
            by_ordinal.setdefault(_integer(ordinal) or 0, []).append(by_gpu[gpu_index])
        mapping = self._rows("TARGET_INFO_CUDA_DEVICE", sql.CUDA_DEVICES)
        known = {(pid, ordinal): by_gpu.get(gpu) for pid, ordinal, gpu in mapping}
        used = self.db.execute(sql.USED_DEVICES, {"source": self.source_id}).fetchall()
        for process_id, pid, ordinal in used:
            alone = by_ordinal.get(ordinal, [])
            device_id = known.get((pid, ordinal), alone[0] if len(alone) == 1 and not known else None)
            self.db.execute("INSERT INTO process_device VALUES (?, ?, ?)", (process_id, ordinal, device_id))
        for table, statement in (
            ("TARGET_INFO_CUDA_CONTEXT_INFO", sql.CONTEXTS),
            ("TARGET_INFO_CUDA_NULL_STREAM", sql.NULL_STREAMS),
        ):
            if table in self.export:
                self.db.execute(self.export.sql(statement, table), {"source": self.source_id})
        self.db.execute(sql.CONTEXTS_OF_WORK, {"source": self.source_id})
        self._make_map("stream_flag", self.export.labels("ENUM_CUPTI_STREAM_TYPE"))
        if "TARGET_INFO_CUDA_STREAM" in self.export:
            self.db.execute(self.export.sql(sql.STREAMS, "TARGET_INFO_CUDA_STREAM"), {"source": self.source_id})
        self.db.execute("DROP TABLE map_stream_flag")

    def _copy_cuda_calls(self) -> None:
        calls = self._copy(nsys.API, sql.API_CALLS)
        self.capabilities["api"] = calls if nsys.API in self.export else None
        syncs = self._copy(nsys.SYNC, sql.SYNCS)
        self.capabilities["sync"] = syncs if nsys.SYNC in self.export or nsys.API in self.export else None
        # The table may be there without rows though events were recorded: they must be asked for.
        self.capabilities["cuda_event"] = self._copy(nsys.CUDA_EVENT, sql.CUDA_EVENTS) or None

    def _copy_graphs(self, capture: Mapping[str, list[str]]) -> None:
        nodes = graphs = 0
        for table in (nsys.GRAPH_EVENT, nsys.GRAPH_NODE_EVENT):
            if "graphNodeId" in self.export.columns.get(table, ()):
                nodes += self._run(sql.GRAPH_NODES, table)
            elif table in self.export:
                graphs += self._run(sql.GRAPHS_MADE, table)
        if nodes or graphs:
            self.db.execute(sql.INDEX_CALLS)
            for made in ("graph_node", "graph"):
                self.db.execute(sql.CALL_THAT_MADE.format(made=made), {"source": self.source_id})
            self.db.execute(sql.DROP_CALL_INDEX)
        self.capabilities["graph_node"] = nodes or None
        mode = self._graph_mode(capture)
        self.db.execute("UPDATE source SET graph_mode = ? WHERE id = ?", (mode, self.source_id))

    def _graph_mode(self, capture: Mapping[str, list[str]]) -> str | None:
        """How launches of CUDA graphs were traced: as the rows show, or where there are none as the options say."""
        if self.capabilities["graph"]:
            return "graph"
        said = {value.lower() for key, values in capture.items() if key.endswith(nsys.GRAPH_MODE) for value in values}
        if len(said) == 1 and said <= {"graph", "node"}:
            return said.pop()
        return "node" if self.db.execute(sql.HAS_NODE_ROWS, {"source": self.source_id}).fetchone()[0] else None

    def _copy_host_events(self, capture_types: list[str]) -> None:
        os_stacks = self._copy_stacks(nsys.OS_STACK)
        os_calls = self._copy(nsys.OS_CALL, sql.OS_CALLS, wanted="{is_os_call}", stack_offset=str(os_stacks))
        sample_stacks = self._copy_stacks(nsys.SAMPLE_STACK)
        samples = self._copy(nsys.SAMPLE, sql.SAMPLES, stack_offset=str(sample_stacks))
        switches = self._copy(nsys.SCHED, sql.SCHED)
        self.capabilities |= {
            "os_call": os_calls if os_calls or "OSRuntime" in capture_types else None,
            "cpu_sample": samples or None,
            "sched": switches or None,
        }

    def _copy_stacks(self, table: str) -> int:
        """Copies a table of call chains; returns what was added to their ids to keep them apart from others'."""
        offset = int(self.db.execute("SELECT COALESCE(MAX(id), 0) FROM stack").fetchone()[0])
        if table in self.export:
            self.db.execute(self.export.sql(sql.STACKS, table, stack_offset=str(offset)))
        return offset

    def _copy_overhead(self) -> None:
        count = self._copy(nsys.CUPTI_OVERHEAD, sql.CUPTI_OVERHEAD) + self._copy(nsys.NSYS_OVERHEAD, sql.NSYS_OVERHEAD)
        recorded = nsys.CUPTI_OVERHEAD in self.export or nsys.NSYS_OVERHEAD in self.export
        self.capabilities["overhead"] = count if recorded else None

    def _copy_diagnostics(self) -> None:
        rows = self._rows(nsys.DIAGNOSTIC, sql.DIAGNOSTICS)
        self.case.insert(
            "diagnostic",
            [
                {"source_id": self.source_id, "time_ns": time_ns, "severity": severity, "text": as_text(text)}
                for time_ns, severity, text in rows
            ],
        )
        self.capabilities["diagnostic"] = len(rows) if nsys.DIAGNOSTIC in self.export else None


def mig_instance(uuid: str | None, name: str | None) -> str | None:
    """The slice of a GPU that a device is: its profile where the name tells it, else its UUID; None for a whole GPU.

    >>> mig_instance("MIG-8f3a", "NVIDIA H100 80GB HBM3 MIG 1g.10gb")
    '1g.10gb'
    """
    if profile := _MIG_PROFILE.search(name or ""):
        return profile[1]
    return uuid if uuid is not None and uuid.startswith("MIG-") else None


_MIG_PROFILE = re.compile(r"\bMIG (\d+g\.\d+gb\S*)", re.IGNORECASE)


def _translated(labels: Mapping[int, str], words: Mapping[str, str]) -> dict[int, str]:
    """Our word for each value whose label has one."""
    return {value: words[label] for value, label in labels.items() if label in words}


def _global_pid(global_tid: int) -> int:
    return global_tid & ~0xFFFFFF


def _pid(global_pid: int) -> int:
    return global_pid >> 24 & 0xFFFFFF


def _if_collected(capture: Mapping[str, list[str]], option: str) -> int | None:
    """No rows, where the capture's options say that they were collected; None where they do not."""
    asked = (values for name, values in capture.items() if name.rpartition(":")[2] == option)
    return 0 if any("true" in values for values in asked) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _optional_text(value: object) -> str | None:
    return as_text(value) or None


def _damaged(file: InputFile, error: Exception) -> InputError:
    what = "a name in it is no text" if isinstance(error, UnicodeDecodeError) else error
    return InputError(f"{file.path} is damaged: {what}. Export it again with: nsys export --type sqlite REPORT")
