"""The tables of the page: what each is of, and its columns."""

from __future__ import annotations

import re
from collections.abc import Callable

from diag.model import units
from diag.render import phrases, source_phrases
from diag.render.ceiling_table import ceiling_table
from diag.render.html.grid import MOST_ROWS, Column, grid, grid_of
from diag.render.kernel_tables import vendor
from diag.render.live_tables import live_devices, live_processes
from diag.render.measured_collective_table import measured_collectives
from diag.render.measurement_table import measurements
from diag.render.rank_tables import collectives, ranks
from diag.render.serving_tables import SERVING_TABLES
from diag.render.tables import hardware
from diag.rules.launch_report import LaunchRow
from diag.rules.report import Report
from diag.rules.timeline_report import CopyRow, DeviceRow, KernelRow, OperatorRow, RangeRow

MOST_STALLS = 3
"""Of a launch, those that take most."""

_SHAPE = re.compile(r"\[([\d,]+)\]")


def grids(report: Report) -> str:
    """Those that have something to say, in reading order."""
    return "".join(
        [
            grid_of("measurements", measurements(report, MOST_ROWS), len(report.measurements)),
            grid_of("measured-collectives", measured_collectives(report, MOST_ROWS)),
            *(grid_of(table_of.__name__.replace("_", "-"), table_of(report, MOST_ROWS)) for table_of in SERVING_TABLES),
            grid_of("live-devices", live_devices(report, MOST_ROWS), len(report.live_devices)),
            grid_of("live-processes", live_processes(report, MOST_ROWS), len(report.live_processes)),
            grid_of("ranks", ranks(report, MOST_ROWS), len(report.timeline_ranks)),
            grid_of("collectives", collectives(report, MOST_ROWS), len(report.collectives)),
            _kernels(report),
            _ranges(report),
            _operators(report),
            _launches(report),
            grid_of("vendor", vendor(report, MOST_ROWS)),
            _copies(report),
            grid_of("hardware", hardware(report, MOST_ROWS), len(report.hardware)),
            grid_of("ceilings", ceiling_table(report.ceilings)) if report.ceilings else "",
        ]
    )


def _where(report: Report, row: KernelRow | RangeRow | OperatorRow) -> str | None:
    """The device, where there are several."""
    device = phrases.device_of(report, row) if len(report.devices) > 1 else None
    return phrases.device(report, device) if device else None


def _kernels(report: Report) -> str:
    columns: list[Column[KernelRow]] = [
        Column("kernel", lambda row: row.name, is_long=True),
        Column(
            "of kernel time",
            lambda row: units.share(row.share_of_kernel_time),
            lambda row: row.share_of_kernel_time,
            lambda row: row.share_of_kernel_time,
            "Share of the sum over all kernels of its device",
        ),
        Column(
            "of window",
            lambda row: units.share(row.share_of_window),
            lambda row: row.share_of_window,
            about="Union of its launches over the window of its device",
        ),
        Column("total", lambda row: units.time(row.total_ns), lambda row: row.total_ns),
        Column("launches", lambda row: f"{row.count:,}", lambda row: row.count),
        Column("median", lambda row: units.time(row.median_ns), lambda row: row.median_ns),
        Column("shortest", lambda row: units.time(row.min_ns), lambda row: row.min_ns),
        Column("longest", lambda row: units.time(row.max_ns), lambda row: row.max_ns),
        Column(
            "occupancy",
            lambda row: f"{row.occupancy.theoretical_pct:.0f} %" if row.occupancy else None,
            lambda row: row.occupancy.theoretical_pct if row.occupancy else None,
            about="Theoretical: the warps that can reside on an SM, of those that it has room for",
        ),
        Column("limited by", lambda row: ", ".join(row.occupancy.limiters) or None if row.occupancy else None),
        Column("bound", lambda row: row.roofline.bound if row.roofline else None),
        Column("device", lambda row: _where(report, row)),
    ]
    return grid("kernels", "Kernels", columns, report.kernels)


def _ranges(report: Report) -> str:
    columns: list[Column[RangeRow]] = [
        Column("range", lambda row: row.name, is_long=True),
        Column("GPU time", lambda row: units.time(row.gpu_ns), lambda row: row.gpu_ns, about="Union of its operations"),
        Column("GPU sum", lambda row: units.time(row.gpu_sum_ns), lambda row: row.gpu_sum_ns, about="Sum of durations"),
        Column("host time", lambda row: units.time(row.host_ns), lambda row: row.host_ns),
        Column("count", lambda row: f"{row.count:,}", lambda row: row.count),
        Column("device", lambda row: _where(report, row)),
    ]
    note = "GPU time is the union of what was launched inside a range by its own thread. Ranges contain ranges."
    return grid("ranges", "Ranges", columns, report.ranges, note)


def _operators(report: Report) -> str:
    columns: list[Column[OperatorRow]] = [
        Column("operator", lambda row: row.name, is_long=True),
        Column("GPU time", lambda row: units.time(row.gpu_ns), lambda row: row.gpu_ns),
        Column(
            "of window",
            lambda row: units.share(row.share_of_window),
            lambda row: row.share_of_window,
            lambda row: row.share_of_window,
        ),
        Column(
            "of its roof",
            lambda row: None if row.roof_share is None else f"{row.nearest} {units.share(row.roof_share)}",
            lambda row: row.roof_share,
        ),
        Column("work", lambda row: units.quantity(row.flops_per_s, "FLOP/s"), lambda row: row.flops_per_s),
        Column(
            "traffic",
            lambda row: None if row.bytes_per_s is None else units.rate(row.bytes_per_s, 1e9),
            lambda row: row.bytes_per_s,
        ),
        Column(
            "FLOP/byte",
            lambda row: None if row.intensity is None else f"{row.intensity:.3g}",
            lambda row: row.intensity,
        ),
        Column("calls", lambda row: f"{row.count:,}", lambda row: row.count),
        Column("bound", lambda row: row.bound),
        Column("device", lambda row: _where(report, row)),
        Column("type", lambda row: row.dtype),
        Column("shapes", lambda row: ", ".join(part.replace(",", "×") for part in _SHAPE.findall(row.shapes))),
    ]
    note = "Work is modelled: FLOPs of the definition, and each tensor moved once. Caches and recomputing change both."
    return grid("operators", "Operators", columns, report.operators, note)


def _launches(report: Report) -> str:
    many = len(report.sources) > 1
    columns: list[Column[LaunchRow]] = [
        Column("kernel", lambda row: f"{row.short_name} {row.configuration}", is_long=True),
        Column("number", lambda row: str(row.number), lambda row: row.number),
        Column(
            "duration",
            lambda row: None if row.duration_ns is None else units.time(row.duration_ns),
            lambda row: row.duration_ns,
        ),
        Column("bound", lambda row: row.bound),
        _percent("SM", lambda row: row.sol.sm_pct, "Speed of light of the SMs"),
        _percent("memory", lambda row: row.sol.memory_pct, "Speed of light of the memory"),
        _percent("DRAM", lambda row: row.sol.dram_pct, "Speed of light of the device memory"),
        _percent(
            "occupancy", lambda row: row.occupancy.achieved_pct if row.occupancy else None, "Achieved, on average"
        ),
        _percent(
            "at most", lambda row: row.occupancy.theoretical_pct if row.occupancy else None, "Theoretical occupancy"
        ),
        Column("limited by", lambda row: ", ".join(row.occupancy.limiters) or None if row.occupancy else None),
        Column(
            "waves",
            lambda row: f"{row.occupancy.waves:.2f}" if row.occupancy and row.occupancy.waves is not None else None,
            lambda row: row.occupancy.waves if row.occupancy else None,
        ),
        Column(
            "registers",
            lambda row: None if row.registers_per_thread is None else str(row.registers_per_thread),
            lambda row: row.registers_per_thread,
        ),
        Column("waits for", _stalls, about="Reasons for which warps stalled most"),
        Column("input", lambda row: source_phrases.short_name(report, row.source) if many else None),
    ]
    notes = ["SM, memory, DRAM: speed of light of each, in percent of its peak."] if report.launches else []
    return grid("launches", "Launches that Nsight Compute measured", columns, report.launches, *notes)


def _percent(header: str, of: Callable[[LaunchRow], float | None], about: str) -> Column[LaunchRow]:
    def said(row: LaunchRow) -> str | None:
        value = of(row)
        return None if value is None else f"{value:.1f} %"

    return Column(header, said, of, about=about)


def _stalls(row: LaunchRow) -> str | None:
    longest = sorted(row.stalls, key=lambda stall: -stall.share)[:MOST_STALLS]
    return ", ".join(f"{stall.reason} {units.share(stall.share)}" for stall in longest) or None


def _copies(report: Report) -> str:
    rows = [(device, copy) for device in report.devices for copy in device.copies]
    columns: list[Column[tuple[DeviceRow, CopyRow]]] = [
        Column("busy", lambda row: units.time(row[1].busy_ns), lambda row: row[1].busy_ns, about="Union of the copies"),
        Column("count", lambda row: f"{row[1].count:,}", lambda row: row[1].count),
        Column("size", lambda row: units.size(row[1].bytes), lambda row: row[1].bytes),
        Column("rate", lambda row: units.rate(row[1].bytes, row[1].busy_ns), lambda row: _rate(row[1])),
        Column("kind", lambda row: row[1].kind),
        Column("from", lambda row: row[1].src),
        Column("to", lambda row: row[1].dst),
        Column("device", lambda row: phrases.device(report, row[0]) if len(report.devices) > 1 else None),
    ]
    return grid("copies", "Copies", columns, rows)


def _rate(copy: CopyRow) -> float | None:
    return copy.bytes / copy.busy_ns if copy.busy_ns else None
