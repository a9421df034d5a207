"""What the tables of a report say: the same rows whether they are set in columns or in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from diag.model import units
from diag.render import phrases
from diag.render.ceiling_table import ceilings
from diag.render.kernel_tables import operators, profiled, vendor
from diag.render.live_tables import live_devices, live_processes
from diag.render.measured_collective_table import measured_collectives
from diag.render.measurement_table import measurements
from diag.render.rank_tables import collectives, ranks
from diag.render.serving_tables import SERVING_TABLES
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.report import Report
from diag.rules.timeline_report import DeviceRow, KernelRow

_NAMESPACE = re.compile(r"(?:\b\w+|<unnamed>|\(anonymous namespace\))::")
_CAST = re.compile(r"\((?:unsigned )?(?:int|bool|long|short|char)\)(?=\d)")


def tables(report: Report, top: int) -> list[Table]:
    """Those that have something to say, in reading order."""
    of = (
        measurements, measured_collectives, *SERVING_TABLES, live_devices, live_processes,
        ranks, collectives, devices, hardware, copies, kernels, operators, profiled, vendor, ranges, ceilings,
    )  # fmt: skip
    made = [table_of(report, top) for table_of in of]
    return [table for table in made if table.rows]


def devices(report: Report, top: int) -> Table:
    """One row for each (process, device); shares of its window where they mean something, else times.

    Of many, those that idle longest are shown, after the one that the verdict speaks of.
    """
    shown = list(report.devices)
    if len(shown) > max(top, phrases.FEW_ROWS):
        focus = phrases.focus(report)
        shown.sort(key=lambda row: (row is not focus, -row.idle_ns))
        shown = shown[: max(top, phrases.FEW_ROWS)]
    return Table(
        "Devices",
        ("device", "window", "busy", "idle", "kernels", "copies", "comm"),
        [_device_row(report, row) for row in shown],
        name_column=0,
        notes=[*_hidden_devices(report, len(shown)), *_device_notes(report)],
        wraps_names=True,
    )


def _hidden_devices(report: Report, shown: int) -> Iterator[str]:
    """How many there are, and how busy all of them."""
    rows = report.devices
    if shown < len(rows):
        busy = [row.busy_ns / row.window_ns for row in rows if row.has_shares]
        range_of = f" All are busy between {units.share(min(busy))} and {units.share(max(busy))}." if busy else ""
        yield f"{phrases.more(len(rows), shown)} Shown are those that idle longest.{range_of}"


def _device_row(report: Report, row: DeviceRow) -> list[str]:
    kernels = phrases.captured(report, row, "kernel")
    copies = phrases.captured(report, row, "copy")
    return [
        phrases.device(report, row, hardware=True),
        units.time(row.window_ns),
        phrases.of_window(row, row.busy_ns),
        phrases.of_window(row, row.idle_ns),
        phrases.of_window(row, row.kernel_ns) if kernels else NOT_CAPTURED,
        phrases.of_window(row, row.copy_ns) if copies else NOT_CAPTURED,
        phrases.of_window(row, row.comm_ns) if kernels else NOT_CAPTURED,
    ]


def _device_notes(report: Report) -> Iterator[str]:
    rows = report.devices
    if not rows:
        return
    lead_ns, tail_ns = max(row.lead_ns for row in rows), max(row.tail_ns for row in rows)
    up_to = "up to " if len(rows) > 1 else ""
    outside = [f"{up_to}{units.time(ns)} {when} it" for ns, when in ((lead_ns, "before"), (tail_ns, "after")) if ns]
    host = f"; the host ran {' and '.join(outside)}, which is not idle time" if outside else ""
    if any(row.is_scoped for row in rows):
        yield "The window is the part of the trace that was asked for, at most from first to last GPU operation."
    else:
        yield f"The window runs from the first to the last GPU operation{host}."
    if upper := [phrases.device(report, row) for row in rows if row.busy_is_upper_bound]:
        yield f"Busy is an upper bound, as each CUDA graph launch is one row: {phrases.some(upper, '; ')}."
    if lower := [phrases.device(report, row) for row in rows if row.busy_is_lower_bound]:
        yield f"Busy is a lower bound, as some CUDA graph launches left no row: {phrases.some(lower, '; ')}."
    started = [_on(report, row, row.startup_ns) for row in rows if row.startup_ns]
    if started:
        yield f"Startup, before steady state: {phrases.some(started, '; ')}."
    if once := [phrases.device(report, row) for row in rows if row.has_shares and row.startup_ns is None]:
        yield f"Nothing repeats, so that startup cannot be told from steady state: {phrases.some(once, '; ')}."
    if few := [phrases.device(report, row) for row in rows if not row.has_shares]:
        yield f"Too few operations for shares: {phrases.some(few, '; ')}."
    exposed = [_on(report, row, row.exposed_comm_ns) for row in rows if row.comm_ns]
    if exposed:
        yield f"Exposed communication: {phrases.some(exposed, '; ')}."


def _on(report: Report, row: DeviceRow, ns: int) -> str:
    return f"{phrases.of_window(row, ns)} ({phrases.device(report, row)})"


def hardware(report: Report, top: int) -> Table:
    """Devices that several processes used, with the union of their work."""
    rows = [
        [
            units.time(row.window_ns),
            units.share(row.busy_ns / row.window_ns),
            units.share(row.idle_ns / row.window_ns),
            f"{row.name or row.uuid}, pids {', '.join(map(str, row.processes))}",
        ]
        for row in report.hardware
        if row.window_ns
    ]
    return Table(
        "Hardware that several processes used", ("window", "busy", "idle", "device"), rows[:top], name_column=3
    )


def copies(report: Report, top: int) -> Table:
    """Copies by kind and memory, longest first, of the device that the verdict speaks of."""
    device = phrases.focus(report)
    found = device.copies if device else ()
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
    return Table("Copies" + phrases.on_device(report), header, rows, name_column=4, wraps_names=True)


def kernels(report: Report, top: int) -> Table:
    """The kernels with the largest total on that device."""
    device = phrases.focus(report)
    on_device = [row for row in report.kernels if phrases.device_of(report, row) is device]
    shown, rest = on_device[:top], on_device[top:]
    has_occupancy = any(row.occupancy for row in shown)
    rows = [
        [
            units.share(row.share_of_kernel_time),
            units.time(row.total_ns),
            f"{row.count:,}",
            units.time(row.median_ns),
            *([_occupancy(row)] if has_occupancy else []),
            kernel_name(row, shown),
        ]
        for row in shown
    ]
    header = ("share", "total", "launches", "median", *(["occ."] if has_occupancy else []), "kernel")
    return Table(
        f"Hottest kernels{phrases.on_device(report)}, by share of kernel time",
        header,
        rows,
        name_column=len(header) - 1,
        notes=list(_kernel_notes(rest, has_occupancy)),
    )


def _occupancy(row: KernelRow) -> str:
    return f"{row.occupancy.theoretical_pct:.0f} %" if row.occupancy else NOT_CAPTURED


def _kernel_notes(rest: Sequence[KernelRow], has_occupancy: bool) -> Iterator[str]:
    if rest:
        share = units.share(sum(row.share_of_kernel_time for row in rest))
        yield f"{units.count(len(rest), 'more kernel')}: {share} of the kernel time."
    if has_occupancy:
        yield "occ.: theoretical occupancy, the warps that can reside on an SM, of those that it has room for."


def kernel_name(row: KernelRow, shown: Sequence[KernelRow]) -> str:
    """The short name, or, where another row has the same, its template arguments too, without namespaces."""
    is_alone = sum(other.short_name == row.short_name for other in shown) == 1
    return row.short_name if is_alone else with_arguments(row)


def with_arguments(row: KernelRow) -> str:
    """The short name with its template arguments, which tell instances of one template apart."""
    if row.short_name not in row.name:
        return row.short_name
    own = row.name[row.name.index(row.short_name) :]
    return _CAST.sub("", _NAMESPACE.sub("", _without_call(own)))


def _without_call(name: str) -> str:
    """The name up to where its template arguments close."""
    depth = 0
    for at, character in enumerate(name):
        if character in "<>" and not name.startswith("->", max(0, at - 1)):
            depth += 1 if character == "<" else -1
            if depth == 0:
                return name[: at + 1]
        elif character == "(" and depth == 0:
            return name[:at]
    return name


def ranges(report: Report, top: int) -> Table:
    """The ranges that launched the most device time on that device."""
    device = phrases.focus(report)
    rows = [
        [units.time(row.gpu_ns), units.time(row.gpu_sum_ns), units.time(row.host_ns), f"{row.count:,}", row.name]
        for row in report.ranges
        if phrases.device_of(report, row) is device
    ]
    return Table(
        "Ranges" + phrases.on_device(report),
        ("GPU time", "GPU sum", "host time", "count", "range"),
        rows[:top],
        name_column=4,
        notes=[
            "GPU time is the union of what was launched inside a range by its own thread, GPU sum its sum; "
            "ranges contain ranges."
        ],
    )
