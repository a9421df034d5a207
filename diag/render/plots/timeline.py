"""The whole run in one picture: how busy each row is over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from diag.model import units
from diag.render import svg
from diag.render.escape import one_line
from diag.render.layout import elide
from diag.render.plots.axes import Axis, time_axis
from diag.render.plots.lanes import STEPS, Lane, Lanes
from diag.render.plots.looks import LOOKS
from diag.render.plots.sheet import BOLD_LETTERS, MARGIN, Sheet
from diag.render.svg import WIDTH
from diag.render.timeline_bars import bar_paths

LEFT, RIGHT = MARGIN + 176, WIDTH - MARGIN - 56
HEADING = 24
ROW, BAR = 24, 20
GAP = 8
LONGEST_LABEL = 24


def timeline(lanes: Lanes) -> str:
    """Empty where there are no rows."""
    if not lanes.rows:
        return ""
    axis = time_axis("time", lanes.length_ns, most=10)
    groups = [list(rows) for _, rows in groupby(lanes.rows, key=lambda lane: lane.group)]
    bottom = sum(HEADING + ROW * len(group) + GAP for group in groups)
    used = {look for lane in lanes.rows for look in lane.bars.looks}
    left_out = f"{units.count(lanes.left_out, 'more row')} not drawn: the host rows that are least busy, and counters."
    return Sheet(
        title=f"Timeline of {units.time(lanes.length_ns)}",
        said="Height: how much of that part of the time is busy; its share of all of the time is on the right.",
        body=[*_axis(axis, bottom), *_groups(groups, axis)],
        height=bottom + 46,
        described=" ".join(map(_described, groups)),
        legend=[look for look in LOOKS if look in used],
        notes=[left_out] if lanes.left_out else [],
    ).drawn()


def _groups(groups: Sequence[Sequence[Lane]], axis: Axis) -> Iterator[str]:
    y = 0.0
    for group in groups:
        yield svg.text(MARGIN, y + 16, elide(one_line(group[0].group), BOLD_LETTERS), "heading")
        y += HEADING
        yield from _grid(axis, y, y + ROW * len(group))
        for lane in group:
            yield from svg.moved(0, y, _lane(lane))
            y += ROW
        y += GAP


def _lane(lane: Lane) -> Iterator[str]:
    yield svg.text(LEFT - 8, BAR - 5, elide(one_line(lane.label), LONGEST_LABEL), "right")
    yield svg.line(LEFT, BAR + 0.5, RIGHT, BAR + 0.5, "grid")
    for look, d in bar_paths(lane.bars, LEFT, RIGHT - LEFT, BAR, STEPS):
        yield svg.path(d, look)
    if lane.busy is not None:
        yield svg.text(RIGHT + 8, BAR - 5, units.share(lane.busy))


def _axis(axis: Axis, bottom: float) -> Iterator[str]:
    for value, label in axis.ticks:
        yield svg.text(LEFT + (RIGHT - LEFT) * axis.along(value), bottom + 16, label, "faint middle")
    yield svg.line(LEFT, bottom, RIGHT, bottom, "axis")
    yield svg.text((LEFT + RIGHT) / 2, bottom + 36, axis.title, "faint middle")


def _grid(axis: Axis, top: float, bottom: float) -> Iterator[str]:
    for value, _ in axis.ticks:
        x = LEFT + (RIGHT - LEFT) * axis.along(value)
        yield svg.line(x, top, x, bottom, "grid")


def _described(group: Sequence[Lane]) -> str:
    rows = (lane.label + ("" if lane.busy is None else f" busy {units.share(lane.busy)}") for lane in group)
    return f"{group[0].group}: {', '.join(rows)}."
