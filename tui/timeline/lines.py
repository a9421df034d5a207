"""The lines of the picture: rows of the groups that are open, one below the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from diag.render.timeline_rows import Group, Picture, Row, RowKind
from diag.timeline.track import Slices, Track

LineKind = RowKind | Literal["thread", "counters", "steps"]

COUNTER_HEIGHT = 2
MOST_OPEN_DEVICES = 8
MOST_OPEN_COUNTERS = 4
DEEPEST_INDENT = 4


@dataclass(frozen=True, eq=False)
class StepSlices:
    """The steps of a thread, as a row of its own."""

    pattern: str
    slices: Slices


@dataclass(frozen=True, eq=False)
class Line:
    """A row that takes one or more lines of the terminal. `key` stays the same whatever is open."""

    key: tuple[int, int]  # index of the group; of its row, or one of HEADER and STEPS
    kind: LineKind
    label: str
    group: Group
    tracks: Sequence[Track]
    indent: int = 0
    height: int = 1
    unit: str | None = None  # of a counter
    steps: StepSlices | None = None

    @property
    def is_header(self) -> bool:
        return self.key[1] == HEADER


HEADER, STEPS = -2, -1


def lines_of(picture: Picture, open_groups: Set[int], steps: Mapping[int, StepSlices]) -> list[Line]:
    """`steps` by the index of the group."""
    return [
        line
        for at, group in enumerate(picture.groups)
        for line in _lines(at, group, steps.get(at), is_open=at in open_groups)
    ]


def _lines(at: int, group: Group, steps: StepSlices | None, *, is_open: bool) -> Iterator[Line]:
    """A device's first row is its header; that of a closed thread shows the first row of what is inside."""
    first = group.rows[0]
    if first.kind == "device":
        yield Line((at, HEADER), "device", group.label or first.label, group, first.tracks)
    elif first.kind == "counter":
        yield Line((at, HEADER), "counters", group.label, group, ())
    else:
        yield Line((at, HEADER), "thread", group.label, group, () if is_open else first.tracks)
    if is_open:
        if steps is not None:
            yield Line((at, STEPS), "steps", f"steps {steps.pattern}", group, (), steps=steps)
        yield from (_line(at, n, row, group) for n, row in enumerate(group.rows) if row.kind != "device")


def _line(at: int, n: int, row: Row, group: Group) -> Line:
    depth = row.tracks[0].depth
    label = f"{row.label} {depth}" if row.kind == "ranges" else row.label
    height = COUNTER_HEIGHT if row.kind == "counter" else 1
    return Line((at, n), row.kind, label, group, row.tracks, min(depth, DEEPEST_INDENT), height, row.unit)


def first_open(picture: Picture) -> frozenset[int]:
    """What is open at first: devices, of each process the thread with most on it, and counters that are few."""
    groups = list(enumerate(picture.groups))
    devices = [at for at, group in groups if group.rows[0].kind == "device"]
    counters = [at for at, group in groups if group.rows[0].kind == "counter"]
    busiest: dict[tuple[int, int | None], int] = {}
    for at, group in groups:
        if at not in devices and at not in counters:
            place = group.source, group.process
            if place not in busiest or _count(group) > _count(picture.groups[busiest[place]]):
                busiest[place] = at
    few = [at for at in counters if len(picture.groups[at].rows) <= MOST_OPEN_COUNTERS]
    return frozenset((*devices[:MOST_OPEN_DEVICES], *busiest.values(), *few))


def _count(group: Group) -> int:
    return sum(track.count for row in group.rows for track in row.tracks)
