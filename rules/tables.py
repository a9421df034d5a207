"""Tables of a report that are no findings: devices, all kernels, and device time by range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from diag.rules.kernel_occupancy import occupancy_by_name
from diag.rules.timeline_report import CopyRow, DeviceRow, HardwareRow, KernelRow, RangeRow
from diag.timeline import gpu_work, nesting
from diag.timeline.device import DeviceTimeline
from diag.timeline.host import HostThread, Index
from diag.timeline.intervals import Intervals, Times, measure_by_label
from diag.timeline.ranges import OPEN_NS, Ranges
from diag.timeline.trace import Trace


def device_row(trace: Trace, device: DeviceTimeline) -> DeviceRow:
    startup = trace.startup_of(device)
    return DeviceRow(
        source=device.source_id,
        process=device.pid,
        process_name=device.process_name,
        device=device.device,
        uuid=device.uuid,
        name=device.hardware,
        window=(device.start_ns, device.end_ns),
        window_ns=device.window_ns,
        is_scoped=device.is_scoped,
        lead_ns=device.lead_ns,
        tail_ns=device.tail_ns,
        startup_ns=startup.time.measure_ns if startup.is_told else None,
        busy_ns=device.busy.measure_ns,
        busy_is_upper_bound=device.count(gpu_work.GRAPH) > 0,
        busy_is_lower_bound=len(trace.unrecorded_graph_launches(device)) > 0,
        idle_ns=device.idle.measure_ns,
        kernel_ns=device.kernel_time.measure_ns,
        copy_ns=device.copy_time.measure_ns,
        memset_ns=device.memset_time.measure_ns,
        graph_ns=device.graph_time.measure_ns,
        comm_ns=device.communication_time.measure_ns,
        exposed_comm_ns=device.exposed_communication.measure_ns,
        n_kernels=device.count(gpu_work.KERNEL),
        n_copies=device.count(gpu_work.COPY),
        n_memsets=device.count(gpu_work.MEMSET),
        n_graphs=device.count(gpu_work.GRAPH),
        copies=[CopyRow(c.kind, c.src, c.dst, c.count, c.bytes, c.busy_ns) for c in device.copies],
    )


def hardware_rows(devices: Sequence[DeviceTimeline]) -> list[HardwareRow]:
    """The account of each physical device that several processes of one source used, by its UUID."""
    shared: dict[tuple[int, str], list[DeviceTimeline]] = {}
    for device in devices:
        if device.uuid is not None:
            shared.setdefault((device.source_id, device.uuid), []).append(device)
    return [_hardware_row(source, uuid, of) for (source, uuid), of in sorted(shared.items()) if len(of) > 1]


def _hardware_row(source: int, uuid: str, devices: Sequence[DeviceTimeline]) -> HardwareRow:
    window, busy = Intervals.empty(), Intervals.empty()
    for device in devices:
        window, busy = window | device.window, busy | device.busy
    window_ns = window.span[1] - window.span[0]
    return HardwareRow(
        source=source,
        uuid=uuid,
        name=devices[0].hardware,
        processes=tuple(sorted({device.pid for device in devices})),
        window_ns=window_ns,
        busy_ns=busy.measure_ns,
        idle_ns=window_ns - busy.measure_ns,
    )


def kernel_rows(trace: Trace, device: DeviceTimeline) -> list[KernelRow]:
    """All kernels of a device with their occupancy, largest total first; durations are cut to the window."""
    occupancies = occupancy_by_name(trace, device)
    return [
        replace(row, occupancy=occupancies[name_id].row) if name_id in occupancies else row
        for name_id, row in kernels_by_name(device).items()
    ]


def kernels_by_name(device: DeviceTimeline) -> Mapping[int, KernelRow]:
    """The kernels of a device by the id of their name, without occupancy."""
    return device.once("kernels", partial(_kernels_by_name, device))


def _kernels_by_name(device: DeviceTimeline) -> Mapping[int, KernelRow]:
    kernels = device.ops.select(device.ops.kind == gpu_work.KERNEL)
    starts_ns, ends_ns = _within_window(device, kernels.start_ns), _within_window(device, kernels.end_ns)
    union_ns = measure_by_label(starts_ns, ends_ns, kernels.name_id)
    order = np.lexsort((ends_ns - starts_ns, kernels.name_id))
    names, durations = kernels.name_id[order], (ends_ns - starts_ns)[order]
    all_ns = int(durations.sum())
    rows = {}
    for first, stop in nesting.runs_of_equal(names):
        group = durations[first:stop]
        name_id = int(names[first])
        name, short_id = device.name_of(name_id), int(kernels.short_name_id[order[first]])
        total_ns = int(group.sum())
        rows[name_id] = KernelRow(
            source=device.source_id,
            process=device.pid,
            device=device.device,
            name=name,
            short_name=device.names.get(short_id, name),
            count=len(group),
            total_ns=total_ns,
            median_ns=int(np.median(group)),
            min_ns=int(group[0]),
            max_ns=int(group[-1]),
            share_of_kernel_time=total_ns / all_ns if all_ns else 0.0,
            share_of_window=device.share(union_ns.get(name_id, 0)),
        )
    return dict(sorted(rows.items(), key=lambda item: (-item[1].total_ns, item[1].name)))


def _within_window(device: DeviceTimeline, times_ns: Times) -> Times:
    """Each time as nanoseconds of the window before it: differences of such times are cut to the window."""
    return device.window.measure_within(device.start_ns, times_ns)


def range_rows(trace: Trace, device: DeviceTimeline, *, most: int = 20) -> list[RangeRow]:
    """Range patterns by the device time of what was launched inside them by their own thread, longest first.

    In a part of a trace only ranges that reach into it count, and only their time in it.
    """
    launched = np.flatnonzero(device.launch != gpu_work.NONE)
    threads = device.calls.thread_id[device.launch[launched]]
    totals: dict[str, _RangeTotal] = {}
    for thread_id in np.unique(threads).tolist():
        _add_ranges_of(trace.threads[thread_id], trace.scope, device, launched[threads == thread_id], totals)
    texts = list(totals)
    op = np.concatenate([np.empty(0, np.int64), *(np.concatenate(total.ops) for total in totals.values())])
    label = np.repeat(np.arange(len(texts)), [sum(map(len, total.ops)) for total in totals.values()])
    starts_ns = _within_window(device, device.ops.start_ns[op])
    ends_ns = _within_window(device, device.ops.end_ns[op])
    sum_ns = np.bincount(label, ends_ns - starts_ns, len(texts))
    rows = [
        RangeRow(
            source=device.source_id,
            process=device.pid,
            device=device.device,
            name=texts[number],
            count=totals[texts[number]].count,
            host_ns=totals[texts[number]].host_ns,
            gpu_ns=gpu_ns,
            gpu_sum_ns=int(sum_ns[number]),
        )
        for number, gpu_ns in measure_by_label(starts_ns, ends_ns, label).items()
    ]
    return sorted(rows, key=lambda row: (-row.gpu_ns, -row.host_ns, row.name))[:most]


@dataclass
class _RangeTotal:
    """What all launching threads add to one range pattern."""

    count: int = 0
    host_ns: int = 0
    ops: list[Index] = field(default_factory=list)


def _add_ranges_of(
    thread: HostThread, scope: Intervals | None, device: DeviceTimeline, ops: Index, totals: dict[str, _RangeTotal]
) -> None:
    ranges = thread.ranges
    if not len(ranges):
        return
    launch_ns = device.calls.start_ns[device.launch[ops]]
    innermost = nesting.innermost_at(launch_ns, ranges.start_ns, ranges.end_ns, thread.parents)
    labels, texts = thread.range_labels, thread.range_patterns
    time_ns, counts = _times_in_scope(ranges, scope)
    op, label = _pairs(ops, innermost, labels, nesting.parents_among(thread.outermost, thread.parents), counts)
    count = np.bincount(labels[counts], minlength=len(texts))
    host_ns = np.bincount(labels[thread.outermost], time_ns[thread.outermost], len(texts))
    for first, stop in nesting.runs_of_equal(label):
        number = int(label[first])
        total = totals.setdefault(texts[number], _RangeTotal())
        total.count += int(count[number])
        total.host_ns += int(host_ns[number])
        total.ops.append(op[first:stop])


def _times_in_scope(ranges: Ranges, scope: Intervals | None) -> tuple[Times, NDArray[np.bool_]]:
    """Time of each range in scope, and whether it counts. Without a scope all count; open ones have no known time."""
    if scope is not None:
        time_ns = scope.measure_within(ranges.start_ns, ranges.end_ns)
        return time_ns, time_ns > 0
    is_open = ranges.end_ns == OPEN_NS
    return np.where(is_open, 0, ranges.end_ns - ranges.start_ns), np.ones(len(ranges), bool)


MOST_NAMES_AROUND = 500
"""Around one launch; no program nests deeper, and a file that claims so must not take memory for every pair."""


def _pairs(
    ops: Index, innermost: Index, labels: Index, enclosing: tuple[Index, Index], counts: NDArray[np.bool_]
) -> tuple[Index, Index]:
    """Every (operation, label of a range around its launch) once, sorted by label, walking up one level at a time.

    `enclosing` leads over the outermost ranges of each label: they tell all labels, and recursion none twice.
    """
    itself, above = enclosing
    op, at = ops[innermost >= 0], itself[innermost[innermost >= 0]]
    n_ops = int(ops.max(initial=0)) + 1
    found = [np.empty(0, np.int64)]
    while len(at) and len(found) <= MOST_NAMES_AROUND:
        found.append((labels[at] * n_ops + op)[counts[at]])
        at = above[at]
        op, at = op[at >= 0], at[at >= 0]
    pairs = np.unique(np.concatenate(found))
    return pairs % n_ops, pairs // n_ops
