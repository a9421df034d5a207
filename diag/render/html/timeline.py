"""What the page can draw of a case: rows at a level of detail that a file can hold, made while the case is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from diag.render.html.detail import MOST_BLOCKS, MOST_DETAIL, Blocks, Extent, blocks_of, kept_whole, resolution_for
from diag.render.html.encoding import bytes_of
from diag.render.html.places import Device, Window, around, places_of
from diag.render.timeline_rows import Group, Row, RowKind, picture_of
from diag.rules.finding import Finding
from diag.rules.report import Report
from diag.store.case import Case
from diag.timeline.intervals import Intervals
from diag.timeline.track import Slices, equal_parts, merged
from diag.timeline.track_store import Tracks

MOST_ROWS = 256
"""Of slices. Of more, devices and streams come first, then the busiest."""

MOST_COUNTERS = 64

COUNTER_BINS = 600
"""Of each counter the least and largest value in so many equal parts of the time."""

MOST_GAPS = 100
MOST_GAPS_OF_ALL = 1_000
"""Of each device the longest, and of all devices."""

MOST_BYTES = 1_250_000
"""Of all blocks in the page. Where times are so long that they take more, there are fewer blocks."""

FINDINGS_WITH_PLACES = 12
"""The first ones, each with a few places where it shows most."""

NAME_BYTES = 3
"""Of the number of a name."""


@dataclass(frozen=True, eq=False)
class Levels:
    """A counter in `COUNTER_BINS` bins; NaN before its first value."""

    least: NDArray[np.float64]
    most: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DrawnRow:
    kind: RowKind
    label: str
    unit: str | None
    count: int  # slices, or samples
    drawn: Blocks | Levels


@dataclass(frozen=True, eq=False)
class DrawnGroup:
    label: str
    source: int
    process: int | None  # pid
    device: int | None
    rows: Sequence[DrawnRow]
    gaps: Sequence[Window]  # of a device, the longest, in order of time


@dataclass(frozen=True, eq=False)
class Timeline:
    groups: Sequence[DrawnGroup]
    names: Mapping[int, str]  # by the ids that the rows hold
    patterns: Mapping[int, str]
    origin_ns: Mapping[int, int]  # by source: what is subtracted from its times
    length_ns: int
    resolution_ns: int  # 0 where every slice is there
    rows_left_out: int
    places: Mapping[str, Sequence[Window]]  # by finding id, where to look, the longest first
    whole: Sequence[Window]  # parts in which every slice is there

    @property
    def slices(self) -> int:
        return sum(row.count for group in self.groups for row in group.rows if isinstance(row.drawn, Blocks))

    @property
    def block_rows(self) -> Sequence[Blocks]:
        return [row.drawn for group in self.groups for row in group.rows if isinstance(row.drawn, Blocks)]


def timeline_of(case: Case, report: Report) -> Timeline:
    """Reads every slice of the case twice, a row at a time: to find the resolution, and to apply it."""
    making = _Making(case)
    making.look_for(report.findings)
    made = making.timeline(MOST_BLOCKS)
    while (taken := sum(bytes_of(row.numbers()) + NAME_BYTES * len(row) for row in made.block_rows)) > MOST_BYTES:
        made = making.timeline(int(sum(len(row) for row in made.block_rows) * 0.95 * MOST_BYTES / taken))
    return made


class _Making:
    """What is known of a case before it is decided how finely it is drawn."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tracks = Tracks(case)
        self.picture = picture_of(case, self.tracks)
        self.rows = [(group, row) for group in self.picture.groups for row in group.distinct_rows]
        self.shown = {id(row) for row in _shown([row for _, row in self.rows])}
        self.extents = [
            Extent.of(self._slices(group, row))
            for group, row in self.rows
            if id(row) in self.shown and row.kind != "counter"
        ]
        devices = [group for group in self.picture.groups if group.rows and group.rows[0].kind == "device"]
        most = min(MOST_GAPS, MOST_GAPS_OF_ALL // max(len(devices), 1))
        self.gaps = {_device(group): _gaps(self._slices(group, group.rows[0]).union, most) for group in devices}
        self.places: dict[str, Sequence[Window]] = {}

    def look_for(self, findings: Sequence[Finding]) -> None:
        for finding in findings[:FINDINGS_WITH_PLACES]:
            origin_ns = self.picture.origin_ns.get(finding.subject.source)
            if origin_ns is not None and (found := places_of(self.case, finding, origin_ns, self.gaps)):
                self.places[finding.id] = found

    def timeline(self, most_blocks: int) -> Timeline:
        length_ns = self.picture.length_ns
        resolution_ns = resolution_for(self.extents, length_ns, most_blocks)
        whole: Sequence[Window] = []
        if resolution_ns:
            detail = min(MOST_DETAIL, most_blocks // 4)
            resolution_ns = resolution_for(self.extents, length_ns, most_blocks - detail)
            wanted = [around(window, length_ns) for found in self.places.values() for window in found]
            whole = kept_whole(self.extents, wanted, detail)
        together = Intervals.union_of([start for start, _ in whole], [end for _, end in whole])
        return Timeline(
            groups=[
                made for group in self.picture.groups if (made := self._group(group, resolution_ns, together)).rows
            ],
            names=self.case.names,
            patterns=self.case.patterns,
            origin_ns=self.picture.origin_ns,
            length_ns=length_ns,
            resolution_ns=resolution_ns,
            rows_left_out=len(self.rows) - len(self.shown),
            places=self.places,
            whole=whole,
        )

    def _group(self, group: Group, resolution_ns: int, whole: Intervals) -> DrawnGroup:
        rows = [self._row(group, row, resolution_ns, whole) for row in group.distinct_rows if id(row) in self.shown]
        gaps = sorted(self.gaps.get(_device(group), ())) if group.device is not None else []
        return DrawnGroup(group.label, group.source, group.process, group.device, rows, gaps)

    def _row(self, group: Group, row: Row, resolution_ns: int, whole: Intervals) -> DrawnRow:
        count = sum(track.count for track in row.tracks)
        if row.kind == "counter":
            edges_ns = equal_parts(0, max(self.picture.length_ns, 1), COUNTER_BINS)
            samples = self.tracks.samples(row.tracks[0])
            levels = Levels(*samples.columns(edges_ns + self.picture.origin_ns[group.source]))
            return DrawnRow(row.kind, row.label, row.unit, count, levels)
        blocks = blocks_of(self._slices(group, row), resolution_ns, whole)
        return DrawnRow(row.kind, row.label_with_depth, row.unit, count, blocks)

    def _slices(self, group: Group, row: Row) -> Slices:
        """Of a row, on the axis of the picture."""
        together = merged([self.tracks.all_slices(track) for track in row.tracks])
        origin_ns = self.picture.origin_ns[group.source]
        return replace(together, start_ns=together.start_ns - origin_ns, end_ns=together.end_ns - origin_ns)


def _shown(rows: Sequence[Row]) -> Sequence[Row]:
    counters = [row for row in rows if row.kind == "counter"][:MOST_COUNTERS]
    others = [row for row in rows if row.kind != "counter"]
    others.sort(key=lambda row: (row.kind not in ("device", "stream"), -row.busy_ns))
    return [*others[:MOST_ROWS], *counters]


def _device(group: Group) -> Device:
    return group.source, group.process, group.device


def _gaps(busy: Intervals, most: int) -> Sequence[Window]:
    """Between the first operation and the last, the longest first."""
    if not busy:
        return []
    idle = busy.gaps(*busy.span)
    longest = np.argsort(-idle.lengths_ns, kind="stable")[:most]
    return [(int(idle.starts_ns[at]), int(idle.ends_ns[at])) for at in longest]
