"""What one source recorded, as arrays, each loaded when first asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case, Source
from diag.timeline import gpu_work
from diag.timeline.gpu_work import Calls, GpuOps
from diag.timeline.ranges import Ranges, load_ranges

Rows = dict[str, NDArray[np.int64]]
"""Columns of rows of many threads, sorted by thread and time."""


@dataclass(frozen=True)
class ProcessRow:
    id: int
    pid: int
    name: str | None


@dataclass(frozen=True)
class ThreadRow:
    id: int
    process_id: int
    tid: int
    name: str | None


class Recordings:
    def __init__(self, case: Case, source: Source) -> None:
        self.case = case
        self.source = source
        self._details: dict[str, gpu_work.Column] = {}

    @property
    def sources(self) -> Sequence[Source]:
        """The sources that recorded it; several of them are joined on the clock of the first."""
        return [self.source]

    @property
    def clock_error_ns(self) -> int:
        """By how much the clocks of joined sources may still differ."""
        return 0

    def recorded_as(self, thread_id: int) -> Sequence[tuple[int, int]]:
        """Source and thread of the rows of a thread in the case; several where joined sources recorded it."""
        return [(self.source.id, thread_id)]

    @cached_property
    def processes(self) -> Mapping[int, ProcessRow]:
        return {row[0]: ProcessRow(*row) for row in self.case.db.execute(_PROCESSES, (self.source.id,))}

    @cached_property
    def threads(self) -> Sequence[ThreadRow]:
        """In the order of their ids."""
        return [ThreadRow(*row) for row in self.case.db.execute(_THREADS, (self.source.id,))]

    def pid_of(self, thread: ThreadRow) -> int:
        return self.processes[thread.process_id].pid

    # ---- CUDA ----------------------------------------------------------------------------------------------------

    @cached_property
    def ops(self) -> list[GpuOps]:
        """The operations of each (process, device)."""
        return gpu_work.load_ops(self.case, self.source.id)

    def details(self, ops: GpuOps, *names: str) -> tuple[gpu_work.Column, ...]:
        """Further columns of operations (`gpu_work.DETAIL_COLUMNS`), in parallel with them; NONE is NULL."""
        if missing := [name for name in names if name not in self._details]:
            self._details |= gpu_work.load_details(self.case, self.source.id, missing)
        at = np.searchsorted(self._details["id"], ops.id) if names else np.empty(0, np.int64)
        return tuple(self._details[name][at] for name in names)

    @cached_property
    def calls(self) -> Calls:
        return gpu_work.load_calls(self.case, self.source.id)

    @cached_property
    def blocking(self) -> NDArray[np.bool_]:
        """Of each call whether its copy, from or to pageable memory, keeps the thread."""
        return gpu_work.blocking_calls(self.ops, self.calls)

    def place_of_calls(self, process_id: int, thread_id: int | None = None) -> slice:
        """Where the calls of a process, or of one of its threads, stand in `calls`."""
        first, stop = np.searchsorted(self.calls.process_id, [process_id, process_id + 1])
        if thread_id is not None:
            first, stop = first + np.searchsorted(self.calls.thread_id[first:stop], [thread_id, thread_id + 1])
        return slice(int(first), int(stop))

    # ---- host ----------------------------------------------------------------------------------------------------

    @cached_property
    def ranges(self) -> Ranges:
        return load_ranges(self.case, self.source.id)

    @cached_property
    def os_calls(self) -> Rows:
        return self._rows(_OS_CALLS, "thread_id", "start_ns", "end_ns", "name_id", "stack_id")

    @cached_property
    def switches(self) -> Rows:
        return self._rows(_SWITCHES, "thread_id", "time_ns", "is_in", "cpu", "state")

    @cached_property
    def samples(self) -> Rows:
        return self._rows(_SAMPLES, "thread_id", "time_ns", "stack_id")

    def _rows(self, sql: str, *columns: str) -> Rows:
        return self.case.arrays(sql.format(source_id=self.source.id), dict.fromkeys(columns, "i8"))


_PROCESSES = "SELECT id, pid, name FROM process WHERE source_id = ?"
_THREADS = """
    SELECT t.id, t.process_id, t.tid, t.name
      FROM thread t JOIN process p ON p.id = t.process_id
     WHERE p.source_id = ?
     ORDER BY t.id
"""
_OS_CALLS = """
    SELECT thread_id, start_ns, end_ns, name_id, COALESCE(stack_id, -1) AS stack_id
      FROM os_call
     WHERE source_id = {source_id:d}
     ORDER BY thread_id, start_ns, end_ns DESC
"""
# Of switches out and in at one time, which no real thread has, the order of rows must not decide.
_SWITCHES = """
    SELECT thread_id, time_ns, is_in, COALESCE(cpu, -1) AS cpu,
           CASE state WHEN 'runnable' THEN 1 WHEN 'blocked' THEN 0 ELSE -1 END AS state
      FROM sched
     WHERE source_id = {source_id:d}
     ORDER BY thread_id, time_ns, is_in
"""
_SAMPLES = """
    SELECT thread_id, time_ns, COALESCE(stack_id, -1) AS stack_id
      FROM cpu_sample
     WHERE source_id = {source_id:d}
     ORDER BY thread_id, time_ns
"""
