"""Tracks in a case: written when a source was imported, read block by block when a picture asks for them.

A case without them (an older one) gets them made anew, in memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diag.errors import InputError
from diag.store.case import IMPORT_AGAIN, Case
from diag.timeline.intervals import Times
from diag.timeline.track import ACTIVITIES, BIN_COUNT, Bins, Columns, Samples, Slices, Track
from diag.timeline.track_making import Made, made_tracks

Array = NDArray[Any]

BLOCK_SLICES = 1 << 16
"""Slices or samples of a column that are read and kept together."""

MOST_BLOCKS = 256
"""Blocks of columns that are kept: 128 MB at most."""

STORED_AS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "slices": {
        "start_ns": ("<i8",),
        "duration_ns": ("<u4", "<i8"),
        "name_id": ("<i4",),
        "activity": ("|i1",),
        "row_id": ("<u4", "<i8"),
    },
    "samples": {"time_ns": ("<i8",), "value": ("<f8",)},
    "bins": {
        "busy_ns": ("<i8",),
        "count": ("<u4", "<i8"),
        "name_id": ("<i4",),
        "activity": ("|i1",),
        "first": ("<i8",),
    },
}
"""Columns by part, each with the types that it may have: the first that holds all its values. A column of one value,
which the kind of the track tells, is left out."""

_ACTIVITY_OF_KIND = {"calls": "call", "os_calls": "os_call", "ranges": "range", "start_end": "range", "marks": "range"}


# ---- writing -------------------------------------------------------------------------------------------------------


def store_tracks(case: Case, source_id: int) -> None:
    """Makes and writes the tracks of a source whose rows are committed."""
    with case.transaction():
        for made in made_tracks(case, source_id):
            row = {column: getattr(made.track, name) for name, column in _COLUMN_OF.items() if name != "id"}
            track_id = case.insert_returning_id("track", row)
            case.insert("track_block", _blocks(track_id, made))


def _blocks(track_id: int, made: Made) -> Iterator[dict[str, Any]]:
    for part, names in STORED_AS.items():
        held = getattr(made, part)
        for name, dtypes in names.items() if held is not None else ():
            column = held.end_ns - held.start_ns if name == "duration_ns" else getattr(held, name)
            if part == "slices" and name in ("activity", "row_id") and (column == _implied(made.track, name)).all():
                continue
            narrow = column.astype(_narrowest(column, dtypes))
            for block, first in enumerate(range(0, len(column), BLOCK_SLICES)):
                data = narrow[first : first + BLOCK_SLICES].tobytes()
                yield {
                    "track_id": track_id,
                    "part": part,
                    "column_name": name,
                    "block": block,
                    "dtype": narrow.dtype.str,
                    "data": data,
                }


def _narrowest(column: Array, dtypes: tuple[str, ...]) -> str:
    if column.dtype.kind == "f" or not len(column):
        return dtypes[-1]
    least, most = int(column.min()), int(column.max())
    return next(dtype for dtype in dtypes if np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max)


def _implied(track: Track, name: str) -> int:
    return -1 if name == "row_id" else ACTIVITIES.index(_ACTIVITY_OF_KIND.get(track.kind, "kernel"))


# ---- reading -------------------------------------------------------------------------------------------------------


class Tracks:
    """The tracks of a case and what lies on them. It may be asked on one thread only: that of the case."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._made: dict[int, Made] = {}
        self._bins: dict[int, Bins | None] = {}
        self._blocks: OrderedDict[tuple[int, str, str, int], Array] = OrderedDict()

    @cached_property
    def all(self) -> list[Track]:
        """Of all sources in their order: streams by device, then threads, then counters."""
        if stored := [Track(**dict(row)) for row in self._case.rows(_TRACKS)]:
            return stored
        made = (made for source in self._case.sources for made in made_tracks(self._case, source.id))
        self._made = {-number: each for number, each in enumerate(made, 1)}
        return [replace(each.track, id=track_id) for track_id, each in self._made.items()]

    def span(self, source_id: int) -> tuple[int, int]:
        """First and last time of all slices of a source; of the samples where it has nothing else."""
        mine = [track for track in self.all if track.source == source_id]
        slices = [track for track in mine if track.kind != "counter"] or mine
        return min((t.start_ns for t in slices), default=0), max((t.end_ns for t in slices), default=0)

    def columns(self, track: Track, edges_ns: Times) -> Columns:
        """The track between these borders: from its bins where they are fine enough, else from its slices."""
        bins = self.bins(track)
        if bins is not None and bins.suffice_for(edges_ns):
            return bins.columns(edges_ns)
        return self.slices(track, int(edges_ns[0]), int(edges_ns[-1])).columns(edges_ns)

    def sums_up(self, track: Track, edges_ns: Times) -> bool:
        """Whether `columns` takes its bins for these borders, and reads no slice."""
        bins = self.bins(track)
        return bins is not None and bins.suffice_for(edges_ns)

    def slices(self, track: Track, start_ns: int, end_ns: int) -> Slices:
        """At least the slices that touch `[start_ns, end_ns)`; few others where the track is long."""
        if (made := self._made.get(track.id)) and made.slices is not None:
            return made.slices
        bins = self.bins(track)
        around = bins.slices_within(start_ns, end_ns) if bins is not None else slice(0, track.count)
        if end_ns > track.end_ns:  # a slice of no length may begin there, which is in no bin
            around = slice(around.start, track.count)
        return self._slices(track, around)

    def all_slices(self, track: Track) -> Slices:
        made = self._made.get(track.id)
        return made.slices if made and made.slices is not None else self._slices(track, slice(0, track.count))

    def samples(self, track: Track) -> Samples:
        made = self._made.get(track.id)
        if made and made.samples is not None:
            return made.samples
        return Samples(*(self._column(track, "samples", name, slice(0, track.count)) for name in STORED_AS["samples"]))

    def _slices(self, track: Track, around: slice) -> Slices:
        start_ns, duration_ns, name_id, activity, row_id = (
            self._column(track, "slices", name, around) for name in STORED_AS["slices"]
        )
        return Slices(start_ns, start_ns + duration_ns, name_id, activity, row_id)

    def bins(self, track: Track) -> Bins | None:
        """None where the track is short."""
        if track.id in self._made:
            return self._made[track.id].bins
        if track.id not in self._bins:
            has_bins = self._case.value(_HAS_BINS, (track.id,))
            whole = slice(0, BIN_COUNT)
            columns = (self._column(track, "bins", name, whole) for name in STORED_AS["bins"]) if has_bins else ()
            self._bins[track.id] = Bins(*self.span(track.source), *columns) if has_bins else None
        return self._bins[track.id]

    def _column(self, track: Track, part: str, name: str, around: slice) -> Array:
        """A stretch of a column, put together from its blocks. Raises InputError when they do not fit."""
        first, last = around.start // BLOCK_SLICES, max(around.stop - 1, around.start) // BLOCK_SLICES
        blocks = [self._block(track, part, name, block) for block in range(first, last + 1)]
        column = np.concatenate(blocks) if len(blocks) > 1 else blocks[0]
        skip = first * BLOCK_SLICES
        return column[around.start - skip : around.stop - skip]

    def _block(self, track: Track, part: str, name: str, block: int) -> Array:
        key = (track.id, part, name, block)
        if key in self._blocks:
            self._blocks.move_to_end(key)
        else:
            self._blocks[key] = self._read(track, part, name, block)
            if len(self._blocks) > MOST_BLOCKS:
                self._blocks.popitem(last=False)
        return self._blocks[key]

    def _read(self, track: Track, part: str, name: str, block: int) -> Array:
        count = BIN_COUNT if part == "bins" else track.count
        expected = max(min(count - block * BLOCK_SLICES, BLOCK_SLICES), 0)
        row = self._case.db.execute(_BLOCK, (track.id, part, name, block)).fetchone()
        if row is None and part == "slices" and name in ("activity", "row_id"):
            return np.full(expected, _implied(track, name), STORED_AS[part][name][-1])
        if row is None or row[0] not in STORED_AS[part][name] or len(row[1]) != expected * np.dtype(row[0]).itemsize:
            raise InputError(f"{self._case.path} is no case any more: its tracks do not fit. {IMPORT_AGAIN}")
        return np.frombuffer(row[1], row[0])


_RENAMED = {"source": "source_id", "process": "process_id", "thread": "thread_id", "series": "series_id"}
_COLUMN_OF = {field.name: _RENAMED.get(field.name, field.name) for field in fields(Track)}
_SELECTED = ", ".join(f"{column} AS {name}" for name, column in _COLUMN_OF.items())
_TRACKS = f"SELECT {_SELECTED} FROM track ORDER BY source_id, id"
_HAS_BINS = "SELECT 1 FROM track_block WHERE track_id = ? AND part = 'bins' LIMIT 1"
_BLOCK = "SELECT dtype, data FROM track_block WHERE track_id = ? AND part = ? AND column_name = ? AND block = ?"
