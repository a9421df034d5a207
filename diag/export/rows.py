"""Groups and rows of the picture: who gets which number and name, and on which row a slice lies."""

from __future__ import annotations

from collections.abc import Callable

from diag.export.lanes import Lanes
from diag.export.trace_events import Track, encoded, instant, named_group, named_track, slice_event
from diag.store.case import Case

FIRST_ROW = 1_000_000
"""Rows are numbered from here: viewers take a row with the number of its group for a process' main thread."""

MOST_LANES = 1_000
"""Lanes of one row that keep their place below it; more than these still get rows, among the next ones."""


class Picture:
    """Numbers groups and rows in the order in which they appear, and keeps the case's names as JSON texts."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._groups: dict[tuple[object, ...], int] = {}
        self._rows = 0
        self._arrows = 0
        self._names: dict[int, str] = {}

    def name(self, name_id: int | None) -> str:
        """A name of the case's dictionary, as JSON."""
        if name_id is None:
            return '"(name not captured)"'
        if name_id not in self._names:
            self._names[name_id] = encoded(self.case.names.get(name_id, f"(name {name_id})"))
        return self._names[name_id]

    def group(self, *key: object) -> int:
        """The number of a group; the same key is the same group."""
        return self._groups.setdefault(key, len(self._groups) + 1)

    def begin_group(self, name: str, *key: object) -> str:
        """The event that names a group and puts it below those that have begun before it."""
        number = self.group(*key)
        return named_group(number, name, number)

    def new_track(self, group: int) -> Track:
        self._rows += 1
        return Track(group, FIRST_ROW + self._rows)

    def next_arrow(self) -> int:
        self._arrows += 1
        return self._arrows


class Rows:
    """A row of a group, and the lanes below it for slices that it cannot hold. A row begins with its first event."""

    def __init__(self, picture: Picture, group: int, name: str, lanes: Callable[[], Lanes], place: int) -> None:
        self._picture = picture
        self._group = group
        self._name = name
        self._place = place * MOST_LANES
        self._lanes = lanes()
        self._tracks: dict[int, Track] = {}
        self.latest = Track(group, 0)  # where the last event lies
        self.latest_lane = 0

    def slice(self, category: str, name: str, start_ns: int, end_ns: int, args: str = "{}") -> str:
        """Something that lasts; what comes next starts no earlier, and at the same time is no longer."""
        named = self._go_to(self._lanes.place(start_ns, end_ns))
        return named + slice_event(self.latest, category, name, start_ns, end_ns, args)

    def instant(self, category: str, name: str, time_ns: int) -> str:
        return self._go_to(0) + instant(self.latest, category, name, time_ns)

    def _go_to(self, lane: int) -> str:
        """Makes a lane the latest; returns the event that names it if it is new."""
        self.latest_lane = lane
        if lane in self._tracks:
            self.latest = self._tracks[lane]
            return ""
        self.latest = self._tracks[lane] = self._picture.new_track(self._group)
        name = self._name if lane == 0 else f"{self._name}, lane {lane + 1}"
        return named_track(self.latest, name, self._place + min(lane, MOST_LANES - 1)) + ",\n"
