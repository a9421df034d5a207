"""Which launches of a profile by Nsight Compute are drawn, and what each is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.rules.launch_report import LaunchRow
from diag.rules.report import Report

MOST_LAUNCHES = 10


@dataclass(frozen=True)
class Chosen:
    """Launches that speak for all alike, those that stand for most time first."""

    rows: Sequence[LaunchRow]
    left_out: int
    alike: Counter[str]  # launches by the id of the one that speaks for them

    @property
    def notes(self) -> list[str]:
        return [f"{units.count(self.left_out, 'more kernel')} with less time not drawn."] if self.left_out else []

    def heading(self, row: LaunchRow) -> str:
        count = self.alike[row.id]
        times = f"{units.count(count, 'launch')}, " if count > 1 else ""
        lasts = "" if row.duration_ns is None else f": {times}{units.time(row.duration_ns)}{' each' if times else ''}"
        return f"{row.short_name} {row.configuration}{lasts}"


def chosen(report: Report, has: Callable[[LaunchRow], bool]) -> Chosen:
    alike = Counter(row.spoken_for_by for row in report.launches)
    rows = [row for row in report.launches if row.id == row.spoken_for_by and has(row)]
    rows.sort(key=lambda row: -(row.duration_ns or 0) * alike[row.id])
    return Chosen(rows[:MOST_LAUNCHES], len(rows[MOST_LAUNCHES:]), alike)
