"""What each operation of a device had to wait for, and what of it let it go at last.

Three kinds of order are known: operations of one stream follow each other; a stream that waits for an event goes on
when the operations before the event's record have ended; and an operation cannot start before it is launched. What the
program orders in other ways (flags in memory, edges of graphs) is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import NONE, Column

Mask = NDArray[np.bool_]

NEVER_NS = -(1 << 62)


@dataclass(frozen=True, eq=False)
class EventWaits:
    """Pairs of operations of one source: the second one's stream waited for an event that the first had to precede."""

    from_op: Column  # ids of gpu_op
    to_op: Column
    from_end_ns: Column


@dataclass(frozen=True, eq=False)
class Dependencies:
    """In parallel with the operations of a device (`all_ops`); indices are among them, NONE where nothing is known."""

    lane: Column  # number of the operation's (context, stream)
    previous: Column  # the operation before it on its stream
    awaited: Column  # of the operations that it waited for by events the one that ended last, if on this device
    awaited_end_ns: Column  # when that one ended, on whichever device; NEVER_NS without
    previous_end_ns: Column
    launched_ns: Column  # return of the launching call; NEVER_NS where it was not captured

    @cached_property
    def ready_ns(self) -> Column:
        """When nothing known kept the operation any more: launched, and its predecessors ended."""
        return np.maximum(np.maximum(self.previous_end_ns, self.awaited_end_ns), self.launched_ns)

    @cached_property
    def released_by(self) -> Column:
        """The predecessor that ended last; NONE too where the operation was launched only after that."""
        by_event = self.awaited_end_ns > self.previous_end_ns
        last = np.where(by_event, self.awaited, self.previous)
        ended_ns = np.maximum(self.previous_end_ns, self.awaited_end_ns)
        return np.where((ended_ns > NEVER_NS) & (ended_ns >= self.launched_ns), last, NONE)


def dependencies_of(device: DeviceTimeline, context: Column, waits: EventWaits) -> Dependencies:
    """`context` is that of each operation of the device."""
    ops = device.all_ops
    lane = lanes(context, ops.stream)
    previous = previous_in(lane)
    awaited, awaited_end_ns = _awaited(ops.id, waits)
    returned_ns = np.append(device.calls.end_ns, NEVER_NS)
    return Dependencies(
        lane=lane,
        previous=previous,
        awaited=awaited,
        awaited_end_ns=awaited_end_ns,
        previous_end_ns=np.append(ops.end_ns, NEVER_NS)[previous],
        launched_ns=returned_ns[device.all_launch],
    )


def lanes(context: Column, stream: Column) -> Column:
    """A number for each (context, stream): stream ids are local to their context."""
    contexts, streams = _numbered(context), _numbered(stream)
    return _numbered(contexts * (int(streams.max(initial=0)) + 1) + streams)


def previous_in(lane: Column) -> Column:
    """For each operation, all sorted by start, the one before it in its lane, or NONE."""
    order = np.argsort(lane, kind="stable")
    same = lane[order][1:] == lane[order][:-1]
    previous = np.full(len(lane), NONE, np.int64)
    previous[order[1:][same]] = order[:-1][same]
    return previous


def _numbered(values: Column) -> Column:
    """Small numbers in the place of any; those that are small already stay as they are, which takes no sort."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low < 1 << 12:
        return values - low
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _awaited(ids: Column, waits: EventWaits) -> tuple[Column, Column]:
    awaited, ended_ns = np.full(len(ids), NONE, np.int64), np.full(len(ids), NEVER_NS, np.int64)
    by_id = np.argsort(ids, kind="stable")
    to_op, from_op = (_index_of(wanted, ids[by_id], by_id) for wanted in (waits.to_op, waits.from_op))
    mine = np.flatnonzero(to_op != NONE)
    mine = mine[np.argsort(waits.from_end_ns[mine], kind="stable")]  # the one that ends last is written last
    awaited[to_op[mine]], ended_ns[to_op[mine]] = from_op[mine], waits.from_end_ns[mine]
    return awaited, ended_ns


def _index_of(wanted: Column, ids: Column, by_id: Column) -> Column:
    at = np.minimum(np.searchsorted(ids, wanted), max(len(ids) - 1, 0))
    return np.where(ids[at] == wanted, by_id[at], NONE) if len(ids) else np.full(len(wanted), NONE, np.int64)


def load_event_waits(case: Case, source_id: int) -> EventWaits:
    columns = case.arrays(_EVENT_WAITS.format(source_id=source_id), _COLUMNS)
    return EventWaits(columns["from_op"], columns["to_op"], columns["from_end_ns"])


def load_host_waits(case: Case, source_id: int) -> Column:
    """Ids of the operations that a host thread waited for."""
    return case.arrays(_HOST_WAITS.format(source_id=source_id), {"from_op": "i8"})["from_op"]


_COLUMNS = {"from_op": "i8", "to_op": "i8", "from_end_ns": "i8"}
_EVENT_WAITS = """
    SELECT w.from_op, w.to_op, g.end_ns AS from_end_ns
      FROM wait w JOIN gpu_op g ON g.id = w.from_op
     WHERE w.source_id = {source_id:d} AND w.kind = 'event' AND w.to_op IS NOT NULL
"""
_HOST_WAITS = "SELECT from_op FROM wait WHERE source_id = {source_id:d} AND kind = 'sync'"
