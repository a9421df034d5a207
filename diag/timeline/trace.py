"""One source of a case as a timeline: its devices and host threads, and what is worked out about each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from diag.model.hardware import Gpu, gpu
from diag.store.case import Case, Source
from diag.timeline import configurations, gpu_work
from diag.timeline.configurations import Configurations
from diag.timeline.counters import Counters
from diag.timeline.dependencies import Dependencies, EventWaits, dependencies_of, load_event_waits, load_host_waits
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import Calls, GpuOps
from diag.timeline.graphs import unrecorded_launches
from diag.timeline.host import HostThread
from diag.timeline.host_threads import host_threads, main_thread
from diag.timeline.idle import IdleAccount, account_for_idle
from diag.timeline.intervals import Intervals, union_of_all
from diag.timeline.overhead import Overhead, load_overhead
from diag.timeline.ranges import OPEN_NS, Ranges
from diag.timeline.recordings import ProcessRow, Recordings
from diag.timeline.startup import ONE_TIME_OVERHEAD, Startup, find_startup
from diag.timeline.streams import Stream, load_streams


class Hardware(NamedTuple):
    """What a device of a process is; None: the trace does not say, or it is a whole GPU."""

    uuid: str | None
    name: str | None
    mig_instance: str | None


class Trace:
    """The timeline of one source, or of several that are joined (`timeline/joined.py`).

    A `scope`, set before the devices are asked for, narrows every window to a set of time on the source's clock.
    """

    def __init__(
        self, case: Case, source: Source, scope: Intervals | None = None, recorded: Recordings | None = None
    ) -> None:
        self.case = case
        self.recorded = recorded or Recordings(case, source)
        self.scope = scope
        self.range_name: str | None = None  # of the ranges that the scope was made of

    @property
    def source(self) -> Source:
        return self.recorded.source

    @property
    def sources(self) -> Sequence[Source]:
        return self.recorded.sources

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
    def clock_error_ns(self) -> int:
        return self.recorded.clock_error_ns

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

    # ---- devices -------------------------------------------------------------------------------------------------

    @cached_property
    def devices(self) -> list[DeviceTimeline]:
        """Every (process, device) with GPU work in scope."""
        busy_of = [(self._hardware(part).uuid, int(part.process_id[0]), part.union()) for part in self.recorded.ops]
        timelines = []
        for part in self.recorded.ops:
            uuid, process_id = self._hardware(part).uuid, int(part.process_id[0])
            others = [
                (other, busy) for other_uuid, other, busy in busy_of if other_uuid == uuid and other != process_id
            ]
            if timeline := self._device(part, process_id, others if uuid is not None else []):
                timelines.append(timeline)
        return timelines

    def _device(self, ops: GpuOps, process_id: int, others: Sequence[tuple[int, Intervals]]) -> DeviceTimeline | None:
        """`others`: other processes with work on the same hardware, and when."""
        hardware, process = self._hardware(ops), self.recorded.processes[process_id]
        calls = self.recorded.calls.select(self.recorded.place_of_calls(process_id))
        all_ops, all_launch = ops, gpu_work.launches_of(ops, calls)
        window, launch = Intervals.single(int(ops.start_ns[0]), int(ops.end_ns.max())), all_launch
        if self.scope is not None:
            inside = self.scope.measure_within(ops.start_ns, ops.end_ns) > 0
            ops, launch = ops.select(inside), all_launch[inside]
            window = window & self.scope
            if not len(ops) or not window:
                return None
        return DeviceTimeline(
            source_id=self.source.id,
            process_id=process_id,
            pid=process.pid,
            process_name=process.name,
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
            other_pids=tuple(sorted({self.recorded.processes[other].pid for other, _ in others})),
            mig_instance=hardware.mig_instance,
            host_span=self._host_span(process_id, calls) or window.span,
        )

    def _host_span(self, process_id: int, calls: Calls) -> tuple[int, int] | None:
        """First start and last end of the calls, OS calls and closed ranges of a process."""
        starts, ends = [calls.start_ns], [calls.end_ns]
        for thread in self.threads.values():
            if thread.process_id == process_id:
                closed = thread.all_ranges.end_ns != OPEN_NS
                starts += [thread.all_ranges.start_ns, thread.os_calls.start_ns]
                ends += [thread.all_ranges.end_ns[closed], thread.os_calls.end_ns]
        firsts = [int(column.min()) for column in starts if len(column)]
        lasts = [int(column.max()) for column in ends if len(column)]
        return (min(firsts), max(lasts)) if firsts and lasts else None

    def _hardware(self, ops: GpuOps) -> Hardware:
        return self._hardware_of.get((int(ops.process_id[0]), int(ops.device[0])), Hardware(None, None, None))

    @cached_property
    def _hardware_of(self) -> Mapping[tuple[int, int], Hardware]:
        rows = self.case.rows(_DEVICE_NAMES, (self.source.id,))
        return {(row["process_id"], row["ordinal"]): _hardware(row["uuid"], row["name"], row["mig"]) for row in rows}

    # ---- what is worked out about a device, once -----------------------------------------------------------------

    def details(self, ops: GpuOps, *names: str) -> tuple[gpu_work.Column, ...]:
        """Further columns of these operations (`gpu_work.DETAIL_COLUMNS`), in parallel with them; NONE is NULL."""
        return self.recorded.details(ops, *names)

    def idle_of(self, device: DeviceTimeline) -> IdleAccount:
        return device.once("idle", partial(account_for_idle, device))

    def startup_of(self, device: DeviceTimeline) -> Startup:
        return device.once("startup", partial(self._startup, device))

    def _startup(self, device: DeviceTimeline) -> Startup:
        return find_startup(device, self.overhead_of(device.process_id, *ONE_TIME_OVERHEAD))

    def configurations_of(self, device: DeviceTimeline) -> Configurations:
        """How the kernels of a device were launched."""
        return device.once("configurations", partial(self._configurations, device))

    def _configurations(self, device: DeviceTimeline) -> Configurations:
        return configurations.configurations_of(device.ops, self.details(device.ops, *configurations.COLUMNS))

    def dependencies_of(self, device: DeviceTimeline) -> Dependencies:
        """What the operations of a device, in the whole trace, had to wait for."""
        return device.once("dependencies", partial(self._dependencies, device))

    def _dependencies(self, device: DeviceTimeline) -> Dependencies:
        return dependencies_of(device, self.contexts_of(device), self._event_waits)

    def unrecorded_graph_launches(self, device: DeviceTimeline) -> Calls:
        """Launches of graphs in the window of which no operation was recorded, on none of the process' devices."""
        launches = device.once("unrecorded graph launches", partial(self._unrecorded_graph_launches, device))
        return launches.select(device.window.contains(launches.start_ns))

    def _unrecorded_graph_launches(self, device: DeviceTimeline) -> Calls:
        ops = (part for part in self.recorded.ops if part.process_id[0] == device.process_id)
        return unrecorded_launches(self.case, device.calls, ops)

    def contexts_of(self, device: DeviceTimeline) -> gpu_work.Column:
        """The context of each of a device's operations; that of nearly all programs is the only one there is."""
        known = self.case.rows(_CONTEXTS, (device.process_id, device.device))
        if len(known) == 1:
            return np.full(len(device.all_ops), known[0]["context"], np.int64)
        return self.details(device.all_ops, "context")[0]

    def gpu_of(self, device: DeviceTimeline) -> Gpu:
        """What is known about the hardware behind a device."""
        rows = self.case.rows(_DEVICE_FACTS, (device.process_id, device.device))
        return gpu(dict(rows[0]) if rows else {})

    # ---- what is known of all of them ----------------------------------------------------------------------------

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
    def counters(self) -> Counters:
        return Counters(self.case, self.source.id)

    def overhead_of(self, process_id: int, *kinds: str) -> Overhead:
        """A process' overhead rows of some kinds, by start."""
        return load_overhead(self.case, self.source.id, process_id, *kinds)

    # ---- host ----------------------------------------------------------------------------------------------------

    @property
    def ranges(self) -> Ranges:
        return self.recorded.ranges

    @cached_property
    def threads(self) -> Mapping[int, HostThread]:
        """Every thread of the source that has events, by thread id."""
        return host_threads(self.recorded)

    @cached_property
    def main_thread(self) -> int | None:
        """The thread that launches most; without launches the one that best shows the program at work."""
        return main_thread(self.recorded, self.threads)

    def process_of(self, thread_id: int) -> ProcessRow:
        return self.recorded.processes[self.threads[thread_id].process_id]


def _hardware(uuid: str | None, name: str | None, mig_instance: str | None) -> Hardware:
    """A slice of a GPU is called one, also where the driver's name does not say so."""
    if mig_instance is not None and "MIG" not in (name or ""):
        name = f"{name or 'GPU'} (MIG {mig_instance.removeprefix('MIG-')})"
    return Hardware(uuid, name, mig_instance)


_EVENT_SPANS = """
    SELECT MIN(start_ns), MAX(end_ns) FROM gpu_op WHERE source_id = :source
    UNION ALL SELECT MIN(start_ns), MAX(end_ns) FROM api_call WHERE source_id = :source
    UNION ALL SELECT MIN(start_ns), MAX(end_ns) FROM os_call WHERE source_id = :source
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
_CONTEXTS = "SELECT context FROM context WHERE process_id = ? AND device = ?"
