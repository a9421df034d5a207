"""A frame: the lines of a part of time, drawn, and what lies under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.timeline.intervals import Times
from diag.timeline.track import Columns, Slices, Track, equal_parts
from diag.tui.timeline.cells import Cells
from diag.tui.timeline.drawing import Looks, counter_cells, mark_gaps, slice_cells, write_names
from diag.tui.timeline.lines import Line
from diag.tui.timeline.material import Material
from diag.tui.timeline.part import Part
from diag.tui.timeline.ruler import exact


@dataclass(frozen=True, eq=False)
class Order:
    """What to draw. `selected` is the line of the cursor, drawn or not."""

    part: Part
    lines: Sequence[Line]
    selected: Line
    overview: Line
    cursor_ns: int
    looks: Looks


@dataclass(frozen=True, eq=False)
class Frame:
    part: Part
    cells: dict[tuple[int, int], list[Cells]]  # by key of the line: one for each of its terminal lines
    overview: Cells
    under: str  # text from the trace: it is to be made safe
    scales: dict[tuple[int, int], str]  # of counters


def frame_of(material: Material, order: Order) -> Frame:
    scales = {line.key: _scale_text(material, line) for line in order.lines if line.kind == "counter"}
    return Frame(
        part=order.part,
        cells={line.key: line_cells(material, line, order.part, order.looks) for line in order.lines},
        overview=line_cells(material, order.overview, order.part.all(), order.looks)[0],
        under=under_cursor(material, order.selected, order.part, order.cursor_ns),
        scales=scales,
    )


def line_cells(material: Material, line: Line, part: Part, looks: Looks) -> list[Cells]:
    edges_ns = part.edges_ns + material.picture.origin_ns[line.group.source]
    if line.kind == "counter":
        return _counter(material, line, edges_ns)
    if line.kind == "device":
        return [_device(material, line, edges_ns, looks)]
    if line.steps is not None:
        drawn = slice_cells(line.steps.slices.columns(edges_ns), edges_ns, looks)
        write_names(drawn, line.steps.slices, edges_ns, looks, partial(material.title, line.steps.slices))
        return [drawn]
    if not line.tracks:
        return [Cells.blank(part.columns)]
    return [_track(material, line.tracks[0], edges_ns, looks)]


def _track(material: Material, track: Track, edges_ns: Times, looks: Looks) -> Cells:
    if material.tracks.sums_up(track, edges_ns):
        return slice_cells(material.tracks.columns(track, edges_ns), edges_ns, looks)
    slices = material.tracks.slices(track, int(edges_ns[0]), int(edges_ns[-1]))
    drawn = slice_cells(slices.columns(edges_ns), edges_ns, looks)
    write_names(drawn, slices, edges_ns, looks, partial(material.title, slices))
    return drawn


def _device(material: Material, line: Line, edges_ns: Times, looks: Looks) -> Cells:
    device = material.device(line.tracks)
    busy_ns = device.busy_between(edges_ns)
    of_streams = [material.tracks.columns(track, edges_ns) for track in line.tracks]
    drawn = slice_cells(replace(_foremost(of_streams), busy_ns=busy_ns), edges_ns, looks)
    mark_gaps(drawn, busy_ns, edges_ns, device.window, looks)
    return drawn


def _foremost(parts: Sequence[Columns]) -> Columns:
    """In each column that of the parts which is busiest; counts are those of all of them."""
    busy_ns = np.stack([part.busy_ns for part in parts])
    first = np.argmax(busy_ns, axis=0)

    def chosen(columns: list[NDArray[np.int64]] | list[NDArray[np.int8]]) -> NDArray[np.int64]:
        return np.asarray(np.take_along_axis(np.stack(columns), first[None], axis=0)[0], np.int64)

    return Columns(
        busy_ns.max(axis=0),
        np.sum([part.count for part in parts], axis=0),
        chosen([part.name_id for part in parts]),
        chosen([part.activity for part in parts]).astype(np.int8),
    )


def _counter(material: Material, line: Line, edges_ns: Times) -> list[Cells]:
    (track,) = line.tracks
    samples = material.tracks.samples(track)
    halves = equal_parts(int(edges_ns[0]), int(edges_ns[-1]), 2 * (len(edges_ns) - 1))
    halves[::2] = edges_ns
    scale = material.scale(track, samples, line.unit)
    return counter_cells(samples, halves, scale, line.height)


def _scale_text(material: Material, line: Line) -> str:
    (track,) = line.tracks
    low, high = material.scale(track, material.tracks.samples(track), line.unit)
    return f"{low:.4g} to {high:.4g} {line.unit or ''}".rstrip()


# ---- what lies under the cursor ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A slice, on the clock of its source."""

    track: Track | None  # None: a step
    start_ns: int
    end_ns: int
    title: str
    row_id: int


def slice_at(material: Material, line: Line, part: Part, cursor_ns: int) -> Found | None:
    """The slice at the time of the cursor, else the longest one in its column."""
    origin_ns = material.picture.origin_ns[line.group.source]
    left_ns, right_ns = (edge + origin_ns for edge in part.span_of(part.column_of(cursor_ns)))
    found = [
        (at is None, slices.start_ns[best] - slices.end_ns[best], _found(material, track, slices, best))
        for track, slices in slices_of(material, line, left_ns, right_ns)
        for at in [slices.at(cursor_ns + origin_ns)]
        for best in [at if at is not None else _longest(slices, left_ns, right_ns)]
        if best is not None
    ]
    return min(found, key=lambda each: each[:2])[2] if found else None


def slices_of(material: Material, line: Line, start_ns: int, end_ns: int) -> list[tuple[Track | None, Slices]]:
    """At least the slices of a line that touch `[start_ns, end_ns)`, on its source's clock, by track."""
    if line.steps is not None:
        return [(None, line.steps.slices)]
    if line.kind == "counter":
        return []
    return [(track, material.tracks.slices(track, start_ns, end_ns)) for track in line.tracks]


def _longest(slices: Slices, left_ns: int, right_ns: int) -> int | None:
    around = slices.touching(left_ns, right_ns)
    inside = np.minimum(slices.end_ns[around], right_ns) - np.maximum(slices.start_ns[around], left_ns)
    touches = np.flatnonzero((inside > 0) | (slices.start_ns[around] >= left_ns))
    return around.start + int(touches[np.argmax(inside[touches])]) if len(touches) else None


def _found(material: Material, track: Track | None, slices: Slices, at: int) -> Found:
    start_ns, end_ns = int(slices.start_ns[at]), int(slices.end_ns[at])
    return Found(track, start_ns, end_ns, material.title(slices, at), int(slices.row_id[at]))


def under_cursor(material: Material, line: Line, part: Part, cursor_ns: int) -> str:
    """Name and times of what lies there, and how many others share its column."""
    if line.kind == "counter":
        return _value_at(material, line, cursor_ns)
    origin_ns = material.picture.origin_ns[line.group.source]
    if line.kind == "device":
        device = material.device(line.tracks)
        if gap := device.gap_at(cursor_ns + origin_ns):
            return f"idle for {units.time(gap[1] - gap[0])} from {exact(gap[0] - origin_ns)}"
    found = slice_at(material, line, part, cursor_ns)
    if found is None:
        return "nothing"
    length = units.time(found.end_ns - found.start_ns)
    text = f"{found.title} · {length} from {exact(found.start_ns - origin_ns)}"
    count = _count_in_column(material, line, part, cursor_ns)
    return f"{text} · one of {count:,} in this column" if count > 1 else text


def _count_in_column(material: Material, line: Line, part: Part, cursor_ns: int) -> int:
    left_ns, right_ns = part.span_of(part.column_of(cursor_ns))
    origin_ns = material.picture.origin_ns[line.group.source]
    edges_ns = np.array([left_ns, right_ns]) + origin_ns
    if line.steps is not None:
        return int(line.steps.slices.columns(edges_ns).count[0])
    return sum(int(material.tracks.columns(track, edges_ns).count[0]) for track in line.tracks)


def _value_at(material: Material, line: Line, cursor_ns: int) -> str:
    (track,) = line.tracks
    samples = material.tracks.samples(track)
    time_ns = cursor_ns + material.picture.origin_ns[line.group.source]
    at = int(np.searchsorted(samples.time_ns, time_ns, side="right")) - 1
    return f"{samples.value[at]:.6g} {line.unit or ''}".rstrip() if at >= 0 else "no value yet"


def next_slice(material: Material, line: Line, part: Part, cursor_ns: int, *, forward: bool) -> Found | None:
    """The slice of a line that begins next after the cursor, or last before it: looked for in ever longer stretches."""
    time_ns = cursor_ns + material.picture.origin_ns[line.group.source]
    reach_ns = part.length_ns
    while True:
        found = _nearest(material, line, time_ns, reach_ns, forward=forward)
        if found is not None or reach_ns > part.whole_ns:
            return found
        reach_ns *= 8


def _nearest(material: Material, line: Line, time_ns: int, reach_ns: int, *, forward: bool) -> Found | None:
    around = (time_ns, time_ns + reach_ns) if forward else (time_ns - reach_ns, time_ns)
    found = []
    for track, slices in slices_of(material, line, *around):
        behind = np.searchsorted(slices.start_ns, time_ns, side="right" if forward else "left")
        at = int(behind) - (0 if forward else 1)
        if 0 <= at < len(slices) and around[0] <= slices.start_ns[at] <= around[1]:
            found.append(_found(material, track, slices, at))
    best = min if forward else max
    return best(found, key=lambda each: each.start_ns, default=None)
