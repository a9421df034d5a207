"""Several inputs of one process as one trace.

One of them is the *leader*: the one with the GPU work, and of several the one of Nsight Systems. It gives the axis, the
GPU work and the CUDA calls. A *guest* adds what it recorded of the leader's threads: operators, Python functions,
annotations, NVTX ranges, and OS calls, context switches and samples where the leader has none. Its GPU work is not
counted a second time. Which sources are joined, and how far their clocks differ, `ingest/joining.py` has found out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case, Source
from diag.timeline import nesting
from diag.timeline.ranges import OPEN_NS, Ranges
from diag.timeline.recordings import Recordings, Rows, ThreadRow
from diag.timeline.trace import Trace

RANGE_FACTS = ("nvtx", "operator", "python", "annotation", "shapes")
HOST_FACTS = (*RANGE_FACTS, "os_call", "sched", "cpu_sample")
"""What a guest can add."""


def traces_of(case: Case) -> list[Trace]:
    """A trace for each source with a timeline whose events lie in the case, but one for those that are joined."""
    guests: dict[int, list[Source]] = {}
    for source in case.sources:
        if source.joined_to is not None:
            guests.setdefault(source.joined_to, []).append(source)
    here = [source for source in case.sources if source.has_timeline and source.shard is None]
    leaders = [source for source in here if source.joined_to is None]
    return [
        Trace(case, source, recorded=JoinedRecordings(case, source, guests[source.id]) if source.id in guests else None)
        for source in leaders
    ]


class JoinedRecordings(Recordings):
    """What a leader source recorded, with what its guests add."""

    def __init__(self, case: Case, source: Source, guests: Sequence[Source]) -> None:
        super().__init__(case, replace(source, capabilities=_together(source, guests)))
        self._own = Recordings(case, source)
        self._guests = [_Guest.of(self._own, Recordings(case, guest)) for guest in guests]

    @property
    def sources(self) -> Sequence[Source]:
        return [self.source, *(guest.recorded.source for guest in self._guests)]

    @property
    def clock_error_ns(self) -> int:
        return max(guest.recorded.source.clock_error_ns or 0 for guest in self._guests)

    def recorded_as(self, thread_id: int) -> Sequence[tuple[int, int]]:
        there = [(guest.recorded.source.id, i) for guest in self._guests for i in guest.known_as(thread_id)]
        return [(self.source.id, thread_id), *there]

    @cached_property
    def ranges(self) -> Ranges:
        own = self._own.ranges
        parts = [own, *(_without_twins(guest.ranges(), own, self.case.patterns) for guest in self._guests)]
        ranges = Ranges(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Ranges)))
        return ranges.select(nesting.nesting_order(ranges.thread_id, ranges.start_ns, ranges.end_ns))

    @cached_property
    def threads(self) -> Sequence[ThreadRow]:
        return [*self._own.threads, *(row for guest in self._guests for row in guest.threads_of_its_own())]

    @cached_property
    def os_calls(self) -> Rows:
        return self._most_of("os_call", lambda recorded: recorded.os_calls)

    @cached_property
    def switches(self) -> Rows:
        return self._most_of("sched", lambda recorded: recorded.switches)

    @cached_property
    def samples(self) -> Rows:
        return self._most_of("cpu_sample", lambda recorded: recorded.samples)

    def _most_of(self, fact: str, rows: Callable[[Recordings], Rows]) -> Rows:
        """The leader's own rows, or those of the guest that recorded most where the leader recorded none."""
        recorders = [guest for guest in self._guests if guest.recorded.source.has(fact)]
        if self._own.source.has(fact) or not recorders:
            return rows(self._own)
        most = max(recorders, key=lambda guest: guest.recorded.source.capabilities[fact] or 0)
        return most.on_the_axis(rows(most.recorded))


@dataclass(frozen=True, eq=False)
class _Guest:
    recorded: Recordings
    shift_ns: int  # from its clock to the leader's
    leading_thread: Mapping[int, int]  # by its own thread ids; threads that the leader lacks keep theirs
    leading_process: Mapping[int, int]

    @classmethod
    def of(cls, leader: Recordings, guest: Recordings) -> _Guest:
        threads = {(leader.pid_of(row), row.tid): row.id for row in leader.threads}
        processes = {leader.pid_of(row): row.process_id for row in leader.threads}
        return cls(
            guest,
            guest.source.clock_offset_ns - leader.source.clock_offset_ns,
            {row.id: threads.get((guest.pid_of(row), row.tid), row.id) for row in guest.threads},
            {row.process_id: processes.get(guest.pid_of(row), row.process_id) for row in guest.threads},
        )

    def known_as(self, leading_thread: int) -> list[int]:
        return [own for own, there in self.leading_thread.items() if there == leading_thread]

    def threads_of_its_own(self) -> list[ThreadRow]:
        return [
            replace(row, process_id=self.leading_process[row.process_id])
            for row in self.recorded.threads
            if self.leading_thread[row.id] == row.id
        ]

    def ranges(self) -> Ranges:
        own = self.recorded.ranges
        end_ns = np.where(own.end_ns == OPEN_NS, OPEN_NS, own.end_ns + self.shift_ns)
        threads = self._threads(own.thread_id).astype(own.thread_id.dtype)
        return replace(own, thread_id=threads, start_ns=own.start_ns + self.shift_ns, end_ns=end_ns)

    def on_the_axis(self, rows: Rows) -> Rows:
        """The rows with the leader's thread ids and times, by thread and time again."""
        moved = {name: column + self.shift_ns if name.endswith("_ns") else column for name, column in rows.items()}
        moved["thread_id"] = self._threads(rows["thread_id"])
        order = np.argsort(moved["thread_id"], kind="stable")
        return {name: column[order] for name, column in moved.items()}

    def _threads(self, own: NDArray[np.signedinteger[Any]]) -> NDArray[np.int64]:
        distinct, at = np.unique(own, return_inverse=True)
        return np.array([self.leading_thread[i] for i in distinct.tolist()], np.int64)[at]


def _together(leader: Source, guests: Sequence[Source]) -> Mapping[str, int | None]:
    """What the leader recorded, and of HOST_FACTS what a guest adds; None where nobody recorded it."""
    facts = dict(leader.capabilities)
    for fact in HOST_FACTS:
        counts = [count for source in (leader, *guests) if (count := source.capabilities.get(fact)) is not None]
        facts[fact] = sum(counts) if counts else None
    return facts


def _without_twins(guest: Ranges, leader: Ranges, patterns: Mapping[int, str]) -> Ranges:
    """The guest's ranges, without those whose name the leader knows from the same thread: they are the same ones."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(patterns.values()))}
    key = np.zeros(max(patterns, default=0) + 1, np.int64)
    key[list(patterns)] = [numbers[text] for text in patterns.values()]
    of_guest, of_leader = (
        each.thread_id.astype(np.int64) * len(numbers) + key[each.name_id] for each in (guest, leader)
    )
    return guest.select(~np.isin(of_guest, of_leader))
