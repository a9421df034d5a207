"""What the page can draw of a case: rows at a level of detail that a file can hold, made while the case is open."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from diag.render.html.detail import Blocks, Extent, blocks_of, kept_whole, resolution_for
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
"""Of each device, the longest."""

FINDINGS_WITH_PLACES = 12
PLACES = 3
"""Of a finding, where the longest rows behind its first figure lie."""

Window = tuple[int, int]
"""ns on the axis of the picture."""


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


def timeline_of(case: Case, report: Report) -> Timeline:
    """Reads every slice of the case twice, a row at a time: to find the resolution, and to apply it."""
    tracks = Tracks(case)
    picture = picture_of(case, tracks)
    rows = [(at, row) for at, group in enumerate(picture.groups) for row in _worth_drawing(group)]
    shown = _shown([row for _, row in rows])
    origins = [picture.origin_ns[group.source] for group in picture.groups]
    loaded = _Loader(tracks)
    extents = [Extent.of(loaded.slices(row, origins[at])) for at, row in rows if row in shown and row.kind != "counter"]
    gaps = {
        at: _gaps(loaded.slices(group.rows[0], origins[at]).union)
        for at, group in enumerate(picture.groups)
        if group.rows and group.rows[0].kind == "device"
    }
    gaps_of = {_device(group): gaps[at] for at, group in enumerate(picture.groups) if at in gaps}
    places = {
        finding.id: found
        for finding in report.findings[:FINDINGS_WITH_PLACES]
        if finding.subject.source in picture.origin_ns
        and (found := _places(case, finding, picture.origin_ns[finding.subject.source], gaps_of))
    }
    resolution_ns = resolution_for(extents, picture.length_ns)
    wanted = [_around(window, picture.length_ns) for found in places.values() for window in found]
    whole = kept_whole(extents, wanted) if resolution_ns else []
    del extents
    together = Intervals.union_of([start for start, _ in whole], [end for _, end in whole])
    edges_ns = equal_parts(0, max(picture.length_ns, 1), COUNTER_BINS)

    def drawn(row: Row, origin_ns: int) -> DrawnRow:
        count = sum(track.count for track in row.tracks)
        if row.kind == "counter":
            levels = Levels(*tracks.samples(row.tracks[0]).columns(edges_ns + origin_ns))
            return DrawnRow(row.kind, row.label, row.unit, count, levels)
        blocks = blocks_of(loaded.slices(row, origin_ns), resolution_ns, together)
        return DrawnRow(row.kind, row.label, row.unit, count, blocks)

    groups = [
        DrawnGroup(
            label=group.label,
            source=group.source,
            process=group.process,
            device=group.device,
            rows=[drawn(row, origins[at]) for row in _worth_drawing(group) if row in shown],
            gaps=sorted(gaps.get(at, ())),
        )
        for at, group in enumerate(picture.groups)
    ]
    return Timeline(
        groups=[group for group in groups if group.rows],
        names=case.names,
        patterns=case.patterns,
        origin_ns=picture.origin_ns,
        length_ns=picture.length_ns,
        resolution_ns=resolution_ns,
        rows_left_out=len(rows) - len(shown),
        places=places,
        whole=whole,
    )


class _Loader:
    """Slices of a row on the axis of the picture."""

    def __init__(self, tracks: Tracks) -> None:
        self._tracks = tracks

    def slices(self, row: Row, origin_ns: int) -> Slices:
        together = merged([self._tracks.all_slices(track) for track in row.tracks])
        return replace(together, start_ns=together.start_ns - origin_ns, end_ns=together.end_ns - origin_ns)


def _worth_drawing(group: Group) -> Sequence[Row]:
    """The row of a device is that of its stream where it has one only."""
    has_one_stream = sum(row.kind == "stream" for row in group.rows) == 1
    return [row for row in group.rows if not (row.kind == "stream" and has_one_stream)]


def _shown(rows: Sequence[Row]) -> Sequence[Row]:
    counters = [row for row in rows if row.kind == "counter"][:MOST_COUNTERS]
    others = [row for row in rows if row.kind != "counter"]
    others.sort(key=lambda row: (row.kind not in ("device", "stream"), -sum(track.busy_ns for track in row.tracks)))
    return [*others[:MOST_ROWS], *counters]


Device = tuple[int, int | None, int | None]


def _device(group: Group) -> Device:
    return group.source, group.process, group.device


def _gaps(busy: Intervals) -> Sequence[Window]:
    """Between the first operation and the last, the longest first."""
    if not busy:
        return []
    idle = busy.gaps(*busy.span)
    longest = np.argsort(-idle.lengths_ns, kind="stable")[:MOST_GAPS]
    return [(int(idle.starts_ns[at]), int(idle.ends_ns[at])) for at in longest]


# ---- where to look for a finding -----------------------------------------------------------------------------------


def _places(case: Case, finding: Finding, origin_ns: int, gaps: Mapping[Device, Sequence[Window]]) -> Sequence[Window]:
    """Where a finding shows most: the longest gaps of its device, or the longest rows behind its first figure."""
    about = finding.subject
    if finding.rule == "idle.gpu":
        return gaps.get((about.source, about.process, about.device), ())[:PLACES]
    queries = (evidence.sql for evidence in finding.evidence if evidence.sql)
    found = (_longest_rows(case, sql) for sql in queries)
    rows = next((rows for rows in found if rows), [])
    return [(start - origin_ns, end - origin_ns) for start, end in rows]


def _longest_rows(case: Case, sql: str) -> list[Window]:
    """Start and end of the longest rows of a query; none where its rows have no times."""
    try:
        rows = case.db.execute(_LONGEST.format(sql=sql.strip().rstrip(";"), most=PLACES)).fetchall()
    except sqlite3.OperationalError:  # it has no such columns
        return []
    return [(start, end) for start, end in rows]


_LONGEST = """
    SELECT start_ns, end_ns
      FROM ({sql})
     WHERE end_ns > start_ns
     ORDER BY end_ns - start_ns DESC, start_ns
     LIMIT {most:d}
"""


def _around(place: Window, length_ns: int) -> Window:
    """With as much before and after, so that one sees what led to it."""
    start, end = place
    margin = end - start
    return max(0, start - margin), min(length_ns, end + margin)
