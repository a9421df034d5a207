"""Tables of a report that are no findings: devices, all kernels, and device time by range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from diag.rules.report import CopyRow, DeviceRow, HardwareRow, KernelRow, RangeRow
from diag.timeline import gpu_work, nesting
from diag.timeline.device import DeviceTimeline
from diag.timeline.host import HostThread, Index
from diag.timeline.intervals import Intervals, measure_by_label
from diag.timeline.ranges import OPEN_NS
from diag.timeline.trace import Trace


def device_row(device: DeviceTimeline) -> DeviceRow:
    return DeviceRow(
        source=device.source_id,
        process=device.pid,
        process_name=device.process_name,
        device=device.device,
        uuid=device.uuid,
        name=device.hardware,
        window=(device.start_ns, device.end_ns),
        window_ns=device.window_ns,
        lead_ns=device.lead_ns,
        tail_ns=device.tail_ns,
        busy_ns=device.busy.measure_ns,
        busy_is_upper_bound=device.count(gpu_work.GRAPH) > 0,
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


def kernel_rows(device: DeviceTimeline) -> list[KernelRow]:
    """All kernels of a device by name, largest total first."""
    kernels = device.ops.select(device.ops.kind == gpu_work.KERNEL)
    order = np.lexsort((kernels.duration_ns, kernels.name_id))
    names, durations = kernels.name_id[order], kernels.duration_ns[order]
    union_ns = measure_by_label(
        np.maximum(kernels.start_ns, device.start_ns), np.minimum(kernels.end_ns, device.end_ns), kernels.name_id
    )
    all_ns = int(durations.sum())
    rows = []
    for first, stop in nesting.thread_slices(names):
        group = durations[first:stop]
        name_id = int(names[first])
        short_id = int(kernels.short_name_id[order[first]])
        total_ns = int(group.sum())
        rows.append(
            KernelRow(
                source=device.source_id,
                process=device.pid,
                device=device.device,
                name=device.names.get(name_id, "(name not captured)"),
                short_name=device.names.get(short_id, "(name not captured)"),
                count=len(group),
                total_ns=total_ns,
                median_ns=int(np.median(group)),
                min_ns=int(group[0]),
                max_ns=int(group[-1]),
                share_of_kernel_time=total_ns / all_ns if all_ns else 0.0,
                share_of_window=device.share(union_ns.get(name_id, 0)),
            )
        )
    return sorted(rows, key=lambda row: (-row.total_ns, row.name))


def range_rows(trace: Trace, device: DeviceTimeline, *, most: int = 20) -> list[RangeRow]:
    """Range patterns by the device time of what was launched inside them, longest first."""
    launched = np.flatnonzero(device.launch != gpu_work.NONE)
    threads = device.calls.thread_id[device.launch[launched]]
    totals: dict[str, _RangeTotal] = {}
    for thread_id in np.unique(threads).tolist():
        _add_ranges_of(trace.threads[thread_id], device, launched[threads == thread_id], totals)
    texts = list(totals)
    op = np.concatenate([np.empty(0, np.int64), *(np.concatenate(total.ops) for total in totals.values())])
    label = np.repeat(np.arange(len(texts)), [sum(map(len, total.ops)) for total in totals.values()])
    starts_ns, ends_ns = device.ops.start_ns[op], device.ops.end_ns[op]
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


def _add_ranges_of(thread: HostThread, device: DeviceTimeline, ops: Index, totals: dict[str, _RangeTotal]) -> None:
    ranges = thread.ranges
    if not len(ranges):
        return
    launch_ns = device.calls.start_ns[device.launch[ops]]
    innermost = nesting.innermost_at(launch_ns, ranges.start_ns, ranges.end_ns, thread.parents)
    labels, texts = thread.range_labels, thread.range_patterns
    op, label = _pairs(ops, innermost, labels, thread.parents)
    count = np.bincount(labels, minlength=len(texts))
    closed = thread.outermost & (ranges.end_ns != OPEN_NS)
    host_ns = np.bincount(labels[closed], (ranges.end_ns - ranges.start_ns)[closed], len(texts))
    for first, stop in nesting.thread_slices(label):
        number = int(label[first])
        total = totals.setdefault(texts[number], _RangeTotal())
        total.count += int(count[number])
        total.host_ns += int(host_ns[number])
        total.ops.append(op[first:stop])


def _pairs(ops: Index, innermost: Index, labels: Index, parents: Index) -> tuple[Index, Index]:
    """Every (operation, label of a range around its launch) once, sorted by label, walking up one level at a time."""
    op, at = ops[innermost >= 0], innermost[innermost >= 0]
    n_ops = int(ops.max(initial=0)) + 1
    found = [labels[at] * n_ops + op]
    while len(at):
        above = parents[at]
        op, at = op[above >= 0], above[above >= 0]
        found.append(labels[at] * n_ops + op)
    pairs = np.unique(np.concatenate(found))
    return pairs % n_ops, pairs // n_ops
