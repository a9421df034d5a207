"""Where one is in the timeline: the part that is shown, the cursor, and what is selected."""

from __future__ import annotations

from dataclasses import dataclass, replace

from diag.tui.timeline.part import Part

MOST_REMEMBERED = 50
ZOOM = 2.0
PAN = 8
"""A key pans by one of so many parts of the screen."""


@dataclass(frozen=True)
class Place:
    """Times are those of the axis. Every move gives a new place."""

    part: Part
    cursor_ns: int
    anchor_ns: int | None = None  # where the selection that follows the cursor began
    selection: tuple[int, int] | None = None
    borders: tuple[int, int] | None = None  # of what was jumped to
    before: tuple[Part, ...] = ()  # parts that were left by jumps, the last one last

    @classmethod
    def first(cls, whole_ns: int, columns: int) -> Place:
        part = Part.whole(whole_ns, columns)
        return cls(part, part.length_ns // 2)

    @property
    def cursor_column(self) -> int:
        return self.part.column_of(self.cursor_ns)

    def in_columns(self, columns: int) -> Place:
        return replace(self, part=self.part.in_columns(columns))

    def panned(self, columns: int) -> Place:
        """The cursor keeps its column, or comes nearer to an end of the axis that the part has reached."""
        by_ns = round(columns * self.part.column_ns)
        part = self.part.panned(by_ns)
        return replace(self, part=part)._at(self.cursor_ns + by_ns)

    def zoomed(self, factor: float, around_ns: int | None = None) -> Place:
        """Around the cursor, if nothing else is said; the cursor stays in sight."""
        part = self.part.zoomed(factor, self.cursor_ns if around_ns is None else around_ns)
        place = replace(self, part=part)
        return place if part.start_ns <= self.cursor_ns < part.end_ns else place._at(self.cursor_ns)

    def stepped(self, columns: int) -> Place:
        """The cursor some columns further; what is shown follows it."""
        column = self.cursor_column + columns
        return self.at(max(self.part.time_at(column), 0))

    def at(self, time_ns: int) -> Place:
        """With the cursor at this time, and the part moved so that it is seen."""
        time_ns = min(max(time_ns, 0), self.part.whole_ns - 1)
        return replace(self, part=self.part.reaching(time_ns, time_ns + 1))._at(time_ns)

    def whole(self) -> Place:
        return self._remembering(self.part.all())

    def showing(self, start_ns: int, end_ns: int) -> Place:
        """These times with a margin, set off by borders, the cursor at their start."""
        place = self._remembering(self.part.showing(start_ns, end_ns))
        return replace(place, borders=(start_ns, end_ns))._at(start_ns)

    def reaching(self, start_ns: int, end_ns: int) -> Place:
        """These times at the zoom there is, if they fit, set off by borders, the cursor at their start."""
        place = self._remembering(self.part.reaching(start_ns, end_ns))
        return replace(place, borders=(start_ns, end_ns))._at(start_ns)

    def back(self) -> Place:
        """The part that was shown before the last jump."""
        if not self.before:
            return self
        part = self.before[-1].in_columns(self.part.columns)
        return replace(self, part=part, before=self.before[:-1])._at(self.cursor_ns)

    def toggled_selecting(self) -> Place:
        """A selection begins at the cursor, or ends there."""
        if self.anchor_ns is not None:
            return replace(self, anchor_ns=None)
        return replace(self, anchor_ns=self.cursor_ns)._at(self.cursor_ns)

    def selecting(self, from_ns: int, to_ns: int) -> Place:
        start_ns, end_ns = sorted((from_ns, to_ns))
        return replace(self, anchor_ns=None, selection=self._bounded(start_ns, end_ns))

    def cleared(self) -> Place:
        return replace(self, anchor_ns=None, selection=None, borders=None)

    def _remembering(self, part: Part) -> Place:
        if part == self.part:
            return self
        return replace(self, part=part, before=(*self.before, self.part)[-MOST_REMEMBERED:])

    def _at(self, time_ns: int) -> Place:
        """With the cursor at this time, or as near to it as the screen reaches; a selection under way follows."""
        time_ns = min(max(time_ns, self.part.start_ns), self.part.end_ns - 1)
        place = replace(self, cursor_ns=time_ns)
        if self.anchor_ns is None:
            return place
        start_ns, end_ns = sorted((self.anchor_ns, time_ns))
        _, column_end_ns = self.part.span_of(self.part.column_of(end_ns))
        return replace(place, selection=self._bounded(start_ns, column_end_ns))

    def _bounded(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        start_ns = min(max(start_ns, 0), self.part.whole_ns - 1)
        return start_ns, min(max(end_ns, start_ns + 1), self.part.whole_ns)
