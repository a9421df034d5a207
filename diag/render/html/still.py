"""The whole timeline as one picture that does not move: for print, and where JavaScript is off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.render.html.detail import Blocks
from diag.render.html.parts import fitting, tag, text
from diag.render.html.timeline import DrawnGroup, DrawnRow, Levels, Timeline
from diag.timeline.intervals import Intervals
from diag.timeline.track import ACTIVITIES, equal_parts

WIDTH = 1_000
LABELS = 190
COLUMNS = 320
ROW = 16
MOST_ROWS = 24
STEPS = 8
"""Heights that are told apart: shares of a column in eighths."""

LONGEST_LABEL = 30
MOST_BYTES = 100_000

_GROUP = '<text class="group"'


def still(timeline: Timeline) -> str:
    """Each row as a bar chart of how busy it is over time, in the colour of its longest slice."""
    rows = [(group, row) for group in timeline.groups for row in group.rows]
    lines = fitting(_lines(timeline, rows[:MOST_ROWS]), MOST_BYTES)
    left_out = len(rows) - sum(not line.startswith(_GROUP) for line in lines)
    height = ROW * len(lines) + 24
    inside = "".join(f'<g transform="translate(0 {ROW * at})">{line}</g>' for at, line in enumerate(lines))
    drawing = tag(
        "svg",
        inside,
        f'<g transform="translate(0 {height - 20})">{_axis(timeline.length_ns)}</g>',
        class_="still-picture",
        role="img",
        aria_label=f"Timeline of {units.time(timeline.length_ns)}: how busy each row is, from left to right",
        viewBox=f"0 0 {WIDTH} {height}",
    )
    said = "Height: how much of that part of the time is busy." + (
        f" {left_out} more rows not drawn." if left_out else ""
    )
    return tag("figure", drawing, tag("figcaption", text(said)), class_="still wide")


def _lines(timeline: Timeline, rows: Sequence[tuple[DrawnGroup, DrawnRow]]) -> Iterator[str]:
    before = None
    for group, row in rows:
        if group is not before:
            yield f'{_GROUP} x="0" y="12">{text(group.label, 100)}</text>'
            before = group
        label = f'<text x="8" y="12">{text(row.label, LONGEST_LABEL)}</text>'
        yield label + "".join(_paths(row, timeline.length_ns))


def _axis(length_ns: int) -> str:
    ends = ((LABELS, "0", "start"), (WIDTH, units.time(length_ns), "end"))
    return "".join(f'<text x="{x}" y="14" text-anchor="{anchor}">{text(said)}</text>' for x, said, anchor in ends)


def _paths(row: DrawnRow, length_ns: int) -> Iterator[str]:
    """One for each colour."""
    if isinstance(row.drawn, Levels):
        yield f'<path class="counter" d="{_path(_counter_heights(row.drawn))}"/>'
        return
    heights, activity = _slice_heights(row.drawn, length_ns)
    for code in np.unique(activity[heights > 0]):
        mine = np.where(activity == code, heights, 0)
        yield f'<path class="{ACTIVITIES[code]}" d="{_path(mine)}"/>'


def _slice_heights(blocks: Blocks, length_ns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each column its height in steps, 1 for the least that is there, and the activity of what takes most of it."""
    edges_ns = equal_parts(0, max(length_ns, COLUMNS), COLUMNS)
    busy_ns, most_ns = np.zeros(COLUMNS), np.zeros(COLUMNS)
    activity = np.zeros(COLUMNS, np.int64)
    for code in np.unique(blocks.activity):
        mine = blocks.activity == code
        # A block that is busy in part counts as if that part were its beginning.
        union = Intervals.union_of(blocks.start_ns[mine], blocks.start_ns[mine] + blocks.busy_ns[mine])
        of_code = union.measure_within(edges_ns[:-1], edges_ns[1:])
        activity[of_code > most_ns] = code
        most_ns = np.maximum(most_ns, of_code)
        busy_ns += of_code
    shares = np.minimum(busy_ns / np.diff(edges_ns), 1.0)
    return np.ceil(shares * STEPS).astype(np.int64), activity


def _counter_heights(levels: Levels) -> NDArray[np.int64]:
    """Of the largest value in each column, from the least of all to the largest."""
    bins = len(levels.most) * np.arange(COLUMNS) // COLUMNS
    values = levels.most[bins]
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros(COLUMNS, np.int64)
    low, high = float(np.min(levels.least[~np.isnan(levels.least)])), float(values[known].max())
    shares = np.where(known, (values - min(low, 0)) / max(high - min(low, 0), 1e-300), 0)
    return np.asarray(np.ceil(np.clip(np.nan_to_num(shares), 0, 1) * STEPS).astype(np.int64))


def _path(heights: NDArray[np.int64]) -> str:
    """Bars from the bottom, equal neighbours as one."""
    borders = np.flatnonzero(np.diff(heights, prepend=-1, append=-1))
    width, room = (WIDTH - LABELS) / COLUMNS, ROW - 2
    return "".join(
        f"M{LABELS + first * width:.5g} {room}v{-room * heights[first] / STEPS:.3g}h{(stop - first) * width:.4g}"
        f"V{room}z"
        for first, stop in pairwise(borders)
        if heights[first]
    )
