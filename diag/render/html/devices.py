"""How busy each device was, as bars beside their numbers."""

from __future__ import annotations

from diag.model import units
from diag.render import phrases
from diag.render.html.grid import Column, grid
from diag.render.tables import devices as device_table
from diag.rules.report import Report
from diag.rules.timeline_report import DeviceRow

EVERY_ROW = 1 << 30


def devices(report: Report) -> str:
    """One row for each (process, device): shares of its window where they mean something, else times."""

    communicates = any(row.comm_ns for row in report.devices)

    def part(header: str, of_ns: str, fact: str | None = None, about: str = "") -> Column[DeviceRow]:
        def known(row: DeviceRow) -> float | None:
            is_known = fact is None or phrases.captured(report, row, fact)
            return float(getattr(row, of_ns)) if is_known else None

        def share(row: DeviceRow) -> float | None:
            ns = known(row)
            return ns / row.window_ns if ns is not None and row.has_shares else None

        def said(row: DeviceRow) -> str | None:
            ns, of_window = known(row), share(row)
            if ns is None:
                return None
            return units.time(ns) if of_window is None else f"{units.share(of_window)} {units.time(ns)}"

        return Column(header, said, known, share, about)

    columns: list[Column[DeviceRow]] = [
        Column("device", lambda row: phrases.device(report, row, hardware=True)),
        Column("window", lambda row: units.time(row.window_ns), lambda row: row.window_ns),
        part("busy", "busy_ns", about="Union of all operations"),
        part("idle", "idle_ns"),
        part("kernels", "kernel_ns", "kernel"),
        part("copies", "copy_ns", "copy"),
        *([part("communication", "comm_ns", "kernel")] if communicates else []),
        *(
            [part("exposed", "exposed_comm_ns", "kernel", "Communication while nothing else runs")]
            if communicates
            else []
        ),
    ]
    return grid("devices", "Devices", columns, report.devices, *device_table(report, EVERY_ROW).notes)
