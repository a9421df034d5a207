"""What the timeline reads of the case, on a thread and through a connection of its own.

So panning goes on while a long statement of another screen runs. Reading blocks of tracks takes milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from diag.render.timeline_rows import Group, Picture, picture_of
from diag.store.case import Case, Mode
from diag.timeline.intervals import Intervals, union_of_all
from diag.timeline.track import ACTIVITIES, Samples, Slices, Track
from diag.timeline.track_store import Tracks
from diag.tui.timeline.device_time import DeviceTime
from diag.tui.timeline.drawing import scale_of
from diag.tui.timeline.lines import StepSlices
from diag.tui.timeline.step_row import steps_among

Answer = TypeVar("Answer")

LONGEST_NAME = 2_000
"""Characters of a name that are read; details ask for all of them."""

MOST_NAMES = 50_000
"""Names that are kept."""

PAGE_CACHE_KIB = 16 << 10
"""Of SQLite: blocks of tracks are half a megabyte each, and its own 2 MB make reading them a quarter slower."""

MOST_STEPS = 1 << 16
DEEPEST_STEPS = 3
"""Ranges that are looked through for steps: in longer or deeper tracks are none."""


class Material:
    """Everything of a case that lines are drawn from. It may be asked on one thread only."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tracks = Tracks(case)
        self._names: dict[int, str] = {}
        self._devices: dict[tuple[Track, ...], DeviceTime] = {}
        self._scales: dict[int, tuple[float, float]] = {}

    @cached_property
    def picture(self) -> Picture:
        return picture_of(self.case, self.tracks)

    def name(self, name_id: int) -> str:
        if name_id < 0:
            return "(no name)"
        if name_id not in self._names:
            if len(self._names) >= MOST_NAMES:
                self._names.clear()
            text = self.case.value(_NAME, (LONGEST_NAME, name_id))
            self._names[name_id] = "(no name)" if text is None else text
        return self._names[name_id]

    def title(self, slices: Slices, at: int) -> str:
        """What a slice is called: by its name, of copies by their kind."""
        name_id, row_id = int(slices.name_id[at]), int(slices.row_id[at])
        if name_id >= 0:
            return self.name(name_id)
        kind = ACTIVITIES[int(slices.activity[at])]
        copy_kind = self.case.value("SELECT copy_kind FROM gpu_op WHERE id = ?", (row_id,)) if kind == "copy" else None
        return f"{kind} {copy_kind}" if copy_kind else kind

    def device(self, tracks: Sequence[Track]) -> DeviceTime:
        """Of the streams of a device; read as a whole the first time, and kept."""
        key = tuple(tracks)
        if key not in self._devices:
            busy = union_of_all(self.tracks.all_slices(track).union for track in tracks)
            window = min(track.start_ns for track in tracks), max(track.end_ns for track in tracks)
            self._devices[key] = DeviceTime(busy, window)
        return self._devices[key]

    def others_of(self, group: Group) -> Intervals:
        """When other processes used the hardware of a device."""
        first = group.rows[0].tracks[0]
        same = set(self.case.db.execute(_SAME_HARDWARE, {"process": first.process, "ordinal": first.device}))
        others = [
            other.rows[0].tracks
            for other in self.picture.groups
            if other.rows[0].kind == "device"
            and (other.rows[0].tracks[0].process, other.rows[0].tracks[0].device) in same
        ]
        return union_of_all(self.device(tracks).busy for tracks in others)

    def scale(self, track: Track, samples: Samples, unit: str | None) -> tuple[float, float]:
        if track.id not in self._scales:
            self._scales[track.id] = scale_of(samples, unit)
        return self._scales[track.id]

    def steps_of(self, group: Group, fewest: float, least_cover: float) -> StepSlices | None:
        """The steps of a host thread, where one of its outer tracks holds them."""
        tracks = [row.tracks[0] for row in group.rows if row.kind == "ranges"]
        span_ns = max((t.end_ns for t in tracks), default=0) - min((t.start_ns for t in tracks), default=0)
        outer = (track for track in tracks if track.depth <= DEEPEST_STEPS and track.count <= MOST_STEPS)
        found = (
            steps_among(self.tracks.all_slices(track), self._pattern, span_ns, fewest, least_cover) for track in outer
        )
        return next(filter(None, found), None)

    def _pattern(self, name_id: int) -> str:
        return str(self.case.value("SELECT pattern FROM name WHERE id = ?", (name_id,)))


class Reader:
    """A thread with the material of a case. Make it with `Reader.opened`, end it with `close`."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="timeline")
        self._material: Material

    @classmethod
    async def opened(cls, path: Path, mode: Mode) -> Reader:
        """Raises InputError when the tracks of the case do not fit."""
        reader = cls()
        try:
            await reader._run(lambda: reader._open(path, mode))
        except BaseException:
            reader.close()
            raise
        return reader

    async def ask(self, work: Callable[[Material], Answer]) -> Answer:
        return await self._run(lambda: work(self._material))

    def close(self) -> None:
        if hasattr(self, "_material"):
            self._thread.submit(self._material.case.close)
        self._thread.shutdown(wait=False)

    def _open(self, path: Path, mode: Mode) -> None:
        self._material = Material(Case.open(path, "immutable" if mode == "immutable" else "ro"))
        self._material.case.db.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIB}")
        _ = self._material.picture

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


_NAME = "SELECT substr(text, 1, ?) FROM name WHERE id = ?"
_SAME_HARDWARE = """
    SELECT other.process_id, other.ordinal
      FROM process_device mine
      JOIN device d ON d.id = mine.device_id
      JOIN device same ON same.uuid = d.uuid AND same.source_id = d.source_id
      JOIN process_device other ON other.device_id = same.id
     WHERE mine.process_id = :process AND mine.ordinal = :ordinal AND other.process_id <> :process
"""
