"""What each wait waited for: settled when all rows of a source are in, stored as rows of `wait`.

A wait for an event is over when the last operation ended that had been launched to the event's stream before the event
was recorded. "Before" is decided by the launching calls; where a launch was not captured, the operation counts from its
own start, and waits before that are not exact. A host thread that synchronises with a stream or a context waits for the
last operation that ended there before it went on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.timeline import gpu_work
from diag.timeline.gpu_work import NONE, Column

EVENT, STREAM_WAIT, STREAM, CONTEXT = range(4)


def store_waits(case: Case, source_id: int) -> None:
    """Fills `wait` for one source. Call it after the transaction that made the source."""
    if not case.value(_HAS_WAITS, {"source": source_id}):
        return
    syncs = case.arrays(_SYNCS.format(source_id=source_id), _SYNC_COLUMNS)
    records = case.arrays(_RECORDS.format(source_id=source_id), _RECORD_COLUMNS)
    ops = case.arrays(_OPS.format(source_id=source_id), _OP_COLUMNS)
    # Launches matter for events alone; without those the calls that waited are enough, and few.
    calls_sql = _CALLS if len(records["event"]) else _WAITING_CALLS
    calls = case.arrays(calls_sql.format(source_id=source_id), _CALL_COLUMNS)
    with case.transaction():
        for process_id in np.unique(syncs["process_id"]).tolist():
            process = _Process(*(_rows_of(table, process_id) for table in (ops, syncs, records, calls)))
            case.db.executemany(_INSERT, ((source_id, *row) for row in process.waits()))


Table = dict[str, Column]
Mask = NDArray[np.bool_]


def _rows_of(table: Table, process_id: int) -> Table:
    mine = table["process_id"] == process_id
    return {name: column[mine] for name, column in table.items()}


@dataclass(frozen=True)
class _Lane:
    """The operations of one stream, or of a whole context, in the order in which they were launched."""

    launched_ns: Column
    end_ns: Column
    known_from_ns: int  # launches were captured of all that starts at this time or later

    def last_before(self, times_ns: Column) -> Column:
        """For each time the index of the operation that ends last of those launched before it, or NONE."""
        is_last = self.end_ns == np.maximum.accumulate(self.end_ns)
        last_to_end = np.maximum.accumulate(np.where(is_last, np.arange(len(self.end_ns)), 0))
        return np.append(last_to_end, NONE)[np.searchsorted(self.launched_ns, times_ns, side="left") - 1]

    def last_ended(self, times_ns: Column) -> Column:
        """For each time the index of the operation that ended last up to it, or NONE."""
        by_end = np.argsort(self.end_ns, kind="stable")
        return np.append(NONE, by_end)[np.searchsorted(self.end_ns[by_end], times_ns, side="right")]

    def first_from(self, times_ns: Column) -> Column:
        """For each time the index of the first operation launched at it or later, or NONE."""
        return np.append(np.arange(len(self.end_ns)), NONE)[np.searchsorted(self.launched_ns, times_ns, side="left")]


class _Process:
    """One process: correlation ids, contexts, streams and events are its own."""

    def __init__(self, ops: Table, syncs: Table, records: Table, calls: Table) -> None:
        self.ops, self.syncs, self.records = ops, syncs, records
        by_start = np.argsort(calls["start_ns"], kind="stable")  # nearly in order already, but not in every file
        self.calls = {name: column[by_start] for name, column in calls.items()}
        self.recorded_ns = self._call_times(records["correlation"])
        launched_ns = self._call_times(ops["correlation"])
        self.is_launched = launched_ns != NONE
        self.launched_ns = np.where(self.is_launched, launched_ns, ops["start_ns"])

    def waits(self) -> Iterator[tuple[int, str, int, int | None, int | None, bool]]:
        """Rows of `wait`: sync, kind, from_op, to_op, to_call, is_exact. A wait for nothing known has none."""
        awaited = self._awaited()
        behind = self._behind(awaited)
        call = gpu_work.calls_of(self.syncs["correlation"], self.calls["correlation"])
        call_id = np.append(self.calls["id"], NONE)[call]
        for at in np.flatnonzero(awaited.op != NONE).tolist():
            sync_id, from_op = int(self.syncs["id"][at]), int(self.ops["id"][awaited.op[at]])
            if self.syncs["kind"][at] != STREAM_WAIT:
                yield sync_id, "sync", from_op, None, _known(call_id[at]), bool(awaited.is_exact[at])
            elif behind.op[at] != NONE:
                is_exact = bool(awaited.is_exact[at] and behind.is_exact[at])
                yield sync_id, "event", from_op, int(self.ops["id"][behind.op[at]]), None, is_exact

    def _awaited(self) -> _Found:
        """The operation that each wait waited for."""
        record, is_certain = self._records()
        kind = self.syncs["kind"]
        is_event = np.isin(kind, (EVENT, STREAM_WAIT))
        recorded_ns, context, stream = (
            np.append(column, NONE)[record]
            for column in (self.recorded_ns, self.records["context"], self.records["stream"])
        )
        of_event = self._in_lanes(context, stream, recorded_ns, is_event & (recorded_ns != NONE), _Lane.last_before)
        stream = np.where(kind == CONTEXT, NONE, self.syncs["stream"])
        of_lane = self._in_lanes(self.syncs["context"], stream, self.syncs["end_ns"], ~is_event, _Lane.last_ended)
        return _Found(
            np.where(is_event, of_event.op, of_lane.op), np.where(is_event, of_event.is_exact & is_certain, True)
        )

    def _behind(self, awaited: _Found) -> _Found:
        """The operation of another stream that each wait of a stream held up, if the trace does not contradict it."""
        sync = self.syncs
        wanted = (awaited.op != NONE) & (sync["kind"] == STREAM_WAIT)
        found = self._in_lanes(sync["context"], sync["stream"], sync["start_ns"], wanted, _Lane.first_from)
        of_op = {name: np.append(column, NONE) for name, column in self.ops.items()}
        same_lane = (of_op["context"][awaited.op] == sync["context"]) & (of_op["stream"][awaited.op] == sync["stream"])
        is_late = of_op["start_ns"][found.op] >= of_op["end_ns"][awaited.op]
        return _Found(np.where(is_late & ~same_lane, found.op, NONE), found.is_exact)

    def _in_lanes(
        self, context: Column, stream: Column, times_ns: Column, wanted: Mask, find: Callable[[_Lane, Column], Column]
    ) -> _Found:
        """Asks the lane of each wanted wait for a time; the index in the lane becomes one in `ops`."""
        found = _Found(np.full(len(context), NONE, np.int64), np.zeros(len(context), bool))
        lanes = set(zip(context[wanted].tolist(), stream[wanted].tolist(), strict=True))
        for lane_context, lane_stream in sorted(lanes):
            members = self._members(lane_context, lane_stream)
            if not len(members):
                continue
            lane = self._lane(members)
            at = np.flatnonzero(wanted & (context == lane_context) & (stream == lane_stream))
            found.op[at] = np.append(members, NONE)[find(lane, times_ns[at])]
            found.is_exact[at] = times_ns[at] >= lane.known_from_ns
        return found

    def _members(self, context: int, stream: int) -> Column:
        """Indices of the operations of a stream, or with NONE for a stream of a context, as they were launched."""
        mine = self.ops["context"] == context
        if stream != NONE:
            mine &= self.ops["stream"] == stream
        at = np.flatnonzero(mine)
        return at[np.lexsort((self.ops["start_ns"][at], self.launched_ns[at]))]

    def _lane(self, members: Column) -> _Lane:
        starts_ns, is_launched = self.ops["start_ns"][members], self.is_launched[members]
        known_from_ns = int(starts_ns[~is_launched].max()) + 1 if not is_launched.all() else -(1 << 62)
        return _Lane(self.launched_ns[members], self.ops["end_ns"][members], known_from_ns)

    def _records(self) -> tuple[Column, Mask]:
        """For each wait the record of the event that it waits for, or NONE, and whether that is certain.

        It is where the trace links both, or where the same context recorded the event last before the wait: an event
        may be recorded many times.
        """
        sync, records = self.syncs, self.records
        named = _index_of(sync["event_sync"], records["event_sync"])
        named = np.where(named == NONE, _index_of(sync["record_correlation"], records["correlation"]), named)
        last = _last_before(records["event"], self.recorded_ns, sync["event"], sync["start_ns"])
        same_context = np.append(records["context"], NONE)[last] == sync["context"]
        return np.where(named == NONE, last, named), (named != NONE) | same_context

    def _call_times(self, correlation: Column) -> Column:
        """Start of the call of each correlation id, or NONE."""
        return np.append(self.calls["start_ns"], NONE)[gpu_work.calls_of(correlation, self.calls["correlation"])]


@dataclass(frozen=True)
class _Found:
    """For each wait the index of an operation, or NONE, and whether it is certain."""

    op: Column
    is_exact: Mask


def _known(number: int) -> int | None:
    return None if number == NONE else int(number)


def _index_of(wanted: Column, keys: Column) -> Column:
    """For each value its index in `keys`, or NONE; NONE itself and 0 name nothing."""
    order = np.argsort(keys, kind="stable")
    index = np.append(NONE, order)[np.searchsorted(keys[order], wanted, side="right")]
    return np.where((wanted > 0) & (np.append(keys, NONE)[index] == wanted), index, NONE)


def _last_before(events: Column, times_ns: Column, wanted: Column, before_ns: Column) -> Column:
    """For each wanted event the index of its last record up to a time, or NONE."""
    n = len(events)
    usable = np.concatenate((times_ns != NONE, np.zeros(len(wanted), bool)))
    both, times = np.concatenate((events, wanted)), np.concatenate((times_ns, before_ns))
    order = np.lexsort((~usable, times, both))  # of equal times the record comes first
    place = np.maximum.accumulate(np.where(usable[order], np.arange(len(order)), NONE))
    record = np.where(place == NONE, NONE, order[place])
    found = np.full(len(both), NONE, np.int64)
    found[order] = np.where(both[record] == both[order], record, NONE)
    return np.where(wanted == NONE, NONE, found[n:])


_HAS_WAITS = """
    SELECT EXISTS (SELECT 1 FROM sync WHERE source_id = :source AND kind IN ('event', 'stream', 'context'))
        OR EXISTS (SELECT 1 FROM cuda_event WHERE source_id = :source)
"""
_SYNC_COLUMNS = dict.fromkeys(
    ("id", "process_id", "kind", "context", "stream", "start_ns", "end_ns", "correlation", "event", "event_sync",
     "record_correlation"), "i8",
)  # fmt: skip
_SYNCS = """
    SELECT id, process_id,
           CASE kind WHEN 'event' THEN 0 WHEN 'stream wait' THEN 1 WHEN 'stream' THEN 2 ELSE 3 END AS kind,
           COALESCE(context, -1) AS context, COALESCE(stream, -1) AS stream, start_ns, end_ns,
           COALESCE(correlation, -1) AS correlation, COALESCE(event, -1) AS event,
           COALESCE(event_sync, -1) AS event_sync, COALESCE(record_correlation, -1) AS record_correlation
      FROM sync
     WHERE source_id = {source_id:d} AND kind IN ('event', 'stream wait', 'stream', 'context')
"""
_RECORD_COLUMNS = dict.fromkeys(("process_id", "context", "stream", "event", "event_sync", "correlation"), "i8")
_RECORDS = """
    SELECT process_id, COALESCE(context, -1) AS context, stream, COALESCE(event, -1) AS event,
           COALESCE(event_sync, -1) AS event_sync, COALESCE(correlation, -1) AS correlation
      FROM cuda_event
     WHERE source_id = {source_id:d}
"""
_OP_COLUMNS = dict.fromkeys(("id", "process_id", "context", "stream", "start_ns", "end_ns", "correlation"), "i8")
_OPS = """
    SELECT id, process_id, COALESCE(context, -1) AS context, COALESCE(stream, -1) AS stream, start_ns, end_ns,
           COALESCE(correlation, -1) AS correlation
      FROM gpu_op
     WHERE source_id = {source_id:d}
"""
_CALL_COLUMNS = dict.fromkeys(("id", "process_id", "start_ns", "correlation"), "i8")
_CALLS = """
    SELECT a.id, t.process_id, a.start_ns, a.correlation
      FROM api_call a JOIN thread t ON t.id = a.thread_id
     WHERE a.source_id = {source_id:d} AND a.correlation IS NOT NULL
"""
_WAITING_CALLS = f"""{_CALLS}
       AND a.correlation IN (SELECT correlation FROM sync WHERE source_id = {{source_id:d}} AND kind <> 'stream wait')
"""
_INSERT = "INSERT INTO wait (source_id, sync_id, kind, from_op, to_op, to_call, is_exact) VALUES (?, ?, ?, ?, ?, ?, ?)"
