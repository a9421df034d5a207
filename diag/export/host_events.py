"""What threads did: CUDA calls, ranges, OS calls and overhead. Each kind has rows of its own, as they need not nest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from diag.export import perfetto_statements as sql
from diag.export.axis import Axis
from diag.export.lanes import Nesting
from diag.export.rows import Picture, Rows
from diag.export.trace_events import Track, arguments
from diag.store.case import Case
from diag.timeline.ranges import KINDS, OPEN_NS, load_ranges

BATCH = 1 << 14

Row = tuple[Any, ...]


class CallTracks:
    """Where each CUDA call lies: on the first row of its thread's calls, but for those few that cross others."""

    def __init__(self) -> None:
        self._of_thread: dict[int, Track] = {}
        self._elsewhere: dict[int, Track] = {}

    def add(self, call: int, thread_id: int, rows: Rows) -> None:
        if rows.latest_lane == 0:
            self._of_thread[thread_id] = rows.latest
        else:
            self._elsewhere[call] = rows.latest

    def of(self, call: int, thread_id: int) -> Track:
        return self._elsewhere.get(call) or self._of_thread[thread_id]


def _rows_by_thread(
    picture: Picture, axis: Axis, rows: Iterator[Row], title: str, place: int
) -> Iterator[tuple[Rows, Iterator[Row]]]:
    """For each thread, whose id begins its rows, the rows of the picture that events of this kind lie on."""
    threads = picture.case.rows(sql.THREADS, axis.parameters)
    position = {thread["id"]: number for number, thread in enumerate(threads)}
    for thread_id, of_thread in groupby(rows, key=itemgetter(0)):
        thread = threads[position[thread_id]]
        group = picture.group("process", thread["process_id"])
        name = f"{_thread_name(thread['name'], thread['tid'])}: {title}"
        yield Rows(picture, group, name, Nesting, 10 * position[thread_id] + place), of_thread


def _thread_name(name: str | None, tid: int) -> str:
    """
    >>> _thread_name(None, 101), _thread_name("loader", 101), _thread_name("thread 101 (python)", 101)
    ('thread 101', 'loader 101', 'thread 101 (python)')
    """
    text = name or "thread"
    return text if str(tid) in text else f"{text} {tid}"


def call_events(picture: Picture, axis: Axis, tracks: CallTracks) -> Iterator[str]:
    cursor = picture.case.db.execute(sql.CALLS, axis.parameters)
    for rows, calls in _rows_by_thread(picture, axis, cursor, "CUDA calls", place=1):
        for thread_id, start_ns, end_ns, name_id, call, correlation, status in calls:
            args = arguments({"correlation": correlation, "status": status or None})
            yield rows.slice("cuda_call", picture.name(name_id), axis.at(start_ns), axis.at(end_ns), args)
            tracks.add(call, thread_id, rows)


def thread_events(picture: Picture, axis: Axis, statement: str, title: str, category: str, place: int) -> Iterator[str]:
    """Events of threads of which little is known but their times and names."""
    cursor = picture.case.db.execute(statement, axis.parameters)
    for rows, events in _rows_by_thread(picture, axis, cursor, title, place):
        for _, start_ns, end_ns, name_id, kind in events:
            args = arguments({"kind": kind})
            yield rows.slice(category, picture.name(name_id), axis.at(start_ns), axis.at(end_ns), args)


def range_events(picture: Picture, axis: Axis) -> Iterator[str]:
    """Start/end ranges nest with nothing; they get rows of their own, below those that do."""
    for unnested, of_kind in groupby(_range_rows(picture.case, axis), key=lambda row: row[1] == "process"):
        title, place = ("start/end ranges", 4) if unnested else ("ranges", 0)
        for rows, ranges in _rows_by_thread(picture, axis, of_kind, title, place):
            for _, kind, start_ns, end_ns, name_id, domain, shapes, ends_on in ranges:
                if kind == "mark":
                    yield rows.instant(kind, picture.name(name_id), axis.at(start_ns))
                    continue
                end = "not recorded" if end_ns is None else None
                args = arguments({"domain": domain, "shapes": shapes, "ends_on_thread": ends_on, "end": end})
                last_ns = max(start_ns, axis.span[1]) if end_ns is None else end_ns
                yield rows.slice(kind, picture.name(name_id), axis.at(start_ns), axis.at(last_ns), args)


def _range_rows(case: Case, axis: Axis) -> Iterator[Row]:
    """Rows as `RANGES` gives them, also of a source whose ranges the case keeps as columns."""
    yield from case.db.execute(sql.RANGES, axis.parameters)
    if not case.value(sql.HAS_RANGE_COLUMNS, axis.parameters):
        return
    ranges = load_ranges(case, axis.source.id)
    unnested = ranges.kind == KINDS.index("process")
    for of_kind in (ranges.select(~unnested), ranges.select(unnested)):
        for first in range(0, len(of_kind), BATCH):
            part = of_kind.select(slice(first, first + BATCH))
            columns = (part.thread_id, part.kind, part.start_ns, part.end_ns, part.name_id)
            for thread_id, kind, start_ns, end_ns, name_id in zip(*(c.tolist() for c in columns), strict=True):
                if axis.part.holds(start_ns, end_ns):
                    known_end_ns = None if end_ns == OPEN_NS else end_ns
                    yield thread_id, KINDS[kind], start_ns, known_end_ns, name_id, None, None, None
