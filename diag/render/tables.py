"""What the tables of a report say: the same rows whether they are set in columns or in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.render import phrases
from diag.rules.report import DeviceRow, KernelRow, LaunchRow, Report
from diag.rules.vendor_rules import Summary, summaries

NOT_CAPTURED = "-"

_NAMESPACE = re.compile(r"(?:\b\w+|<unnamed>|\(anonymous namespace\))::")
_CAST = re.compile(r"\((?:unsigned )?(?:int|bool|long|short|char)\)(?=\d)")


@dataclass(frozen=True)
class Table:
    """Cells as text, not yet safe to show. All columns are quantities, the most telling first, except one of names."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    name_column: int
    notes: Sequence[str] = ()
    wraps_names: bool = False  # a name that is too long goes on below, where others lose their middle


def tables(report: Report, top: int) -> list[Table]:
    """Those that have something to say, in reading order."""
    of = (devices, hardware, copies, kernels, operators, profiled, vendor, ranges)
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
        busy = [row.busy_ns / row.window_ns for row in rows if phrases.has_shares(row)]
        range_of = f" All are busy between {units.share(min(busy))} and {units.share(max(busy))}." if busy else ""
        yield f"{phrases.more(len(rows), shown)} Shown are those that idle longest.{range_of}"


def _device_row(report: Report, row: DeviceRow) -> list[str]:
    kernels = phrases.captured(report, row, "kernel")
    copies = phrases.captured(report, row, "copy")
    return [
        phrases.device(report, row, hardware=True),
        units.time(row.window_ns),
        _part(row, row.busy_ns),
        _part(row, row.idle_ns),
        _part(row, row.kernel_ns) if kernels else NOT_CAPTURED,
        _part(row, row.copy_ns) if copies else NOT_CAPTURED,
        _part(row, row.comm_ns) if kernels else NOT_CAPTURED,
    ]


def _part(row: DeviceRow, ns: int) -> str:
    return units.share(ns / row.window_ns) if phrases.has_shares(row) else units.time(ns)


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
    started = [f"{_part(row, row.startup_ns)} ({phrases.device(report, row)})" for row in rows if row.startup_ns]
    if started:
        yield f"Startup, before steady state: {phrases.some(started, '; ')}."
    if once := [phrases.device(report, row) for row in rows if phrases.has_shares(row) and row.startup_ns is None]:
        yield f"Nothing repeats, so that startup cannot be told from steady state: {phrases.some(once, '; ')}."
    if few := [phrases.device(report, row) for row in rows if not phrases.has_shares(row)]:
        yield f"Too few operations for shares: {phrases.some(few, '; ')}."
    exposed = [f"{_part(row, row.exposed_comm_ns)} ({phrases.device(report, row)})" for row in rows if row.comm_ns]
    if exposed:
        yield f"Exposed communication: {phrases.some(exposed, '; ')}."


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
    return Table("Copies" + _on_device(report), header, rows, name_column=4, wraps_names=True)


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
            _kernel_name(row, shown),
        ]
        for row in shown
    ]
    header = ("share", "total", "launches", "median", *(["occ."] if has_occupancy else []), "kernel")
    return Table(
        f"Hottest kernels{_on_device(report)}, by share of kernel time",
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


def _on_device(report: Report) -> str:
    device = phrases.focus(report)
    return f" on {phrases.device(report, device)}" if device and len(report.devices) > 1 else ""


def _kernel_name(row: KernelRow, shown: Sequence[KernelRow]) -> str:
    """The short name, or, where another row has the same, its template arguments too, without namespaces."""
    if sum(other.short_name == row.short_name for other in shown) == 1 or row.short_name not in row.name:
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


def operators(report: Report, top: int) -> Table:
    """Operators of that device with the work that their shapes tell, by device time."""
    device = phrases.focus(report)
    on_device = [row for row in report.operators if phrases.device_of(report, row) is device]
    rows = [
        [
            units.time(row.gpu_ns),
            NOT_CAPTURED if row.roof_share is None else f"{row.nearest} {units.share(row.roof_share)}",
            units.quantity(row.flops_per_s, "FLOP/s") if row.flops else NOT_CAPTURED,
            NOT_CAPTURED if row.bytes_per_s is None else units.rate(row.bytes_per_s, 1e9),
            f"{row.count:,}",
            NOT_CAPTURED if row.intensity is None else f"{row.intensity:.3g}",
            f"{row.name.removeprefix('aten::')} {row.dtype or ''} {_shapes(row.shapes)}",
        ]
        for row in on_device[:top]
    ]
    return Table(
        f"Operators{_on_device(report)}, work modelled from their shapes",
        ("GPU time", "of its roof", "work", "traffic", "calls", "FLOP/byte", "operator"),
        rows,
        name_column=6,
        notes=[
            "Modelled: FLOPs of the definition, and each tensor moved once. Caches and recomputing change both. "
            "Roofs are printed ones, at boost clock."
        ],
        wraps_names=True,
    )


def _shapes(shapes: str) -> str:
    """As people write them: 32×2880, 2880×201088; what is no tensor is left out.

    >>> _shapes("[[32,2880],[2880,201088],[]]")
    '32×2880, 2880×201088'
    """
    return ", ".join(part.replace(",", "×") for part in re.findall(r"\[([\d,]+)\]", shapes))


def profiled(report: Report, top: int) -> Table:
    """Kernels as Nsight Compute measured them, in each configuration; those that take most of the run come first."""
    alike: dict[tuple[object, ...], list[LaunchRow]] = {}
    for row in report.launches:
        alike.setdefault((row.source, row.process, row.device, row.name, row.grid, row.block), []).append(row)
    groups = sorted(alike.values(), key=_weight, reverse=True)
    has_place, has_bound = any(rows[0].timeline for rows in groups), any(row.bound for row in report.launches)
    rows = [_profiled_row(report, rows, has_place, has_bound) for rows in groups[:top]]
    header = (
        *(("in the run",) if has_place else ()),
        "profiled",
        "at most",
        *(("bound",) if has_bound else ()),
        "SM",
        "memory",
        "launches",
        "kernel",
    )
    return Table(
        "Kernels that Nsight Compute measured",
        header,
        rows,
        name_column=len(header) - 1,
        notes=list(_profiled_notes(report, len(groups) - len(rows))),
        wraps_names=True,
    )


def _weight(rows: Sequence[LaunchRow]) -> tuple[int, float]:
    place = rows[0].timeline
    return (place.total_ns if place else 0, sum(row.duration_ns or 0.0 for row in rows))


def _profiled_row(report: Report, rows: Sequence[LaunchRow], has_place: bool, has_bound: bool) -> list[str]:
    measured = [row for row in rows if row.duration_ns is not None] or list(rows)
    median = sorted(measured, key=lambda row: (row.duration_ns or 0.0, row.number))[(len(measured) - 1) // 2]
    place, durations_ns = median.timeline, [row.duration_ns for row in rows if row.duration_ns is not None]
    won_ns = _most_to_win(report, median)
    return [
        *([units.time(place.total_ns) if place else NOT_CAPTURED] if has_place else []),
        units.time(sum(durations_ns)) if durations_ns else NOT_CAPTURED,
        NOT_CAPTURED if won_ns is None else units.time(won_ns),
        *([median.bound or NOT_CAPTURED] if has_bound else []),
        _percent(median.sol.sm_pct),
        _percent(median.sol.memory_pct),
        f"{len(rows):,}",
        f"{median.short_name} {median.configuration}",
    ]


def _most_to_win(report: Report, row: LaunchRow) -> int | None:
    """The largest bound of the findings about this kernel; None where there is none."""
    bounds = (
        finding.recoverable_ns
        for finding in report.findings
        if (finding.subject.kernel, finding.subject.configuration) == (row.name, row.configuration)
    )
    return max((bound for bound in bounds if bound is not None), default=None)


def _percent(value: float | None) -> str:
    return NOT_CAPTURED if value is None else f"{value:.1f} %"


def _profiled_notes(report: Report, hidden: int) -> Iterator[str]:
    if hidden:
        yield f"{units.count(hidden, 'more kernel')} (--top shows them)."
    locked = {row.clocks.is_locked for row in report.launches}
    flushed = {row.cache_control for row in report.launches}
    under = [
        *(["at base clock"] if locked == {True} else ["at the clocks of the moment"] if locked == {False} else []),
        *(["with caches flushed before each pass"] if flushed == {"all"} else []),
    ]
    conditions = f" {' and '.join(under)}" if under else ""
    yield (
        f"Measured one by one{conditions}: what was profiled is not what a run takes. At most: the largest bound of "
        "the findings on it, in the run where it is in one. SM, memory: speed of light of each."
    )


def vendor(report: Report, top: int) -> Table:
    """What NVIDIA's own rules said of the launches when they were profiled, beside what ours say."""
    every = summaries(report)
    shown = [each for each in every if each.said == "fault"][:top]
    is_estimated = any(each.speedup_pct is not None for each in shown)
    rows = [
        [
            f"{each.count:,}",
            *([_percent(each.speedup_pct)] if is_estimated else []),
            f"{each.name}; {f'{each.rule}: {_ours(each)}' if each.rule else 'no rule of ours asks this'}",
        ]
        for each in shown
    ]
    notes = [] if len(shown) == len(every) else [f"Of {len(every)} answers, the faults on most launches."]
    header = ("launches", *(["est. speed-up"] if is_estimated else []), "NVIDIA's rule; ours")
    title = "Faults by NVIDIA's rules, beside ours"
    return Table(title, header, rows, len(header) - 1, notes=notes, wraps_names=True)


def _ours(summary: Summary) -> str:
    if len(summary.ours) == 1:
        return next(iter(summary.ours))
    return ", ".join(f"{answer} ({count})" for answer, count in sorted(summary.ours.items()))


def ranges(report: Report, top: int) -> Table:
    """The ranges that launched the most device time on that device."""
    device = phrases.focus(report)
    rows = [
        [units.time(row.gpu_ns), units.time(row.gpu_sum_ns), units.time(row.host_ns), f"{row.count:,}", row.name]
        for row in report.ranges
        if phrases.device_of(report, row) is device
    ]
    return Table(
        "Ranges" + _on_device(report),
        ("GPU time", "GPU sum", "host time", "count", "range"),
        rows[:top],
        name_column=4,
        notes=[
            "GPU time is the union of what was launched inside a range by its own thread, GPU sum its sum; "
            "ranges contain ranges."
        ],
    )
