"""One source of a case as a timeline: its devices and host threads, loaded when first asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diag.model.hardware import Gpu, gpu
from diag.store.case import Case, Source
from diag.timeline import configurations, gpu_work
from diag.timeline.configurations import Configurations
from diag.timeline.counters import Counters
from diag.timeline.dependencies import Dependencies, EventWaits, dependencies_of, load_event_waits, load_host_waits
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import Calls, GpuOps
from diag.timeline.graphs import GRAPH_LAUNCH, capturing
from diag.timeline.host import GilStates, HostThread, Index, OsCalls, Samples, Switches
from diag.timeline.idle import IdleAccount, account_for_idle
from diag.timeline.intervals import Intervals, Times, union_of_all
from diag.timeline.naming import where_named
from diag.timeline.ranges import KINDS, OPEN_NS, Ranges, load_ranges
from diag.timeline.startup import ONE_TIME_CALL, ONE_TIME_OVERHEAD, Startup, find_startup
from diag.timeline.streams import Stream, load_streams


class Hardware(NamedTuple):
    """What a device of a process is; None: the trace does not say, or it is a whole GPU."""

    uuid: str | None
    name: str | None
    mig_instance: str | None


def _hardware(uuid: str | None, name: str | None, mig_instance: str | None) -> Hardware:
    """A slice of a GPU is called one, also where the driver's name does not say so."""
    if mig_instance is not None and "MIG" not in (name or ""):
        name = f"{name or 'GPU'} (MIG {mig_instance.removeprefix('MIG-')})"
    return Hardware(uuid, name, mig_instance)


WAITING_FOR_GIL, HOLDING_GIL = "Waiting for GIL", "Holding GIL"
"""Ranges of the NVTX domain 'GIL Trace', in which nsys (--trace=python-gil) records the states of Python threads."""


@dataclass(frozen=True, eq=False)
class Overhead:
    """Overhead rows of one process in parallel arrays, sorted by start."""

    start_ns: Times
    end_ns: Times
    thread_id: Index
    name_id: Index  # or NONE

    def union(self, which: NDArray[np.bool_] | slice = slice(None)) -> Intervals:
        return Intervals.union_of(self.start_ns[which], self.end_ns[which])


@dataclass(frozen=True)
class ThreadRow:
    id: int
    process_id: int
    tid: int
    name: str | None


class Trace:
    """The timeline of one source.

    A `scope`, set before the devices are asked for, narrows every window to a set of time on the source's clock.
    """

    def __init__(self, case: Case, source: Source, scope: Intervals | None = None) -> None:
        self.case = case
        self.source = source
        self.scope = scope
        self.range_name: str | None = None  # of the ranges that the scope was made of
        self._idle: dict[tuple[int, int], IdleAccount] = {}
        self._startup: dict[tuple[int, int], Startup] = {}
        self._unrecorded: dict[int, Calls] = {}
        self._details: dict[str, gpu_work.Column] = {}
        self._configurations: dict[tuple[int, int], Configurations] = {}
        self._dependencies: dict[tuple[int, int], Dependencies] = {}

    @property
    def names(self) -> Mapping[int, str]:
        return self.case.names

    @property
    def patterns(self) -> Mapping[int, str]:
        return self.case.patterns

    @property
    def tick_ns(self) -> int:
        return self.source.time_resolution_ns

    @property
    def sources(self) -> Sequence[Source]:
        """The sources that the trace is made of; several of them are joined on the clock of the first."""
        return [self.source]

    @property
    def clock_error_ns(self) -> int:
        """By how much the clocks of joined sources may still differ."""
        return 0

    def recorded_as(self, thread_id: int) -> Sequence[tuple[int, int]]:
        """Source and thread of the rows of a thread in the case; several where joined sources recorded it."""
        return [(self.source.id, thread_id)]

    # ---- devices -------------------------------------------------------------------------------------------------

    @cached_property
    def devices(self) -> list[DeviceTimeline]:
        """Every (process, device) with GPU work in scope."""
        busy_of = [(self._hardware(part).uuid, int(part.process_id[0]), part.union()) for part in self._ops]
        timelines = []
        for part in self._ops:
            uuid, process_id = self._hardware(part).uuid, int(part.process_id[0])
            others = [
                (other, busy) for other_uuid, other, busy in busy_of if other_uuid == uuid and other != process_id
            ]
            if timeline := self._device(part, process_id, others if uuid is not None else []):
                timelines.append(timeline)
        return timelines

    @cached_property
    def _ops(self) -> list[GpuOps]:
        """The operations of each (process, device)."""
        return gpu_work.load_ops(self.case, self.source.id)

    def _device(self, ops: GpuOps, process_id: int, others: Sequence[tuple[int, Intervals]]) -> DeviceTimeline | None:
        """`others`: other processes with work on the same hardware, and when."""
        hardware = self._hardware(ops)
        calls = self._calls_of(process_id)
        all_ops, all_launch = ops, gpu_work.launches_of(ops, calls)
        window, launch = Intervals.single(int(ops.start_ns[0]), int(ops.end_ns.max())), all_launch
        if self.scope is not None:
            inside = self.scope.measure_within(ops.start_ns, ops.end_ns) > 0
            ops, launch = ops.select(inside), all_launch[inside]
            window = window & self.scope
            if not len(ops) or not window:
                return None
        pid, name = self._processes[process_id]
        return DeviceTimeline(
            source_id=self.source.id,
            process_id=process_id,
            pid=pid,
            process_name=name,
            device=int(ops.device[0]),
            uuid=hardware.uuid,
            hardware=hardware.name,
            names=self.names,
            ops=ops,
            calls=calls,
            launch=launch,
            all_ops=all_ops,
            all_launch=all_launch,
            window=window,
            is_scoped=self.scope is not None,
            range_name=self.range_name,
            others=union_of_all(busy for _, busy in others),
            other_pids=tuple(sorted({self._processes[other][0] for other, _ in others})),
            mig_instance=hardware.mig_instance,
            host_span=self._host_span(process_id) or window.span,
        )

    def details(self, ops: GpuOps, *names: str) -> tuple[gpu_work.Column, ...]:
        """Further columns of these operations (`gpu_work.DETAIL_COLUMNS`), in parallel with them; NONE is NULL."""
        if missing := [name for name in names if name not in self._details]:
            self._details |= gpu_work.load_details(self.case, self.source.id, missing)
        at = np.searchsorted(self._details["id"], ops.id) if names else np.empty(0, np.int64)
        return tuple(self._details[name][at] for name in names)

    def dependencies_of(self, device: DeviceTimeline) -> Dependencies:
        """What the operations of a device, in the whole trace, had to wait for; worked out once."""
        key = (device.process_id, device.device)
        if key not in self._dependencies:
            self._dependencies[key] = dependencies_of(device, self.contexts_of(device), self._event_waits)
        return self._dependencies[key]

    def contexts_of(self, device: DeviceTimeline) -> gpu_work.Column:
        """The context of each of a device's operations; that of nearly all programs is the only one there is."""
        known = self.case.rows(_CONTEXTS, (device.process_id, device.device))
        if len(known) == 1:
            return np.full(len(device.all_ops), known[0]["context"], np.int64)
        return self.details(device.all_ops, "context")[0]

    @cached_property
    def _event_waits(self) -> EventWaits:
        return load_event_waits(self.case, self.source.id)

    @cached_property
    def waited_for_by_host(self) -> gpu_work.Column:
        """Ids of the operations that a host thread waited for."""
        return load_host_waits(self.case, self.source.id)

    def streams_of(self, process_id: int) -> Mapping[tuple[int, int], Stream]:
        """What the trace says of the streams of a process, by context and stream."""
        return load_streams(self.case, process_id)

    @cached_property
    def most_local_bytes(self) -> int | None:
        """Largest local memory per thread of any kernel; None where it was not captured."""
        most: int | None = self.case.value(_MOST_LOCAL, (self.source.id,))
        return most

    @cached_property
    def _calls(self) -> Calls:
        return gpu_work.load_calls(self.case, self.source.id)

    @cached_property
    def _blocking(self) -> NDArray[np.bool_]:
        return gpu_work.blocking_calls(self._ops, self._calls)

    def _calls_of(self, process_id: int) -> Calls:
        first, stop = np.searchsorted(self._calls.process_id, [process_id, process_id + 1])
        return self._calls.select(slice(first, stop))

    def _host_span(self, process_id: int) -> tuple[int, int] | None:
        """First start and last end of the calls, OS calls and closed ranges of a process."""
        calls = self._calls_of(process_id)
        starts, ends = [calls.start_ns], [calls.end_ns]
        for thread in self.threads.values():
            if thread.process_id == process_id:
                closed = thread.all_ranges.end_ns != OPEN_NS
                starts += [thread.all_ranges.start_ns, thread.os_calls.start_ns]
                ends += [thread.all_ranges.end_ns[closed], thread.os_calls.end_ns]
        firsts = [int(column.min()) for column in starts if len(column)]
        lasts = [int(column.max()) for column in ends if len(column)]
        return (min(firsts), max(lasts)) if firsts and lasts else None

    @cached_property
    def _processes(self) -> Mapping[int, tuple[int, str | None]]:
        sql = "SELECT id, pid, name FROM process WHERE source_id = ?"
        return {row["id"]: (row["pid"], row["name"]) for row in self.case.rows(sql, (self.source.id,))}

    def _hardware(self, ops: GpuOps) -> Hardware:
        return self._device_names.get((int(ops.process_id[0]), int(ops.device[0])), Hardware(None, None, None))

    @cached_property
    def _device_names(self) -> Mapping[tuple[int, int], Hardware]:
        rows = self.case.rows(_DEVICE_NAMES, (self.source.id,))
        return {(row["process_id"], row["ordinal"]): _hardware(row["uuid"], row["name"], row["mig"]) for row in rows}

    @cached_property
    def event_span(self) -> tuple[int, int]:
        """Start of the earliest and end of the latest operation, CUDA call, range or OS call; (0, 0) without any."""
        starts, ends = zip(*self.case.db.execute(_EVENT_SPANS, {"source": self.source.id}), strict=True)
        closed = self.ranges.end_ns[self.ranges.end_ns != OPEN_NS]
        if len(self.ranges):
            starts = (*starts, int(self.ranges.start_ns.min()))
            ends = (*ends, int(np.max(closed, initial=int(self.ranges.start_ns.max()))))
        return (
            min((start for start in starts if start is not None), default=0),
            max((end for end in ends if end is not None), default=0),
        )

    def gpu_of(self, device: DeviceTimeline) -> Gpu:
        """What is known about the hardware behind a device."""
        rows = self.case.rows(_DEVICE_FACTS, (device.process_id, device.device))
        return gpu(dict(rows[0]) if rows else {})

    def configurations_of(self, device: DeviceTimeline) -> Configurations:
        """How the kernels of a device were launched; loaded once."""
        key = (device.process_id, device.device)
        if key not in self._configurations:
            columns = self.details(device.ops, *configurations.COLUMNS)
            self._configurations[key] = configurations.configurations_of(device.ops, columns)
        return self._configurations[key]

    def idle_of(self, device: DeviceTimeline) -> IdleAccount:
        key = (device.process_id, device.device)
        if key not in self._idle:
            self._idle[key] = account_for_idle(device)
        return self._idle[key]

    def unrecorded_graph_launches(self, device: DeviceTimeline) -> Calls:
        """Launches of graphs in the window of which no operation was recorded, on none of the process' devices.

        Not those that failed or that put their graph into another one that is being captured, for they ran nothing.
        """
        if device.process_id not in self._unrecorded:
            self._unrecorded[device.process_id] = self._unrecorded_graph_launches(device.process_id)
        launches = self._unrecorded[device.process_id]
        return launches.select(device.window.contains(launches.start_ns))

    def _unrecorded_graph_launches(self, process_id: int) -> Calls:
        calls = self._calls_of(process_id)
        calls = calls.select(
            where_named(GRAPH_LAUNCH, calls.name_id, self.names) & (calls.correlation != gpu_work.NONE)
        )
        if not len(calls):
            return calls
        recorded = [ops.correlation for ops in self._ops if ops.process_id[0] == process_id]
        failed = [number for (number,) in self.case.db.execute(_FAILED_CALLS, (self.source.id, process_id))]
        calls = calls.select(~np.isin(calls.correlation, np.concatenate([np.array(failed, np.int64), *recorded])))
        for thread_id in np.unique(calls.thread_id).tolist():
            captured = capturing(self._calls_of_thread(process_id, thread_id), self.names).contains(calls.start_ns)
            calls = calls.select(~(captured & (calls.thread_id == thread_id)))
        _, first = np.unique(calls.correlation, return_index=True)  # of nested calls of one launch the outermost
        return calls.select(np.sort(first))

    def startup_of(self, device: DeviceTimeline) -> Startup:
        key = (device.process_id, device.device)
        if key not in self._startup:
            self._startup[key] = find_startup(device, *self._one_time_work(device))
        return self._startup[key]

    def _one_time_work(self, device: DeviceTimeline) -> tuple[Times, Times]:
        """Starts and ends of what the device's process did once, as calls and as work that the driver reported."""
        once = device.calls.select(where_named(ONE_TIME_CALL, device.calls.name_id, self.names))
        rows = [self.overhead_rows(device.process_id, kind) for kind in ONE_TIME_OVERHEAD]
        starts, ends = zip((once.start_ns, once.end_ns), *rows, strict=True)
        return np.concatenate(starts), np.concatenate(ends)

    @cached_property
    def counters(self) -> Counters:
        return Counters(self.case, self.source.id)

    # ---- host ----------------------------------------------------------------------------------------------------

    @cached_property
    def ranges(self) -> Ranges:
        return load_ranges(self.case, self.source.id)

    @cached_property
    def threads(self) -> Mapping[int, HostThread]:
        """Every thread of the source that has events, by thread id."""
        return {row.id: self._thread(row) for row in self.thread_rows()}

    def _thread(self, row: ThreadRow) -> HostThread:
        ranges, gil = self._without_gil(self._ranges_of(row.id))
        return HostThread(
            thread_id=row.id,
            process_id=row.process_id,
            tid=row.tid,
            name=row.name,
            names=self.names,
            patterns=self.patterns,
            all_ranges=ranges,
            calls=self._calls_of_thread(row.process_id, row.id),
            os_calls=self._os_calls_of(row.id),
            switches=self._switches_of(row.id),
            samples=self._samples_of(row.id),
            gil=gil,
            blocking_copies=self._blocking_copies_of(row.process_id, row.id),
        )

    def thread_rows(self) -> Sequence[ThreadRow]:
        """The threads of the source, by id."""
        return [ThreadRow(*row) for row in self.case.db.execute(_THREADS, (self.source.id,))]

    @cached_property
    def main_thread(self) -> int | None:
        """The thread that launches most; without launches the one that best shows the program at work.

        Operators, annotations and NVTX ranges tell more than Python frames, of which every idle thread has some; then
        a process' first thread, the time it was recorded, and its samples.
        """
        if len(self._calls):
            threads, counts = np.unique(self._calls.thread_id, return_counts=True)
            return int(threads[np.argmax(counts)])
        weight = {thread.thread_id: self._weight(thread) for thread in self.threads.values()}
        return max(weight, key=lambda thread_id: weight[thread_id], default=None)

    def _weight(self, thread: HostThread) -> tuple[int, bool, int, int]:
        told = thread.ranges.kind != KINDS.index("python")
        is_first = thread.tid == self._processes[thread.process_id][0]
        return int(told.sum()), is_first, thread.recorded.measure_ns, len(thread.samples.time_ns)

    def process_of(self, thread_id: int) -> tuple[int, str | None]:
        """pid and name of a thread's process."""
        return self._processes[self.threads[thread_id].process_id]

    def pid_of(self, process_id: int) -> int:
        return self._processes[process_id][0]

    def overhead_rows(self, process_id: int, kind: str) -> tuple[Times, Times]:
        """Starts and ends of a process' overhead rows of one kind, by start."""
        overhead = self.overhead_of(process_id, kind)
        return overhead.start_ns, overhead.end_ns

    def overhead_of(self, process_id: int, kind: str) -> Overhead:
        """A process' overhead rows of one kind, by start."""
        rows = self.case.db.execute(_OVERHEAD, (self.source.id, process_id, kind)).fetchall()
        columns = np.array(rows, np.int64).reshape(-1, 4)
        return Overhead(*(columns[:, i] for i in range(4)))

    def overhead_on(self, thread_id: int, *kinds: str) -> Intervals:
        """Union of a thread's overhead rows of some kinds."""
        rows = self.case.db.execute(_OVERHEAD_ON, (self.source.id, thread_id, json.dumps(kinds))).fetchall()
        times_ns = np.array(rows, np.int64).reshape(-1, 2)
        return Intervals.union_of(times_ns[:, 0], times_ns[:, 1])

    def _calls_of_thread(self, process_id: int, thread_id: int) -> Calls:
        return self._calls.select(self._place_of_calls(process_id, thread_id))

    def _blocking_copies_of(self, process_id: int, thread_id: int) -> Intervals:
        place = self._place_of_calls(process_id, thread_id)
        calls = self._calls.select(place)
        return Intervals.union_of(calls.start_ns[self._blocking[place]], calls.end_ns[self._blocking[place]])

    def _place_of_calls(self, process_id: int, thread_id: int) -> slice:
        first, stop = np.searchsorted(self._calls.process_id, [process_id, process_id + 1])
        of_thread = np.searchsorted(self._calls.thread_id[first:stop], [thread_id, thread_id + 1])
        return slice(*(first + of_thread).tolist())

    def _ranges_of(self, thread_id: int) -> Ranges:
        first, stop = np.searchsorted(self.ranges.thread_id, [thread_id, thread_id + 1])
        return self.ranges.select(slice(first, stop))

    def _without_gil(self, ranges: Ranges) -> tuple[Ranges, GilStates | None]:
        """The ranges of a thread without those that only say whether it had the GIL, and what these say."""
        if not self._gil_names:
            return ranges, None
        of = [ranges.name_id == self._gil_names.get(text, gpu_work.NONE) for text in (WAITING_FOR_GIL, HOLDING_GIL)]
        waiting, holding = (Intervals.union_of(ranges.start_ns[which], ranges.end_ns[which]) for which in of)
        return ranges.select(~(of[0] | of[1])), GilStates(waiting, holding)

    @cached_property
    def _gil_names(self) -> Mapping[str, int]:
        """Ids of the names that nsys gives to a thread's states of the GIL; none when they were not traced."""
        ids = {row["text"]: row["id"] for row in self.case.rows(_GIL_NAMES, (WAITING_FOR_GIL, HOLDING_GIL))}
        return ids if ids and np.isin(self.ranges.name_id, list(ids.values())).any() else {}

    def _os_calls_of(self, thread_id: int) -> OsCalls:
        columns = _rows_of(self._os_calls, thread_id)
        return OsCalls(columns["start_ns"], columns["end_ns"], columns["name_id"], columns["stack_id"])

    def _samples_of(self, thread_id: int) -> Samples:
        columns = _rows_of(self._samples, thread_id)
        return Samples(columns["time_ns"], columns["stack_id"])

    def _switches_of(self, thread_id: int) -> Switches | None:
        if not self.source.has("sched"):
            return None
        columns = _rows_of(self._switches, thread_id)
        return Switches(columns["time_ns"], columns["is_in"], columns["cpu"], columns["state"])

    @cached_property
    def _os_calls(self) -> dict[str, Index]:
        return self.case.arrays(_OS_CALLS.format(source_id=self.source.id), _OS_CALLS_COLUMNS)

    @cached_property
    def _switches(self) -> dict[str, Index]:
        return self.case.arrays(_SWITCHES.format(source_id=self.source.id), _SWITCHES_COLUMNS)

    @cached_property
    def _samples(self) -> dict[str, Index]:
        return self.case.arrays(_SAMPLES.format(source_id=self.source.id), _SAMPLES_COLUMNS)


def _rows_of(columns: dict[str, Index], thread_id: int) -> dict[str, Index]:
    first, stop = np.searchsorted(columns["thread_id"], [thread_id, thread_id + 1])
    return {name: column[first:stop] for name, column in columns.items()}


_EVENT_SPANS = """
    SELECT MIN(start_ns), MAX(end_ns) FROM gpu_op WHERE source_id = :source
    UNION ALL SELECT MIN(start_ns), MAX(end_ns) FROM api_call WHERE source_id = :source
    UNION ALL SELECT MIN(start_ns), MAX(end_ns) FROM os_call WHERE source_id = :source
"""
_FAILED_CALLS = """
    SELECT a.correlation
      FROM api_call a JOIN thread t ON t.id = a.thread_id
     WHERE a.source_id = ? AND t.process_id = ? AND a.status <> 0 AND a.correlation IS NOT NULL
"""
_DEVICE_NAMES = """
    SELECT pd.process_id, pd.ordinal, d.uuid, d.name, d.mig_instance AS mig
      FROM process_device pd
      JOIN process p ON p.id = pd.process_id
      LEFT JOIN device d ON d.id = pd.device_id
     WHERE p.source_id = ?
"""
_DEVICE_FACTS = """
    SELECT d.* FROM process_device pd JOIN device d ON d.id = pd.device_id WHERE pd.process_id = ? AND pd.ordinal = ?
"""
_MOST_LOCAL = "SELECT MAX(local_per_thread_bytes) FROM gpu_op WHERE source_id = ?"
_THREADS = """
    SELECT t.id, t.process_id, t.tid, t.name
      FROM thread t JOIN process p ON p.id = t.process_id
     WHERE p.source_id = ?
     ORDER BY t.id
"""
_CONTEXTS = "SELECT context FROM context WHERE process_id = ? AND device = ?"
_GIL_NAMES = "SELECT id, text FROM name WHERE text IN (?, ?)"
_OS_CALLS_COLUMNS = {"thread_id": "i8", "start_ns": "i8", "end_ns": "i8", "name_id": "i8", "stack_id": "i8"}
_OS_CALLS = """
    SELECT thread_id, start_ns, end_ns, name_id, COALESCE(stack_id, -1) AS stack_id
      FROM os_call
     WHERE source_id = {source_id:d}
     ORDER BY thread_id, start_ns, end_ns DESC
"""
_SWITCHES_COLUMNS = {"thread_id": "i8", "time_ns": "i8", "is_in": "i8", "cpu": "i8", "state": "i8"}
_SWITCHES = """
    SELECT thread_id, time_ns, is_in, COALESCE(cpu, -1) AS cpu,
           CASE state WHEN 'runnable' THEN 1 WHEN 'blocked' THEN 0 ELSE -1 END AS state
      FROM sched
     WHERE source_id = {source_id:d}
     ORDER BY thread_id, time_ns
"""
_SAMPLES_COLUMNS = {"thread_id": "i8", "time_ns": "i8", "stack_id": "i8"}
_SAMPLES = """
    SELECT thread_id, time_ns, COALESCE(stack_id, -1) AS stack_id
      FROM cpu_sample
     WHERE source_id = {source_id:d}
     ORDER BY thread_id, time_ns
"""
_OVERHEAD_ON = """
    SELECT start_ns, end_ns
      FROM overhead
     WHERE source_id = ? AND thread_id = ? AND kind IN (SELECT value FROM json_each(?))
     ORDER BY start_ns
"""
_OVERHEAD = """
    SELECT o.start_ns, o.end_ns, o.thread_id, COALESCE(o.name_id, -1)
      FROM overhead o JOIN thread t ON t.id = o.thread_id
     WHERE o.source_id = ? AND t.process_id = ? AND o.kind = ?
     ORDER BY o.start_ns
"""
