"""What the tables of a report say: the same rows whether they are set in columns or in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.render import phrases
from diag.rules.report import KernelRow, RangeRow, Report
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals

NOT_CAPTURED = "-"

_NAMESPACE = re.compile(r"(?:\b\w+|<unnamed>|\(anonymous namespace\))::")
_CAST = re.compile(r"\((?:unsigned )?(?:int|bool|long|short|char)\)(?=\d)")
_CALL_ARGUMENTS = re.compile(r"\([^()]*\)$")


@dataclass(frozen=True)
class Table:
    """Cells as text, not yet safe to show. All columns are quantities, the most telling first, except one of names."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    name_column: int
    notes: Sequence[str] = ()


def tables(report: Report, top: int) -> list[Table]:
    """Those that have something to say, in reading order."""
    made = [devices(report), copies(report, top), kernels(report, top), ranges(report, top)]
    return [table for table in made if table.rows]


def devices(report: Report) -> Table:
    """One row for each (process, device); shares of its window where they mean something, else times."""
    return Table(
        "Devices",
        ("device", "window", "busy", "idle", "kernels", "copies", "comm"),
        [_device_row(report, device) for device in report.devices],
        name_column=0,
        notes=list(_device_notes(report)),
    )


def _device_row(report: Report, device: DeviceTimeline) -> list[str]:
    kernels = phrases.captured(report, device, "kernel")
    copies = phrases.captured(report, device, "copy")
    return [
        phrases.device(report, device, hardware=True),
        units.time(device.window_ns),
        _part(device, device.busy),
        _part(device, device.idle),
        _part(device, device.kernel_time) if kernels else NOT_CAPTURED,
        _part(device, device.copy_time) if copies else NOT_CAPTURED,
        _part(device, device.communication_time) if kernels else NOT_CAPTURED,
    ]


def _part(device: DeviceTimeline, time: Intervals) -> str:
    return units.share(device.share(time)) if device.has_shares else units.time(time.measure_ns)


def _device_notes(report: Report) -> Iterator[str]:
    devices = report.devices
    if not devices:
        return
    lead, tail = max(device.lead_ns for device in devices), max(device.tail_ns for device in devices)
    up_to = "up to " if len(devices) > 1 else ""
    outside = (
        f"; the host ran {up_to}{units.time(lead)} before it and {up_to}{units.time(tail)} after it, "
        "which is not idle time"
    )
    yield f"The window runs from the first to the last GPU operation{outside if lead or tail else ''}."
    if upper := [phrases.device(report, device) for device in devices if phrases.busy_is_upper_bound(device)]:
        yield f"Busy is an upper bound, as each CUDA graph launch is one row: {phrases.some(upper)}."
    if few := [phrases.device(report, device) for device in devices if not device.has_shares]:
        yield f"Too few operations for shares: {phrases.some(few)}."
    for device in devices:
        who = phrases.device(report, device)
        if device.communication_time:
            yield f"Exposed communication on {who}: {_part(device, device.exposed_communication)}."
        if used := phrases.used_by_others_ns(device):
            yield f"Other processes used {who} for {units.time(used)} of its idle time."


def copies(report: Report, top: int) -> Table:
    """Copies by kind and memory, longest first, of the device that the verdict speaks of."""
    device = phrases.focus(report)
    found = device.copies if device else []
    rows = [
        [
            units.time(copy.busy_ns),
            f"{copy.count:,}",
            units.size(copy.bytes),
            units.rate(copy.bytes, copy.busy_ns),
            f"{copy.kind}, {copy.src} to {copy.dst}",
        ]
        for copy in found[:top]
    ]
    header = ("busy", "count", "size", "rate", "kind")
    return Table("Copies" + _on_device(report), header, rows, name_column=4)


def kernels(report: Report, top: int) -> Table:
    """The kernels with the largest total on that device."""
    on_device = [row for row in report.kernels if _is_on(row, phrases.focus(report))]
    shown, rest = on_device[:top], on_device[top:]
    rows = [
        [
            units.share(row.share_of_kernel_time),
            units.time(row.total_ns),
            f"{row.count:,}",
            units.time(row.median_ns),
            _kernel_name(row, shown),
        ]
        for row in shown
    ]
    rest_share = units.share(sum(row.share_of_kernel_time for row in rest))
    return Table(
        f"Hottest kernels{_on_device(report)}, by share of kernel time",
        ("share", "total", "launches", "median", "kernel"),
        rows,
        name_column=4,
        notes=[f"{units.count(len(rest), 'more kernel')}: {rest_share} of the kernel time."] if rest else [],
    )


def _is_on(row: KernelRow | RangeRow, device: DeviceTimeline | None) -> bool:
    key = (row.source, row.process, row.device)
    return device is not None and key == (device.source_id, device.pid, device.device)


def _on_device(report: Report) -> str:
    device = phrases.focus(report)
    return f" on {phrases.device(report, device)}" if device and len(report.devices) > 1 else ""


def _kernel_name(row: KernelRow, shown: Sequence[KernelRow]) -> str:
    """The short name, or, where another row has the same, as much more as tells them apart."""
    if sum(other.short_name == row.short_name for other in shown) == 1:
        return row.short_name
    name = row.name[max(0, row.name.find(row.short_name)) :]
    return _CALL_ARGUMENTS.sub("", _CAST.sub("", _NAMESPACE.sub("", name)))


def ranges(report: Report, top: int) -> Table:
    """The ranges that launched the most device time on that device."""
    rows = [
        [units.time(row.gpu_ns), units.time(row.gpu_sum_ns), units.time(row.host_ns), f"{row.count:,}", row.name]
        for row in report.ranges
        if _is_on(row, phrases.focus(report))
    ]
    return Table(
        "Ranges" + _on_device(report),
        ("GPU time", "GPU sum", "host time", "count", "range"),
        rows[:top],
        name_column=4,
        notes=["GPU time is the union of what was launched inside a range, GPU sum its sum; ranges contain ranges."],
    )
