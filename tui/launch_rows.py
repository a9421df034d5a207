"""The rows of the list of launches: each by itself, or those of one kernel in one configuration together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model import units
from diag.render.table import NOT_CAPTURED
from diag.rules.launch_report import LaunchRow
from diag.rules.report import Report
from diag.tui.widgets.row_table import Column


@dataclass(frozen=True)
class Entry:
    """`row` is the launch, or the one that speaks for the group; `count` and `total_ns` are of all of them."""

    row: LaunchRow
    count: int
    total_ns: float | None

    @property
    def searched(self) -> str:
        return self.row.name.casefold()


def entries(report: Report, *, is_grouped: bool) -> list[Entry]:
    if not is_grouped:
        return [Entry(row, 1, row.duration_ns) for row in report.launches]
    alike: dict[str, list[LaunchRow]] = {}
    for row in report.launches:
        alike.setdefault(row.spoken_for_by, []).append(row)
    return [_group(rows) for rows in alike.values()]


def _group(rows: Sequence[LaunchRow]) -> Entry:
    speaker = next(row for row in rows if row.id == row.spoken_for_by)
    durations = [row.duration_ns for row in rows if row.duration_ns is not None]
    return Entry(speaker, len(rows), sum(durations) if durations else None)


def matching(rows: Sequence[Entry], wanted: str) -> list[Entry]:
    """Those whose name has this part."""
    return [row for row in rows if wanted.casefold() in row.searched]


def columns(rows: Sequence[Entry]) -> list[Column[Entry]]:
    is_grouped = any(row.count > 1 for row in rows)
    count: Column[Entry] = Column("count", "launches", 9, lambda row: f"{row.count:,}", lambda row: row.count)
    speaker: Column[Entry] = Column("speaker", "spoken for by", 13, lambda row: row.row.spoken_for_by)
    return [
        Column("time", "profiled", 9, lambda row: _time(row.total_ns), lambda row: row.total_ns),
        *([count] if is_grouped else []),
        Column("sm", "SM", 7, lambda row: _percent(row.row.sol.sm_pct), lambda row: row.row.sol.sm_pct),
        Column("memory", "memory", 7, lambda row: _percent(row.row.sol.memory_pct), lambda row: row.row.sol.memory_pct),
        Column("bound", "bound", 8, lambda row: row.row.bound or NOT_CAPTURED, lambda row: row.row.bound),
        Column("id", "id", 8, lambda row: row.row.id, lambda row: (-row.row.source, -row.row.number)),
        Column("dram", "DRAM", 7, lambda row: _percent(row.row.sol.dram_pct), lambda row: row.row.sol.dram_pct),
        *([] if is_grouped else [speaker]),
        Column("name", "kernel", None, lambda row: f"{row.row.short_name} {row.row.configuration}", _name),
    ]


def _name(row: Entry) -> str:
    return row.searched


def _time(ns: float | None) -> str:
    return NOT_CAPTURED if ns is None else units.time(ns)


def _percent(value: float | None) -> str:
    return NOT_CAPTURED if value is None else f"{value:.1f} %"
