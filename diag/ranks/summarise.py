"""Makes the summaries of a trace, one for each of its processes that is a rank of the job. Needs the whole trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diag.ranks.calls import Table, collectives_of
from diag.ranks.summary import Before, Collectives, HostRange, HostTime, KernelTimes, RankCalls, RankSummary, StepTimes
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.explain import cover_by_ranges
from diag.timeline.host import HostThread
from diag.timeline.idle import IdleAccount
from diag.timeline.intervals import Intervals, Times, union_of_all
from diag.timeline.steps import Steps, find_steps
from diag.timeline.trace import Trace

FEWEST_STEPS = 3
LEAST_COVER = 0.5
"""Of steps that ranks are compared by: see `find_steps`."""

_NOTHING: Table = ((), Collectives(np.empty(0, np.int32), np.empty(0, np.int8), *(np.empty(0, np.int64),) * 5))


def summaries_of(trace: Trace) -> list[RankSummary]:
    """A summary for each process of the trace with GPU work or collectives; of a trace without either, for its main
    one.

    In a part of a trace, device times are of that part; collectives count where they begin in it.
    """
    tables = collectives_of(trace)
    processes = sorted(tables.keys() | {device.process_id for device in trace.devices})
    if not processes and trace.main_thread is not None:
        processes = [trace.threads[trace.main_thread].process_id]
    return [_summary(trace, process, tables.get(process, _NOTHING), len(processes) > 1) for process in processes]


def calls_of(trace: Trace) -> list[RankCalls]:
    """The collectives of each process of the trace that has any."""
    tables = collectives_of(trace)
    found = []
    for process, (groups, calls) in tables.items():
        rank, _ = _rank_of(trace, process, len(tables) > 1)
        pid = trace.recorded.processes[process].pid
        found.append(RankCalls(trace.source.id, pid, rank, trace.tick_ns, groups, calls))
    return found


def _rank_of(trace: Trace, process: int, is_one_of_several: bool) -> tuple[int | None, str | None]:
    """A rank and what told it. What a source says of itself, it says of its only process."""
    if not is_one_of_several:
        return trace.source.rank, trace.source.rank_origin
    return _rank_of_process(trace, process)


def _summary(trace: Trace, process: int, table: Table, is_one_of_several: bool) -> RankSummary:
    source = trace.source
    devices = [device for device in trace.devices if device.process_id == process]
    groups, calls = table
    if trace.scope is not None:
        calls = calls.select(trace.scope.contains(calls.start_ns))
    talk = Intervals.union_of(calls.start_ns, calls.end_ns)
    if devices:
        talk = union_of_all(device.communication_time for device in devices)
    compute = union_of_all(_compute(device) for device in devices)
    rank, origin = _rank_of(trace, process, is_one_of_several)
    return RankSummary(
        source=source.id,
        pid=trace.recorded.processes[process].pid,
        rank=rank,
        rank_origin=origin,
        world_size=source.world_size,
        host=source.host,
        tick_ns=trace.tick_ns,
        span_ns=trace.event_span,
        has_device=bool(devices),
        steps=_steps(trace, process, devices, compute, talk),
        groups=groups,
        calls=calls,
        before=_before(trace, devices, calls, compute),
        host_time=_host_time(trace, process, devices, calls),
        exposed=talk - compute,
        communication_ns=talk.measure_ns,
        kernels=_kernels(devices),
        sm_clock_hz=_sm_clock_hz(trace, devices),
        device_name=trace.gpu_of(devices[0]).name if devices else None,
    )


def _rank_of_process(trace: Trace, process: int) -> tuple[int | None, str | None]:
    """What NCCL's payloads say of a process that shares its file with others: the rank in its largest communicator."""
    row = trace.case.db.execute(_RANK_OF_PROCESS, (process,)).fetchone()
    return (None, None) if row is None else (row[0], "payload")


_RANK_OF_PROCESS = """
    SELECT rank FROM collective
     WHERE process_id = ? AND rank IS NOT NULL AND group_size IS NOT NULL
     ORDER BY group_size DESC, start_ns
     LIMIT 1
"""


def _compute(device: DeviceTimeline) -> Intervals:
    is_work = (device.ops.kind == gpu_work.KERNEL) & ~device.is_communication
    return device.time_of(is_work | (device.ops.kind == gpu_work.GRAPH))


def _steps(
    trace: Trace, process: int, devices: Sequence[DeviceTimeline], compute: Intervals, talk: Intervals
) -> StepTimes:
    thread = launching_thread(trace, process)
    found = None if thread is None else find_steps(thread, fewest=FEWEST_STEPS, least_cover=LEAST_COVER)
    nothing = np.empty(0, np.int64)
    if found is None:
        return StepTimes(None, nothing, nothing, nothing, nothing, nothing, nothing)
    steps = _in_scope(found, trace.scope)
    busy = union_of_all(device.busy for device in devices)

    def inside(when: Intervals) -> Times:
        return when.measure_within(steps.start_ns, steps.end_ns)

    return StepTimes(
        steps.pattern,
        steps.start_ns,
        steps.end_ns,
        inside(compute),
        inside(talk),
        inside(talk - compute),
        steps.duration_ns - inside(busy) if devices else steps.duration_ns - inside(talk),
    )


def _in_scope(steps: Steps, scope: Intervals | None) -> Steps:
    if scope is None:
        return steps
    return steps.select(scope.measure_within(steps.start_ns, steps.end_ns) == steps.duration_ns)


def launching_thread(trace: Trace, process: int) -> HostThread | None:
    """Of a process the thread that launches most, or has most ranges where nothing is launched."""
    of = [thread for thread in trace.threads.values() if thread.process_id == process]
    if trace.main_thread is not None and trace.threads[trace.main_thread] in of:
        return trace.threads[trace.main_thread]
    return max(of, key=lambda thread: (len(thread.calls), len(thread.ranges), -thread.thread_id), default=None)


def _starts_before(trace: Trace, devices: Sequence[DeviceTimeline], calls: Collectives) -> Times:
    first_ns = min((device.start_ns for device in devices), default=trace.event_span[0])
    latest_ns: Times = np.append(first_ns, np.maximum.accumulate(calls.end_ns))[:-1]
    return np.asarray(np.minimum(latest_ns, calls.start_ns))


def _before(trace: Trace, devices: Sequence[DeviceTimeline], calls: Collectives, compute: Intervals) -> Before:
    """Between the latest end of the collectives that began earlier and the start of each."""
    starts_ns = _starts_before(trace, devices, calls)

    def inside(when: Intervals) -> Times:
        return when.measure_within(starts_ns, calls.start_ns)

    if not devices:
        nothing = np.zeros(len(calls), np.int64)
        return Before(nothing, calls.start_ns - starts_ns, nothing, nothing, nothing)
    accounts = [trace.idle_of(device) for device in devices]
    return Before(
        inside(compute),
        inside(_all_idle(devices, [account.host_late for account in accounts])),
        inside(_all_idle(devices, [account.launch_latency for account in accounts])),
        inside(_all_idle(devices, [account.device_side for account in accounts])),
        inside(_all_idle(devices, [_unexplained(account) for account in accounts])),
    )


LEAST_NAMED = 0.2
"""A range is named when it covers a fifth of what is explained; own choice."""


def _host_time(trace: Trace, process: int, devices: Sequence[DeviceTimeline], calls: Collectives) -> HostTime:
    """Of what lies before collectives, as in `Before`."""
    thread = launching_thread(trace, process)
    starts_ns = _starts_before(trace, devices, calls)
    when = Intervals.union_of(starts_ns, calls.start_ns)
    if devices:
        when = when & _all_idle(devices, [trace.idle_of(device).host_late for device in devices])
    if thread is None:
        return HostTime(when.measure_ns, ())
    covers = cover_by_ranges(thread, when, least_share=LEAST_NAMED, most=2)
    return HostTime(when.measure_ns, [HostRange(cover.pattern, cover.covered_ns) for cover in covers])


def _unexplained(account: IdleAccount) -> Intervals:
    return account.not_captured | account.other_process


def _all_idle(devices: Sequence[DeviceTimeline], parts: Sequence[Intervals]) -> Intervals:
    """Of some parts of the devices' idle time those in which none of the devices was busy."""
    part = union_of_all(parts)
    return part if len(devices) == 1 else part - union_of_all(device.busy for device in devices)


def _kernels(devices: Sequence[DeviceTimeline]) -> KernelTimes:
    names, durations = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for device in devices:
        is_work = (device.ops.kind == gpu_work.KERNEL) & ~device.is_communication & (device.ops.name_id >= 0)
        names.append(device.ops.name_id[is_work])
        durations.append(device.ops.duration_ns[is_work])
    name, duration_ns = np.concatenate(names), np.concatenate(durations)
    order = np.lexsort((duration_ns, name))
    ids, first, count = np.unique(name[order], return_index=True, return_counts=True)
    sorted_ns = duration_ns[order]
    middle = (sorted_ns[first + (count - 1) // 2] + sorted_ns[first + count // 2]) / 2
    total_ns = np.add.reduceat(sorted_ns, first) if len(first) else np.empty(0, np.int64)
    texts = devices[0].names if devices else {}
    return KernelTimes([texts[i] for i in ids.tolist()], count.astype(np.int64), total_ns, middle)


def _sm_clock_hz(trace: Trace, devices: Sequence[DeviceTimeline]) -> float | None:
    """Mean over the busy time of the first device for which it was sampled."""
    for device in devices:
        counter = trace.counters.of_device("gpc_clock", device.process_id, device.device)
        if counter is not None and counter.unit == "Hz":
            return counter.mean_within(device.busy)
    return None
