"""Reads an Nsight Systems SQLite export into the case.

The export is attached read-only and its bulk tables are copied inside SQLite; only NVTX ranges pass through Arrow,
because their texts must be grouped. Rows without a valid time or device are left out and counted in a note.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from diag.errors import InputError
from diag.ingest import collectives
from diag.ingest import nsys_memory_statements as memory_sql
from diag.ingest import nsys_statements as sql
from diag.ingest import nsys_tables as nsys
from diag.ingest.input_file import InputFile, Progress, silent
from diag.ingest.nsys_counters import read_counters
from diag.ingest.nsys_devices import read_devices
from diag.ingest.nsys_identity import IdMaps, add_source, metadata
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
        if not any(table in export for table in (*nsys.EVENT_TABLES, nsys.READING)):
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
        self.source_id = add_source(self.export, self.file, self.case)
        with IdMaps(self.export, self.case, self.source_id) as maps:
            self.capabilities["mps_server"] = maps.n_mps_servers or None
            self._copy_account_of_reading()
            self._copy_events(metadata(self.export, "META_DATA_CAPTURE"))
        self.capabilities |= {"operator": None, "python": None, "annotation": None, "shapes": None}
        self.case.finish_source(self.source_id, self.capabilities, self.notes)
        return self.source_id

    def _copy_events(self, capture: Mapping[str, list[str]]) -> None:
        self.progress(f"{self.file.path.name}: GPU work")
        self._copy_gpu_work(capture.get("CAPTURE_EVENT_TYPE", []))
        self._copy_memory_events(capture)
        read_devices(self.export, self.case, self.source_id)
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

    def _copy_account_of_reading(self) -> None:
        if nsys.READING in self.export:
            self._run(sql.EVENTS_READ, nsys.READING)
            losses = self.export.rows(nsys.READING, sql.LOSSES)
            self.notes += [f"The report is damaged: {as_text(phrases)}." for (phrases,) in losses]
            if self.case.source(self.source_id).are_names_lost:
                self.notes.append("Communication, synchronisation and locks are known by their names, which are lost.")
        unread = self.export.rows(nsys.UNREAD, sql.UNREAD)
        rows = [{"source_id": self.source_id, "what": as_text(what), "count": count} for what, count in unread]
        self.case.insert("unread", rows)

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
        self._copy(nsys.MEMORY_POOL, memory_sql.MEMORY_POOLS)
        self.capabilities |= {
            "allocation": self._copy(nsys.ALLOCATION, memory_sql.ALLOCATIONS)
            or _if_collected(capture, "COLLECT_GPU_MEMORY_USAGE"),
            "gpu_page_fault": self._copy(nsys.GPU_PAGE_FAULT, memory_sql.GPU_PAGE_FAULTS)
            or _if_collected(capture, "COLLECT_UVM_GPU_PAGE_FAULTS"),
            "cpu_page_fault": self._copy(nsys.CPU_PAGE_FAULT, memory_sql.CPU_PAGE_FAULTS)
            or _if_collected(capture, "COLLECT_UVM_CPU_PAGE_FAULTS"),
            "migration": self._migrations(),
        }

    def _migrations(self) -> int | None:
        """Copies of unified memory whose address is known; None when no copy of the file could say one."""
        if nsys.COPY in self.export and "virtualAddress" not in self.export.columns[nsys.COPY]:
            return None
        count = int(self.db.execute(memory_sql.MIGRATIONS, {"source": self.source_id}).fetchone()[0])
        return None if self.capabilities["copy"] is None else count

    def _copy_cuda_calls(self) -> None:
        calls = self._copy(nsys.API, sql.API_CALLS)
        self.capabilities["api"] = calls if nsys.API in self.export else None
        syncs = self._copy(nsys.SYNC, sql.SYNCS)
        self.capabilities["sync"] = syncs if nsys.SYNC in self.export or nsys.API in self.export else None
        if syncs:
            for statement in (sql.MAKE_SYNC_CALLS, sql.FIND_SYNC_CALLS, sql.KIND_OF_SYNC_BY_CALL, sql.DROP_SYNC_CALLS):
                self.db.execute(statement, {"source": self.source_id} if ":source" in statement else ())
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
        rows = self.export.rows(nsys.DIAGNOSTIC, sql.DIAGNOSTICS)
        self.case.insert(
            "diagnostic",
            [
                {"source_id": self.source_id, "time_ns": time_ns, "severity": severity, "text": as_text(text)}
                for time_ns, severity, text in rows
            ],
        )
        self.capabilities["diagnostic"] = len(rows) if nsys.DIAGNOSTIC in self.export else None


def _if_collected(capture: Mapping[str, list[str]], option: str) -> int | None:
    """No rows, where the capture's options say that they were collected; None where they do not."""
    asked = (values for name, values in capture.items() if name.rpartition(":")[2] == option)
    return 0 if any("true" in values for values in asked) else None


def _damaged(file: InputFile, error: Exception) -> InputError:
    what = "a name in it is no text" if isinstance(error, UnicodeDecodeError) else error
    return InputError(f"{file.path} is damaged: {what}. Export it again with: nsys export --type sqlite REPORT")
