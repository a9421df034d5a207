"""The whole timeline as one picture that does not move: for print, and where JavaScript is off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from diag.model import units
from diag.render.html.detail import Blocks
from diag.render.html.parts import fitting, tag, text
from diag.render.html.timeline import DrawnGroup, DrawnRow, Levels, Timeline
from diag.render.timeline_bars import Bars, bar_paths, busy_bars, counter_bars
from diag.timeline.intervals import Intervals
from diag.timeline.track import equal_parts

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
    for look, path in bar_paths(_bars(row, length_ns), LABELS, WIDTH - LABELS, ROW - 2, STEPS):
        yield f'<path class="{look}" d="{path}"/>'


def _bars(row: DrawnRow, length_ns: int) -> Bars:
    if isinstance(row.drawn, Levels):
        bins = len(row.drawn.most) * np.arange(COLUMNS) // COLUMNS
        return counter_bars(row.drawn.least[bins], row.drawn.most[bins], STEPS)
    return _slice_bars(row.drawn, length_ns)


def _slice_bars(blocks: Blocks, length_ns: int) -> Bars:
    """Each column in the colour of the activity that takes most of it."""
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
    return busy_bars(busy_ns / np.diff(edges_ns), activity, STEPS)
