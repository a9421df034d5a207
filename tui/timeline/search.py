"""Finding slices by name: where in time they begin, on the lines that are listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from diag.timeline.intervals import Times
from diag.tui.timeline.lines import Line
from diag.tui.timeline.material import Material


@dataclass(frozen=True, eq=False)
class Matches:
    """In parallel arrays, by start on the axis; `line` counts in `keys`."""

    text: str
    name_ids: NDArray[np.int64]
    keys: Sequence[tuple[int, int]] = ()
    start_ns: Times = field(default_factory=lambda: np.empty(0, np.int64))
    end_ns: Times = field(default_factory=lambda: np.empty(0, np.int64))
    line: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.start_ns)

    def at(self, number: int) -> tuple[tuple[int, int], int, int]:
        """Key of the line, start and end."""
        return self.keys[self.line[number]], int(self.start_ns[number]), int(self.end_ns[number])

    def after(self, time_ns: int) -> int | None:
        """Number of the first match that begins at this time or later, else of the first of all; None without any."""
        if not len(self):
            return None
        return int(np.searchsorted(self.start_ns, time_ns, side="left")) % len(self)


@dataclass(frozen=True, eq=False)
class OfLine:
    key: tuple[int, int]
    start_ns: Times
    end_ns: Times


def names_with(material: Material, text: str) -> NDArray[np.int64]:
    """Ids of the names that hold the text, whatever the case of its letters, which SQLite knows of ASCII only."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    ids = material.case.db.execute("SELECT id FROM name WHERE text LIKE ? ESCAPE '\\'", (f"%{escaped}%",)).fetchall()
    return np.array([name_id for (name_id,) in ids], np.int64)


def matches_on(material: Material, line: Line, name_ids: NDArray[np.int64]) -> OfLine | None:
    """A device's header is passed over: its operations lie on the lines of its streams."""
    if line.kind in ("device", "thread") or not len(name_ids):
        return None
    origin_ns = material.picture.origin_ns[line.group.source]
    if line.steps is not None:
        parts = [line.steps.slices]
    elif line.kind == "counter":
        return None
    else:
        parts = [material.tracks.all_slices(track) for track in line.tracks]
    found = [np.isin(part.name_id, name_ids) for part in parts]
    starts = [part.start_ns[mine] - origin_ns for part, mine in zip(parts, found, strict=True)]
    ends = [part.end_ns[mine] - origin_ns for part, mine in zip(parts, found, strict=True)]
    return OfLine(line.key, np.concatenate(starts), np.concatenate(ends)) if parts else None


def together(text: str, name_ids: NDArray[np.int64], parts: Sequence[OfLine]) -> Matches:
    if not parts:
        return Matches(text, name_ids)
    starts = np.concatenate([part.start_ns for part in parts])
    ends = np.concatenate([part.end_ns for part in parts])
    line = np.repeat(np.arange(len(parts)), [len(part.start_ns) for part in parts])
    order = np.argsort(starts, kind="stable")
    return Matches(text, name_ids, [part.key for part in parts], starts[order], ends[order], line[order])
