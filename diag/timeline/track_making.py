"""The tracks of a source, made of its rows: what an import stores, and what stands in for cases without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.store.columns import Arrays
from diag.timeline import nesting
from diag.timeline.device import COMMUNICATION_KERNEL
from diag.timeline.intervals import Integers, Times
from diag.timeline.naming import where_named
from diag.timeline.ranges import COLUMNS, KINDS, OPEN_NS, load_columns
from diag.timeline.track import ACTIVITIES, Bins, Samples, Slices, Track, TrackKind

DEEPEST = 15
"""Ranges nested deeper share the last track of their thread: more rows than these nobody compares by eye."""

_RANGE, _CALL, _OS_CALL = map(ACTIVITIES.index, ("range", "call", "os_call"))
_KERNEL, _COMMUNICATION = map(ACTIVITIES.index, ("kernel", "communication"))


@dataclass(frozen=True, eq=False)
class Made:
    """A track with what lies on it; `bins` only where there are many slices."""

    track: Track
    slices: Slices | None = None
    samples: Samples | None = None
    bins: Bins | None = None


def made_tracks(case: Case, source_id: int) -> Iterator[Made]:
    """All tracks of a source but the empty ones: streams, then threads, then counters. Ids are those of this source."""
    made = [*_streams(case, source_id), *_threads(case, source_id)]
    start_ns = min((each.track.start_ns for each in made), default=0)
    end_ns = max((each.track.end_ns for each in made), default=0)
    for each in made:
        yield _binned(each, start_ns, end_ns)
    yield from _counters(case, source_id)


def _binned(made: Made, start_ns: int, end_ns: int) -> Made:
    return replace(made, bins=Bins.of(made.slices, start_ns, end_ns)) if made.slices and made.slices.is_long else made


def _made(source_id: int, kind: TrackKind, slices: Slices, **place: int | None) -> Made:
    unknown: dict[str, int | None] = dict.fromkeys(("process", "device", "context", "stream", "thread", "series"))
    where = unknown | {"depth": 0} | place
    track = Track(
        id=0,
        source=source_id,
        kind=kind,
        count=len(slices),
        start_ns=int(slices.start_ns[0]),
        end_ns=int(slices.end_ns.max()),
        busy_ns=slices.union.measure_ns,
        **where,  # type: ignore[arg-type]  # depth is always there
    )
    return Made(track, slices)


def _slices(columns: Mapping[str, Integers], order: NDArray[np.int64], activity: NDArray[np.int8]) -> Slices:
    names, rows = columns["name_id"][order].astype(np.int32), columns["id"][order]
    return Slices(columns["start_ns"][order], columns["end_ns"][order], names, activity, rows)


# ---- devices -------------------------------------------------------------------------------------------------------


def _streams(case: Case, source_id: int) -> Iterator[Made]:
    columns = case.arrays(_OPS.format(source_id=source_id), _OPS_COLUMNS)
    place = [columns[name] for name in ("process_id", "device", "context", "stream")]
    order = np.lexsort((columns["start_ns"], *reversed(place)))
    activity = columns["activity"]
    kernels = np.flatnonzero((activity == _KERNEL) & (columns["name_id"] >= 0))
    activity[kernels[where_named(COMMUNICATION_KERNEL, columns["name_id"][kernels], case.names)]] = _COMMUNICATION
    for first, stop in _equal_runs(*(part[order] for part in place)):
        mine = order[first:stop]
        process, device, context, stream = (int(part[mine[0]]) for part in place)
        yield _made(
            source_id,
            "stream",
            _slices(columns, mine, activity[mine]),
            process=process,
            device=device,
            context=None if context < 0 else context,
            stream=None if stream < 0 else stream,
        )


def _equal_runs(*columns: NDArray[np.int64]) -> list[tuple[int, int]]:
    """`[first, stop)` of each run of rows that are equal in all columns."""
    changes = np.zeros(max(len(columns[0]) - 1, 0), bool)
    for column in columns:
        changes |= column[1:] != column[:-1]
    return nesting.runs_of_equal(np.concatenate((np.zeros(min(len(columns[0]), 1), int), np.cumsum(changes))))


# ---- host ----------------------------------------------------------------------------------------------------------


def _threads(case: Case, source_id: int) -> Iterator[Made]:
    """By thread: its ranges from the outermost inwards, then its calls."""
    made = [
        *_range_tracks(case, source_id),
        *_call_tracks(case, source_id, "calls", _CALLS, _CALL),
        *_call_tracks(case, source_id, "os_calls", _OS_CALLS, _OS_CALL),
    ]
    processes = dict(case.db.execute("SELECT id, process_id FROM thread"))
    placed = (replace(each, track=replace(each.track, process=processes[each.track.thread])) for each in made)
    yield from sorted(placed, key=lambda each: (each.track.process, each.track.thread))


def _call_tracks(case: Case, source_id: int, kind: TrackKind, sql: str, activity: int) -> Iterator[Made]:
    columns = case.arrays(sql.format(source_id=source_id), _CALL_COLUMNS)
    order = np.lexsort((columns["start_ns"], columns["thread_id"]))
    for first, stop in nesting.runs_of_equal(columns["thread_id"][order]):
        mine = order[first:stop]
        slices = _slices(columns, mine, np.full(len(mine), activity, np.int8))
        yield _made(source_id, kind, slices, thread=int(columns["thread_id"][mine[0]]))


def _range_tracks(case: Case, source_id: int) -> Iterator[Made]:
    columns = _ranges(case, source_id)
    kinds = columns["kind"]
    columns["end_ns"] = _closed(case, source_id, columns["start_ns"], columns["end_ns"])
    order = nesting.nesting_order(columns["thread_id"], columns["start_ns"], columns["end_ns"])
    for thread_first, thread_stop in nesting.runs_of_equal(columns["thread_id"][order]):
        mine = order[thread_first:thread_stop]
        thread = int(columns["thread_id"][mine[0]])
        beside = {"start_end": kinds[mine] == KINDS.index("process"), "marks": kinds[mine] == KINDS.index("mark")}
        nested = mine[~(beside["start_end"] | beside["marks"])]
        depth = _depths(nesting.parents(columns["start_ns"][nested], columns["end_ns"][nested]))
        for level in range(int(depth.max(initial=-1)) + 1):
            yield _of_ranges(source_id, "ranges", columns, nested[depth == level], thread, level)
        for kind in ("start_end", "marks"):
            if beside[kind].any():
                yield _of_ranges(source_id, kind, columns, mine[beside[kind]], thread)


def _closed(case: Case, source_id: int, starts_ns: Times, ends_ns: Times) -> Times:
    """The ends; of ranges that were still open the last one of all that the source recorded."""
    is_open = ends_ns == OPEN_NS
    if not is_open.any():
        return ends_ns
    last_ns = int(np.where(is_open, starts_ns, ends_ns).max())
    others_ns = case.value(_LAST_END, {"source": source_id})
    return np.where(is_open, last_ns if others_ns is None else max(last_ns, others_ns), ends_ns)


def _of_ranges(
    source_id: int, kind: TrackKind, columns: Arrays, order: NDArray[np.int64], thread: int, depth: int = 0
) -> Made:
    slices = _slices(columns, order, np.full(len(order), _RANGE, np.int8))
    return _made(source_id, kind, slices, thread=thread, depth=depth)


def _depths(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many ranges enclose each, given its parent or -1; `DEEPEST` of those that more enclose."""
    depth = np.zeros(len(parent), np.int64)
    inside, above = np.flatnonzero(parent >= 0), parent[parent >= 0]
    for _ in range(DEEPEST):  # not until none is left: a file may nest them by the million
        depth[inside] += 1
        further = parent[above] >= 0
        inside, above = inside[further], parent[above[further]]
    return depth


def _ranges(case: Case, source_id: int) -> Arrays:
    columns = load_columns(case, source_id)
    if len(columns["start_ns"]):
        return columns | {"id": np.broadcast_to(np.int64(-1), len(columns["start_ns"]))}
    return case.arrays(_RANGES.format(source_id=source_id), _RANGE_COLUMNS)


# ---- counters ------------------------------------------------------------------------------------------------------


def _counters(case: Case, source_id: int) -> Iterator[Made]:
    columns = case.arrays(_SAMPLES.format(source_id=source_id), _SAMPLES_COLUMNS)
    order = np.lexsort((columns["time_ns"], columns["series_id"]))
    devices = dict(case.db.execute(_DEVICE_OF, (source_id,)))
    for first, stop in nesting.runs_of_equal(columns["series_id"][order]):
        mine = order[first:stop]
        series = int(columns["series_id"][mine[0]])
        samples = Samples(columns["time_ns"][mine], columns["value"][mine])
        track = Track(
            id=0,
            source=source_id,
            kind="counter",
            process=None,
            device=devices[series],
            context=None,
            stream=None,
            thread=None,
            depth=0,
            series=series,
            count=len(samples),
            start_ns=int(samples.time_ns[0]),
            end_ns=int(samples.time_ns[-1]),
            busy_ns=0,
        )
        yield Made(track, samples=samples)


_OPS_COLUMNS = {
    "id": "i8",
    "process_id": "i8",
    "device": "i8",
    "context": "i8",
    "stream": "i8",
    "activity": "i1",
    "start_ns": "i8",
    "end_ns": "i8",
    "name_id": "i8",
}
_OPS = """
    SELECT id, process_id, device, COALESCE(context, -1) AS context, COALESCE(stream, -1) AS stream,
           CASE kind WHEN 'copy' THEN 1 WHEN 'memset' THEN 2 WHEN 'graph' THEN 3 ELSE 0 END AS activity,
           start_ns, end_ns, COALESCE(short_name_id, name_id, -1) AS name_id
      FROM gpu_op
     WHERE source_id = {source_id:d}
"""
_CALL_COLUMNS = {"id": "i8", "thread_id": "i8", "start_ns": "i8", "end_ns": "i8", "name_id": "i8"}
_CALLS = "SELECT id, thread_id, start_ns, end_ns, name_id FROM api_call WHERE source_id = {source_id:d}"
_OS_CALLS = "SELECT id, thread_id, start_ns, end_ns, name_id FROM os_call WHERE source_id = {source_id:d}"
_RANGE_COLUMNS = {"id": "i8"} | COLUMNS
_RANGES = """
    SELECT id, thread_id, start_ns, COALESCE(end_ns, 9223372036854775807) AS end_ns, name_id,
           CASE kind WHEN 'nvtx' THEN 0 WHEN 'process' THEN 1 WHEN 'mark' THEN 2 WHEN 'operator' THEN 3
                     WHEN 'python' THEN 4 ELSE 5 END AS kind
      FROM cpu_range
     WHERE source_id = {source_id:d}
"""
_LAST_END = """
    SELECT MAX(end_ns)
      FROM (SELECT MAX(end_ns) AS end_ns FROM gpu_op WHERE source_id = :source
            UNION ALL SELECT MAX(end_ns) FROM api_call WHERE source_id = :source
            UNION ALL SELECT MAX(end_ns) FROM os_call WHERE source_id = :source)
"""
_DEVICE_OF = "SELECT id, device FROM counter_series WHERE source_id = ?"
_SAMPLES_COLUMNS = {"series_id": "i8", "time_ns": "i8", "value": "f8"}
_SAMPLES = """
    SELECT series_id, time_ns, value
      FROM counter
     WHERE series_id IN (SELECT id FROM counter_series WHERE source_id = {source_id:d})
"""
