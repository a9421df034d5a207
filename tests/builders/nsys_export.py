"""A builder of small Nsight Systems exports: true to the schema, marked as synthetic, readable in a test.

    export = NsysExport()
    main = export.process(100).thread()
    gpu = main.process.gpu(0)
    main.launch(gpu, called=10, start=15, end=40, name="gemm")
    export.write(tmp_path / "report.sqlite")

Times are nanoseconds. Like nsys, it writes only tables that have rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.builders.nsys_schema import ENUMS, LATEST, SCHEMAS, TABLES

SYNTHETIC = ("SYNTHETIC", "made by diag tests")
CONTEXT = 1
STREAM = 7
_MACHINE = 1 << 48  # hardware and virtual machine ids that every serialised process id starts with

_GPU_METRICS_TYPE = 0x1000100000000


class NsysExport:
    """Collects rows and writes them as an export of the chosen schema (a key of SCHEMAS)."""

    def __init__(self, schema: str = LATEST) -> None:
        self.schema = SCHEMAS[schema]
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.enums = self.schema.enums()
        self._strings: dict[str | bytes, int] = {}
        self._statements: list[str] = []
        self._last_correlation = 0
        self._backwards = False
        self._mark_as_synthetic()

    # ---- what ran ------------------------------------------------------------------------------------------------

    def process(self, pid: int = 100, name: str | bytes = "python") -> Process:
        process = Process(self, pid)
        self.insert("PROCESSES", globalPid=process.global_pid, pid=pid, name=name)
        return process

    def hardware(self, index: int = 0, name: str = "NVIDIA H100", uuid: str = "GPU-0", **facts: Any) -> None:
        self.insert("TARGET_INFO_GPU", id=index, cuDevice=index, name=name, uuid=uuid, **facts)

    def collected(self, option: str) -> None:
        """Says that an option of the capture was on, be it that nothing of it happened."""
        self.insert("META_DATA_CAPTURE", name=f"PROCESS_0:{option}", value="true")

    def capture_of(self, *event_types: str) -> None:
        """Says which kinds of events were recorded, be it that none happened."""
        for event_type in event_types:
            self.insert("META_DATA_CAPTURE", name="CAPTURE_EVENT_TYPE", value=event_type)

    def diagnostic(self, severity: str, text: str | bytes, at: int = 0) -> None:
        level = self.code("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", severity)
        self.insert("DIAGNOSTIC_EVENT", timestamp=at, severity=level, text=text)

    def read_from_report(self, declared: int, read: int, losses: str = "", unread: Mapping[str, int] = {}) -> None:
        """As if diag had made this export from a report; `unread` are events by what of them is not understood."""
        lost = declared - read - sum(count for what, count in unread.items() if "." not in what)
        row = {"declared": declared, "read": read, "lost": lost, "areNamesLost": "names" in losses, "losses": losses}
        self.insert("DIAG_READING", **row)
        for what, count in unread.items():
            self.insert("DIAG_UNREAD", what=what, count=count)

    def gpu_metric(self, name: str, samples: Mapping[int, int], gpu: int = 0) -> None:
        """Values of a GPU metric by their times. `gpu` is PerfWorks' number of the device."""
        type_id = _GPU_METRICS_TYPE | gpu
        known = self.rows.get("TARGET_INFO_GPU_METRICS", [])
        metrics = {row["metricName"]: row["metricId"] for row in known if row["typeId"] == type_id}
        if (metric := metrics.get(name)) is None:
            metric = len(known)
            row = {"typeId": type_id, "sourceId": 1, "typeName": "GPU Metrics", "metricId": metric, "metricName": name}
            self.insert("TARGET_INFO_GPU_METRICS", **row)
        for time, value in samples.items():
            self.insert("GPU_METRICS", rawTimestamp=time, timestamp=time, typeId=type_id, metricId=metric, value=value)

    def network_metric(self, name: str, unit: str, samples: Mapping[int, int], card: str = "mlx5_0") -> None:
        """Values of a network card's metric by the times at which their periods of 1 ms begin."""
        known = self.rows.get("TARGET_INFO_NETWORK_METRICS", [])
        metric = {"metricsListId": 0, "metricsIdx": len(known)}
        if not known:
            self.insert("TARGET_INFO_NIC_INFO", nicId=3, name=card)
            self.insert("NIC_ID_MAP", nicId=3, globalId=_MACHINE)
        self.insert("TARGET_INFO_NETWORK_METRICS", **metric, name=name, description=name, unit=unit)
        for start, value in samples.items():
            place = {"globalId": _MACHINE, "portId": 1}
            self.insert("NET_NIC_METRIC", start=start, end=start + 1_000_000, **place, **metric, value=value)

    # ---- rows ----------------------------------------------------------------------------------------------------

    def insert(self, table: str, **row: Any) -> None:
        """Adds a row; columns that another version of the schema has are left out when it is written."""
        known = {column for schema in SCHEMAS.values() for column in schema.columns(table)}
        if unknown := row.keys() - known:
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")
        self.rows.setdefault(table, []).append(row)

    def insert_stack(self, table: str, stack: int, *frames: str) -> None:
        """A call chain, leaf first. A frame of the kernel ends with `[k]`, as perf marks it."""
        for depth, frame in enumerate(frames):
            symbol, is_kernel = frame.removesuffix(" [k]"), frame.endswith(" [k]")
            module = "[kernel.kallsyms]" if is_kernel else "/usr/bin/python3"
            names = {"symbol": self.string(symbol), "module": self.string(module)}
            self.insert(table, id=stack, stackDepth=depth, kernelMode=int(is_kernel), **names)

    def string(self, text: str | bytes) -> int:
        """The id of a text in StringIds."""
        return self._strings.setdefault(text, len(self._strings) + 1)

    def code(self, enum: str, label: str) -> int:
        values = self.enums.get(enum, ENUMS[enum])
        return next(number for number, known in values.items() if known == label)

    def correlation(self) -> int:
        self._last_correlation += 1
        return self._last_correlation

    def drop(self, *tables: str) -> NsysExport:
        """Leaves tables out, as if they had not been captured."""
        return self.then(*(f'DROP TABLE IF EXISTS "{table}"' for table in tables))

    def then(self, *statements: str) -> NsysExport:
        """SQL to run on the finished file: for damage and for what other tools do to an export."""
        self._statements += statements
        return self

    def backwards(self) -> NsysExport:
        """Writes the rows of each table in the opposite order: exports promise none."""
        self._backwards = True
        return self

    def write(self, path: Path) -> Path:
        with closing(sqlite3.connect(path)) as db, db:
            self._write_strings(db)
            for table in TABLES:
                if rows := self.rows.get(table):
                    self._write_table(db, table, rows[::-1] if self._backwards else rows)
            for enum, labels in self.enums.items():
                db.execute(f"CREATE TABLE {enum} (id INTEGER NOT NULL, name TEXT, label TEXT)")
                db.executemany(f"INSERT INTO {enum} VALUES (?, ?, ?)", [(i, text, text) for i, text in labels.items()])
            for statement in self._statements:
                db.execute(statement)
        return path

    def _write_strings(self, db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        db.executemany("INSERT INTO StringIds VALUES (?, CAST(? AS TEXT))", [(i, t) for t, i in self._strings.items()])

    def _write_table(self, db: sqlite3.Connection, table: str, rows: list[dict[str, Any]]) -> None:
        columns = self.schema.columns(table)
        declared = ", ".join(f'"{name}" {declaration}' for name, declaration in columns.items())
        db.execute(f'CREATE TABLE "{table}" ({declared})')
        # SQLite keeps a BLOB in a TEXT column as BLOB: bytes stand for a text that is not UTF-8 and must become one.
        values = ", ".join(
            "CAST(? AS TEXT)" if "TEXT" in text and name != "binaryData" else "?" for name, text in columns.items()
        )
        empty = {name: _empty(declaration) for name, declaration in columns.items()}
        db.executemany(
            f'INSERT INTO "{table}" VALUES ({values})',
            [list({**empty, **_only(row, columns)}.values()) for row in rows],
        )

    def _mark_as_synthetic(self) -> None:
        table = self.schema.metadata_table
        if table is None:
            self.string(": ".join(SYNTHETIC))
            return
        for name, value in (
            SYNTHETIC,
            ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
            ("EXPORT_PRODUCT_VERSION", self.schema.tool),
            ("EXPORT_SCHEMA_VERSION", self.schema.label),
        ):
            self.insert(table, name=name, value=value)


@dataclass(frozen=True)
class Process:
    export: NsysExport
    pid: int

    @property
    def global_pid(self) -> int:
        return _MACHINE | self.pid << 24

    def thread(self, tid: int | None = None, name: str | bytes | None = None) -> Thread:
        """A thread, by default the main one, whose id is that of the process."""
        thread = Thread(self, self.pid if tid is None else tid)
        if name is not None:
            self.export.insert("ThreadNames", nameId=self.export.string(name), globalTid=thread.global_tid)
        return thread

    def gpu(self, ordinal: int = 0, context: int = CONTEXT) -> Gpu:
        return Gpu(self, ordinal, context)

    def sees(self, ordinal: int, hardware: int) -> None:
        """Says which hardware the process means by a device ordinal."""
        self.export.insert("TARGET_INFO_CUDA_DEVICE", gpuId=hardware, cudaId=ordinal, pid=self.pid)

    def cpu_fault(self, at: int, address: int, function: str = "fill") -> None:
        """A CPU touched a page of unified memory that lay on a device."""
        ids = {"CpuInstruction": self.export.string(function), "module": self.export.string("/usr/bin/python3")}
        self.export.insert("CUDA_UM_CPU_PAGE_FAULT_EVENTS", start=at, globalPid=self.global_pid, address=address, **ids)

    def prints(self, file: str, content: str) -> None:
        """Keeps what the process wrote to a stream, as nsys does for standard output and error."""
        ids = {"filenameId": self.export.string(file), "contentId": self.export.string(content)}
        self.export.insert("ProcessStreams", globalPid=self.global_pid, **ids)


@dataclass(frozen=True)
class Gpu:
    """A device as one process uses it, through one context."""

    process: Process
    ordinal: int
    context: int = CONTEXT

    def kernel(
        self, start: int, end: int, name: str | bytes = "gemm", correlation: int | None = None, **more: Any
    ) -> None:
        name_id = self.process.export.string(name)
        names = {"demangledName": name_id, "shortName": name_id, "mangledName": name_id}
        self._add("CUPTI_ACTIVITY_KIND_KERNEL", start, end, correlation, {**names, **more})

    def copy(
        self,
        start: int,
        end: int,
        n_bytes: int,
        kind: str = "Host-to-Device",
        memory: tuple[str, str] = ("Pinned", "Device"),
        correlation: int | None = None,
        **more: Any,
    ) -> None:
        code = self.process.export.code
        src, dst = (code("ENUM_CUDA_MEM_KIND", label) for label in memory)
        row = {"bytes": n_bytes, "copyKind": code("ENUM_CUDA_MEMCPY_OPER", kind), "srcKind": src, "dstKind": dst}
        self._add("CUPTI_ACTIVITY_KIND_MEMCPY", start, end, correlation, {**row, **more})

    def migrate(self, start: int, end: int, n_bytes: int, kind: str, address: int, cause: str = "Page fault") -> None:
        """A copy of unified memory, which no call launches."""
        code = self.process.export.code("ENUM_CUDA_UNIF_MEM_MIGRATION", cause)
        memory = ("Managed", "Managed")
        self.copy(start, end, n_bytes, kind, memory, virtualAddress=address, migrationCause=code)

    def fault(self, start: int, end: int, address: int, count: int = 1, access: str = "Read") -> None:
        """A kernel touched a page of unified memory that lay elsewhere."""
        code = self.process.export.code("ENUM_CUDA_UNIF_MEM_ACCESS_TYPE", access)
        self._memory_event(
            "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
            start,
            end=end,
            address=address,
            numberOfPageFaults=count,
            faultAccessType=code,
        )

    def allocate(self, at: int, n_bytes: int, address: int = 0, memory: str = "Device", **more: Any) -> None:
        self._memory_usage("Allocation", at, n_bytes, address, memory, **more)

    def free(self, at: int, n_bytes: int, address: int = 0, memory: str = "Device", **more: Any) -> None:
        self._memory_usage("Deallocation", at, n_bytes, address, memory, **more)

    def pool(self, operation: str, at: int, address: int = 0, **more: Any) -> None:
        """A pool of the stream-ordered allocator: 'Created', 'Trimmed' or 'Destroyed'."""
        code = self.process.export.code
        codes = {
            "operationType": code("ENUM_CUDA_MEMPOOL_OPER", operation),
            "poolType": code("ENUM_CUDA_MEMPOOL_TYPE", "Local"),
        }
        self._memory_event("CUDA_GPU_MEMORY_POOL_EVENTS", at, address=address, **codes, **more)

    def _memory_usage(self, operation: str, at: int, n_bytes: int, address: int, memory: str, **more: Any) -> None:
        code = self.process.export.code
        self._memory_event(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            at,
            contextId=self.context,
            address=address,
            bytes=n_bytes,
            memKind=code("ENUM_CUDA_MEM_KIND", memory),
            memoryOperationType=code("ENUM_CUDA_DEV_MEM_EVENT_OPER", operation),
            **more,
        )

    def _memory_event(self, table: str, start: int, **row: Any) -> None:
        ids = {"globalPid": self.process.global_pid, "deviceId": self.ordinal}
        self.process.export.insert(table, start=start, **ids, **row)

    def memset(self, start: int, end: int, n_bytes: int, correlation: int | None = None) -> None:
        self._add("CUPTI_ACTIVITY_KIND_MEMSET", start, end, correlation, {"bytes": n_bytes})

    def graph(self, start: int, end: int, graph: int = 1, correlation: int | None = None, **more: Any) -> None:
        """One row for the whole launch of a graph."""
        row = {"graphId": graph, "graphExecId": graph, **more}
        self._add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start, end, correlation, row)

    def nodes(self, start: int, duration: int, count: int, correlation: int, *, apart: int = 0, **more: Any) -> None:
        """Kernels of one launch of a graph, one after the other, each `apart` from the one before it."""
        for node in range(count):
            at = start + node * (duration + apart)
            self.kernel(at, at + duration, f"node{node}", correlation, graphNodeId=node + 1, **more)

    def sync(self, kind: str, start: int, end: int, correlation: int | None = None, **more: Any) -> None:
        code = self.process.export.code("ENUM_CUPTI_SYNC_TYPE", kind)
        self._add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start, end, correlation, {"syncType": code, **more})

    def record(self, event: int, stream: int = STREAM, correlation: int | None = None, **more: Any) -> None:
        """An event recorded on a stream by the call with that correlation."""
        self.process.export.insert(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
            deviceId=self.ordinal,
            contextId=self.context,
            streamId=stream,
            correlationId=correlation,
            globalPid=self.process.global_pid,
            eventId=event,
            **more,
        )

    def describe_context(self, null_stream: int = STREAM, *, is_green: bool = False) -> None:
        self.process.export.insert(
            "TARGET_INFO_CUDA_CONTEXT_INFO",
            nullStreamId=null_stream,
            processId=self.process.pid,
            deviceId=self.ordinal,
            contextId=self.context,
            isGreenContext=int(is_green),
        )

    def describe_stream(self, stream: int, priority: int = 0, flag: str = "Non-blocking stream") -> None:
        export = self.process.export
        export.insert(
            "TARGET_INFO_CUDA_STREAM",
            streamId=stream,
            processId=self.process.pid,
            contextId=self.context,
            priority=priority & 0xFFFFFFFF,  # nsys stores negative priorities as unsigned
            flag=export.code("ENUM_CUPTI_STREAM_TYPE", flag),
        )

    def _add(self, table: str, start: int, end: int, correlation: int | None, more: dict[str, Any]) -> None:
        row = {
            "start": start,
            "end": end,
            "deviceId": self.ordinal,
            "contextId": self.context,
            "streamId": STREAM,
            "correlationId": correlation,
            "globalPid": self.process.global_pid,
        }
        self.process.export.insert(table, **{**row, **more})


@dataclass(frozen=True)
class Thread:
    process: Process
    tid: int

    @property
    def export(self) -> NsysExport:
        return self.process.export

    @property
    def global_tid(self) -> int:
        return self.process.global_pid | self.tid

    # ---- CUDA ----------------------------------------------------------------------------------------------------

    def call(self, name: str, start: int, end: int, correlation: int | None = None) -> int:
        """A CUDA call; returns its correlation id."""
        correlation = self.export.correlation() if correlation is None else correlation
        self._add(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=start,
            end=end,
            correlationId=correlation,
            nameId=self.export.string(name),
        )
        return correlation

    def launch(
        self,
        gpu: Gpu,
        called: int,
        start: int,
        end: int,
        name: str = "gemm",
        *,
        returns: int | None = None,
        **more: Any,
    ) -> None:
        """A kernel and the call, at `called`, that launched it."""
        returns = called + 1 if returns is None else returns
        correlation = self.call("cudaLaunchKernel_v7000", called, returns)
        gpu.kernel(start, end, name, correlation, **more)

    def makes_node(self, node: int, at: int, copy_of: int | None = None) -> None:
        """Says when this thread made a node of a graph, be it as a copy of another."""
        table = "CUDA_GRAPH_NODE_EVENTS" if self.export.schema.version >= (3, 2) else "CUDA_GRAPH_EVENTS"
        name = self.export.string("Graph Node Creation")
        self._add(table, start=at, end=at, nameId=name, graphNodeId=node, originalGraphNodeId=copy_of)

    def makes_graph(self, graph: int, at: int, instance: int | None = None) -> None:
        """Says when this thread created a graph, or made an instance of it."""
        name = self.export.string("Graph Creation" if instance is None else "GraphExec Creation")
        self._add("CUDA_GRAPH_EVENTS", start=at, end=at, nameId=name, graphId=graph, graphExecId=instance)

    def overhead(self, label: str, start: int, end: int) -> None:
        """What CUPTI says that the driver or the profiler spent."""
        code = self.export.code("ENUM_CUPTI_OVERHEAD_TYPE", label)
        names = {"nameId": self.export.string(label.partition(" (")[0]), "overheadType": code}
        self._add("CUPTI_ACTIVITY_KIND_OVERHEAD", start=start, end=end, **names)

    def profiler_overhead(self, name: str, start: int, end: int, label: str = "Undefined") -> None:
        """What nsys says that it spent; old versions tell the cause by name alone."""
        code = self.export.code("ENUM_CUPTI_OVERHEAD_TYPE", label)
        names = {"nameId": self.export.string(name), "overheadType": code}
        self._add("PROFILER_OVERHEAD", start=start, end=end, **names)

    # ---- NVTX ----------------------------------------------------------------------------------------------------

    def range(
        self,
        text: str | bytes | None,
        start: int,
        end: int | None,
        *,
        domain: int = 0,
        by_id: bool = False,
        **more: Any,
    ) -> None:
        """A push/pop range; one without an end was still open. The text is inline, or by id as NVTX registers it."""
        self._nvtx("NvtxPushPopRange", text, start, end, domain, by_id=by_id, **more)

    def category(self, number: int, name: str, domain: int = 0) -> None:
        self._nvtx("NvtxCategory", name, 0, None, domain, category=number)

    def start_end(self, text: str, start: int, end: int | None, ends_on: Thread | None = None) -> None:
        ended = None if ends_on is None else ends_on.global_tid
        self._nvtx("NvtxStartEndRange", text, start, end, 0, ends_on=ended)

    def mark(self, text: str, at: int) -> None:
        self._nvtx("NvtxMark", text, at, None, 0)

    def domain(self, number: int, name: str | bytes) -> None:
        self._nvtx("NvtxDomainCreate", name, 0, None, number)

    def _nvtx(
        self,
        kind: str,
        text: str | bytes | None,
        start: int,
        end: int | None,
        domain: int,
        *,
        by_id: bool = False,
        ends_on: int | None = None,
        **more: Any,
    ) -> None:
        self._add(
            "NVTX_EVENTS",
            start=start,
            end=end,
            eventType=self.export.code("ENUM_NSYS_EVENT_TYPE", kind),
            text=None if by_id else text,
            textId=self.export.string(text) if by_id and text is not None else None,
            domainId=domain,
            endGlobalTid=ends_on,
            **more,
        )

    # ---- operating system ----------------------------------------------------------------------------------------

    def os_call(self, name: str, start: int, end: int, *frames: str, nesting: int = 0, stack: int = 0) -> None:
        """An OS runtime call, with the frames of its stack (leaf first) or the id of a stack, if it has one."""
        name_id = self.export.string(name)
        if frames:
            stack = len(self.export.rows.get("OSRT_CALLCHAINS", ())) + 1
            self.export.insert_stack("OSRT_CALLCHAINS", stack, *frames)
        self._add("OSRT_API", start=start, end=end, nameId=name_id, nestingLevel=nesting, callchainId=stack)

    def off_cpu(self, start: int, end: int, *, cpu: int = 0, state: str = "Unknown") -> None:
        """Two context switches: the thread leaves its core and comes back to it."""
        self.switch(start, is_in=False, cpu=cpu, state=state)
        self.switch(end, is_in=True, cpu=cpu)

    def on_cpu(self, start: int, end: int, *, cpu: int = 0) -> None:
        """Two context switches: the thread gets a core and leaves it."""
        self.switch(start, is_in=True, cpu=cpu)
        self.switch(end, is_in=False, cpu=cpu)

    def switch(
        self, at: int, *, is_in: bool, cpu: int = 0, state: str = "Unknown", blocked_on: str | None = None
    ) -> None:
        """A context switch. Real exports say 'Unknown' of every state where the system tells none."""
        self._add(
            "SCHED_EVENTS",
            start=at,
            cpu=cpu,
            isSchedIn=int(is_in),
            threadState=self.export.code("ENUM_SAMPLING_THREAD_STATE", state),
            threadBlock=blocked_on and self.export.code("ENUM_SCHEDULING_THREAD_BLOCK", blocked_on),
        )

    def sample(self, at: int, *frames: str) -> None:
        """A sampled stack, leaf first."""
        sample_id = len(self.export.rows.get("COMPOSITE_EVENTS", ())) + 1
        self._add("COMPOSITE_EVENTS", id=sample_id, start=at)
        self.export.insert_stack("SAMPLING_CALLCHAINS", sample_id, *frames)

    def _add(self, table: str, **row: Any) -> None:
        self.export.insert(table, globalTid=self.global_tid, **row)


def _empty(declaration: str) -> int | str | None:
    if "NOT NULL" not in declaration:
        return None
    return "" if "TEXT" in declaration else 0


def _only(row: dict[str, Any], columns: dict[str, str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name in columns}
