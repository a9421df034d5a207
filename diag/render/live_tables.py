"""The tables of a workload that was watched: its devices and its processes."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.render import phrases, source_phrases
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.live_rows import LiveDeviceRow, LiveProcessRow
from diag.rules.report import Report


def live_devices(report: Report, top: int) -> Table:
    """Those whose kernels were resident least come first where not all are shown."""
    rows = list(report.live_devices)
    if len(rows) > max(top, phrases.FEW_ROWS):
        rows = sorted(rows, key=lambda row: row.resident_pct or 0.0)[: max(top, phrases.FEW_ROWS)]
    return Table(
        "Devices as they were watched",
        ("resident", "SM active", "memory", "full", "power", "clock", "hottest", "device"),
        [_device(report, row) for row in rows],
        name_column=7,
        notes=list(_device_notes(report, len(rows))),
        wraps_names=True,
    )


def _device(report: Report, row: LiveDeviceRow) -> list[str]:
    return [
        _known(row.resident_pct, "%"),
        _known(row.sm_active_pct, "%"),
        _known(row.memory_active_pct, "%"),
        _of(row.memory_used_max_bytes, row.memory_total_bytes),
        _of(row.power_w, row.power_limit_w),
        _of(row.sm_clock_hz, row.sm_clock_max_hz),
        _known(row.temperature_max_c, "°C"),
        ", ".join(filter(None, (f"GPU {row.device}", row.name, row.mig_profile, _where(report, row.source)))),
    ]


def _device_notes(report: Report, shown: int) -> Iterator[str]:
    rows = report.live_devices
    if shown < len(rows):
        yield phrases.more(len(rows), shown)
    if rows:
        longest = max(rows, key=lambda row: row.window_ns)
        seen = units.count(longest.snapshots, "snapshot")
        yield f"Means over {units.time(longest.window_ns)}, of {seen}; full: at its most, of all memory."
        yield "Resident: share of the time with a kernel on the device, however little it does (utilization.gpu)."
        yield "Power and clock: of the limit, and of the highest."


def live_processes(report: Report, top: int) -> Table:
    rows = report.live_processes[: max(top, phrases.FEW_ROWS)]
    hidden = [phrases.more(len(report.live_processes), len(rows))] if len(rows) < len(report.live_processes) else []
    return Table(
        "Processes as they were watched",
        ("cores", "busiest thread", "memory", "reads", "threads", "process"),
        [_process(report, row) for row in rows],
        name_column=5,
        notes=hidden,
        wraps_names=True,
    )


def _process(report: Report, row: LiveProcessRow) -> list[str]:
    rank = "" if row.rank is None else f"rank {row.rank}"
    ended = "ended" if row.state in ("Z", "X") else ""
    return [
        NOT_CAPTURED if row.cores is None else f"{row.cores:.2f}",
        NOT_CAPTURED if row.busiest_cores is None else f"{row.busiest_cores:.2f}",
        NOT_CAPTURED if row.resident_max_bytes is None else units.size(row.resident_max_bytes),
        NOT_CAPTURED if row.read_bytes_per_s is None else f"{units.size(row.read_bytes_per_s)}/s",
        f"{row.threads}",
        ", ".join(filter(None, (row.name, f"pid {row.process}", rank, ended, _where(report, row.source)))),
    ]


def _known(value: float | None, unit: str) -> str:
    return NOT_CAPTURED if value is None else units.quantity(value, unit)


def _of(value: float | None, whole: float | None) -> str:
    return NOT_CAPTURED if value is None or not whole else units.share(value / whole)


def _where(report: Report, source_id: int) -> str:
    return source_phrases.short_name(report, source_id) if len(report.sources) > 1 else ""
