"""What only the whole of a Kineto trace tells: who launched what, what processes are called, which devices it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diag.ingest import collectives
from diag.ingest import kineto_statements as sql
from diag.ingest.input_file import instant
from diag.ingest.kineto_metadata import device_row, integer, literal, text
from diag.ingest.kineto_threads import Key, Threads
from diag.store.case import Case


@dataclass(frozen=True, eq=False)
class WholeTrace:
    """A source whose events are all rows. `titles`: by kind of metadata event, process and thread."""

    case: Case
    source_id: int
    threads: Threads
    titles: Mapping[tuple[str, Key, Key], str]

    def use_flows(self, *, is_correlated: bool) -> None:
        """Arrows tell what launched what, where the arguments did not; their table goes in any case."""
        if not is_correlated:
            self._run(sql.INDEX_FLOW)
            self._run(sql.CORRELATE_CALLS)
            self._run(sql.CORRELATE_GPU_OPS)
        self._run("DROP TABLE temp.kineto_flow")

    def settle_processes(self) -> None:
        """Operations belong to the process of the call that launched them, and to the first where that is unknown."""
        if not self.threads.processes:
            self.threads.process(next((pid for kind, pid, _ in self.titles if self._is_host(kind, pid)), 0))
        if len(self.threads.processes) > 1:
            self._run(sql.INDEX_CORRELATION)
            for table in ("gpu_op", "sync"):
                self._run(sql.SETTLE_PROCESS.format(table=table))
            self._run("DROP INDEX kineto_correlation")
        for statement in (
            sql.INSERT_CONTEXTS,
            sql.INSERT_STREAMS,
            sql.INSERT_CUDA_EVENTS,
            collectives.ADOPT_HOST_ROW,
            collectives.DROP_HOST_ROW,
            collectives.SETTLE_PROCESS,
        ):
            self._run(statement)

    def _is_host(self, kind: str, pid: Key) -> bool:
        return kind == "process_labels" and self.titles[kind, pid, 0] == "CPU"

    def add_titles(self) -> None:
        for (kind, pid, tid), title in self.titles.items():
            number = self.threads.number(pid)
            if kind == "process_name":
                self._run(sql.NAME_PROCESS, name=title, pid=number)
            elif kind == "thread_name":
                self._run(sql.NAME_THREAD, name=title, pid=number, tid=self.threads.number(tid))

    def add_devices(self, metadata: Mapping[str, Any]) -> None:
        devices = literal(metadata.get("deviceProperties"))
        rows = [device_row(device) for device in devices] if isinstance(devices, list) else []
        self.case.insert(
            "device", [{"source_id": self.source_id, **row} for row in rows if row["gpu_index"] is not None]
        )
        self._run(sql.INSERT_PROCESS_DEVICES)

    def describe_source(
        self, metadata: Mapping[str, Any], span_ns: tuple[int, int] | None, *, tick_ns: int, is_cut: bool
    ) -> None:
        """`span_ns`: what was recorded, where the trace says."""
        job = literal(metadata.get("distributedInfo"))
        job = job if isinstance(job, dict) else {}
        version = metadata.get("schemaVersion")
        self._run(
            sql.DESCRIBE_SOURCE,
            schema_version=None if version is None else str(version),
            host=text(metadata.get("host_name")),
            rank=integer(job.get("rank")),
            world_size=integer(job.get("world_size")),
            clock_offset_ns=instant(integer(metadata.get("baseTimeNanoseconds"))) or 0,
            time_resolution_ns=tick_ns,
            capture_start_ns=span_ns and span_ns[0],
            capture_end_ns=span_ns and span_ns[1],
        )
        if is_cut:
            self._run(sql.MARK_AS_CUT)

    def _run(self, statement: str, **values: object) -> None:
        self.case.db.execute(statement, {"source": self.source_id, **values})
