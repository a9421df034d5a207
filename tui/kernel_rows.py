"""The rows of the Kernels screen: all kernels of a report, each by itself or grouped by name, and what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from diag.launches.placement import comparable
from diag.model import units
from diag.render.table import NOT_CAPTURED
from diag.render.tables import with_arguments
from diag.rules.launch_report import LaunchRow
from diag.rules.report import Report
from diag.rules.timeline_report import KernelRow
from diag.store.names import pattern_of
from diag.tui.widgets.row_table import Column

NOT_PROFILED = "Nsight Compute has not profiled this kernel: open its report together with this trace."


@dataclass(frozen=True)
class Entry:
    """A kernel on one device, or on all of them. `kernel_ns` is the kernel time of those devices together."""

    parts: Sequence[KernelRow]
    kernel_ns: int

    @property
    def name(self) -> str:
        return self.parts[0].name

    @property
    def short_name(self) -> str:
        return self.parts[0].short_name

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def total_ns(self) -> int:
        return sum(part.total_ns for part in self.parts)

    @property
    def share(self) -> float:
        """Of the kernel time."""
        return self.total_ns / self.kernel_ns if self.kernel_ns else 0.0

    @property
    def share_of_window(self) -> float:
        """Of several devices the largest."""
        return max(part.share_of_window for part in self.parts)

    @property
    def median_ns(self) -> int:
        """Of several devices the largest."""
        return max(part.median_ns for part in self.parts)

    @property
    def min_ns(self) -> int:
        return min(part.min_ns for part in self.parts)

    @property
    def max_ns(self) -> int:
        return max(part.max_ns for part in self.parts)

    @property
    def occupancy_pct(self) -> float | None:
        """Theoretical; of several devices the lowest."""
        return min((part.occupancy.theoretical_pct for part in self.parts if part.occupancy), default=None)

    @property
    def roof(self) -> tuple[str, float] | None:
        """The roof that its profile is nearest to, and how near."""
        of = next((part.roofline for part in self.parts if part.roofline), None)
        return None if of is None else (of.nearest, 1 - of.headroom)

    @property
    def device(self) -> tuple[int, int, int]:
        part = self.parts[0]
        return part.source, part.process, part.device

    @cached_property
    def searched(self) -> str:
        return self.name.casefold()

    @cached_property
    def pattern(self) -> str:
        return pattern_of(self.name).casefold()


def entries(report: Report, *, is_grouped: bool) -> list[Entry]:
    """All kernels, by device or, of the same name, together."""
    kernel_ns: dict[tuple[int, int, int], int] = {}
    for row in report.kernels:
        key = (row.source, row.process, row.device)
        kernel_ns[key] = kernel_ns.get(key, 0) + row.total_ns
    if not is_grouped:
        return [Entry([row], kernel_ns[row.source, row.process, row.device]) for row in report.kernels]
    by_name: dict[str, list[KernelRow]] = {}
    for row in report.kernels:
        by_name.setdefault(row.name, []).append(row)
    return [Entry(rows, sum(kernel_ns.values())) for rows in by_name.values()]


def named(report: Report, name: str) -> Entry | None:
    """The kernel of this name on all devices, as it is spelt or as another tool would spell it."""
    grouped = {entry.name: entry for entry in entries(report, is_grouped=True)}
    alike = (entry for entry in grouped.values() if comparable(entry.name) == comparable(name))
    return grouped.get(name) or next(alike, None)


def matching(rows: Sequence[Entry], wanted: str) -> list[Entry]:
    """Those whose name has this part; with '#' in it, their pattern, in which that stands for any number."""
    part = wanted.casefold()
    return [row for row in rows if part in (row.pattern if "#" in part else row.searched)]


def columns(rows: Sequence[Entry]) -> list[Column[Entry]]:
    """The most telling first; without those for which no kernel has anything."""
    several = len({row.device for row in rows}) > 1
    names = names_apart(rows)
    is_grouped = any(len(row.parts) > 1 for row in rows)
    made: list[Column[Entry]] = [
        Column("share", "share", 7, lambda row: units.share(row.share), lambda row: row.share),
        Column("total", "total", 9, lambda row: units.time(row.total_ns), lambda row: row.total_ns),
        Column("count", "launches", 10, lambda row: f"{row.count:,}", lambda row: row.count),
        Column("median", "median", 9, _median, lambda row: row.median_ns),
    ]
    if any(row.occupancy_pct is not None for row in rows):
        made.append(Column("occ", "occ.", 6, _occupancy, lambda row: row.occupancy_pct))
    if any(row.roof for row in rows):
        made.append(Column("roof", "nearest roof", 16, _roof, lambda row: row.roof[1] if row.roof else None))
    if several and not is_grouped:
        made.append(Column("device", "device", 18, _device, lambda row: tuple(-part for part in row.device)))
    made += [
        Column("window", "of window", 10, _window, lambda row: row.share_of_window),
        Column("max", "max", 9, lambda row: units.time(row.max_ns), lambda row: row.max_ns),
        Column("min", "min", 9, lambda row: units.time(row.min_ns), lambda row: row.min_ns),
        Column("kernel", "kernel", None, lambda row: names[row.name], lambda row: row.searched),
    ]
    return made


def names_apart(rows: Sequence[Entry]) -> Mapping[str, str]:
    """By full name the short one, with template arguments where another kernel has the same."""
    full = {row.name: row.parts[0] for row in rows}
    alike = Counter(part.short_name for part in full.values())
    return {
        name: with_arguments(part) if alike[part.short_name] > 1 else part.short_name for name, part in full.items()
    }


def _at_most(text: str, row: Entry) -> str:
    """What several devices share is known of each alone."""
    return f"≤ {text}" if len(row.parts) > 1 else text


def _median(row: Entry) -> str:
    return _at_most(units.time(row.median_ns), row)


def _window(row: Entry) -> str:
    return _at_most(units.share(row.share_of_window), row)


def _occupancy(row: Entry) -> str:
    return NOT_CAPTURED if row.occupancy_pct is None else f"{row.occupancy_pct:.0f} %"


def _roof(row: Entry) -> str:
    return NOT_CAPTURED if row.roof is None else f"{row.roof[0]} {units.share(row.roof[1])}"


def _device(row: Entry) -> str:
    _, process, device = row.device
    return f"GPU {device}, pid {process}"


def profiles(report: Report) -> Mapping[str, LaunchRow]:
    """The launches that speak for kernels, by names as any tool would spell them; of several the first."""
    found: dict[str, LaunchRow] = {}
    for name, profiled in report.profiled.items():
        row = next(iter(profiled.launches.values()))
        found.setdefault(comparable(name), row)
        found.setdefault(comparable(row.short_name), row)
    return found


def profile_named(report: Report, name: str) -> LaunchRow | None:
    """The launch that speaks for the kernel of this name in a timeline."""
    entry = named(report, name)
    return None if entry is None else profile_of(profiles(report), entry)


def profile_of(profiled: Mapping[str, LaunchRow], entry: Entry) -> LaunchRow | None:
    return profiled.get(comparable(entry.name)) or profiled.get(comparable(entry.short_name))
