"""What a host thread was doing: its ranges, CUDA calls, OS calls, time on a core, and samples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.timeline import nesting
from diag.timeline.gpu_work import Calls
from diag.timeline.intervals import Intervals, Times
from diag.timeline.ranges import NESTING_KINDS, OPEN_NS, Ranges

Index = NDArray[np.int64]

SYNCHRONISING_CALL = re.compile(r"Synchroni[sz]e|^(cuda|cu|hip)Memcpy(?!.*Async)")
"""CUDA and HIP calls that return only when the device has done what they wait for."""


@dataclass(frozen=True, eq=False)
class OsCalls:
    """OS runtime calls of one thread in parallel arrays, in nesting order."""

    start_ns: Times
    end_ns: Times
    name_id: Index
    stack_id: Index  # or NONE: only calls longer than the profiler's threshold have a stack

    def select(self, selection: NDArray[np.bool_]) -> OsCalls:
        return OsCalls(*(getattr(self, field.name)[selection] for field in fields(self)))

    def union(self) -> Intervals:
        return Intervals.union_of(self.start_ns, self.end_ns)


@dataclass(frozen=True, eq=False)
class Samples:
    """Sampled stacks of one thread, sorted by time."""

    time_ns: Times
    stack_id: Index


RUNNABLE, BLOCKED = 1, 0
"""How a thread leaves its core: preempted, or because it waits for something. NONE where the file is silent."""


@dataclass(frozen=True, eq=False)
class Switches:
    """Context switches of one thread, sorted by time."""

    time_ns: Times
    is_in: Index
    cpu: Index
    state: Index  # of a switch out: RUNNABLE, BLOCKED or NONE

    def off_cpu(self, state: int | None = None) -> Intervals:
        """Time off a core, from each switch out (into that state) to the next switch in."""
        out = self.is_in == 0
        return self._until_next(out if state is None else out & (self.state == state))

    def on_cpu(self, cpu: int) -> Intervals:
        """Time on that core, from each switch in to the next switch out."""
        return self._until_next((self.is_in == 1) & (self.cpu == cpu))

    def _until_next(self, which: NDArray[np.bool_]) -> Intervals:
        at = np.flatnonzero(which)
        following = np.append(self.time_ns, np.iinfo(np.int64).max)[at + 1]
        return Intervals.union_of(self.time_ns[at], following)


@dataclass(frozen=True, eq=False)
class GilStates:
    """When a thread waited for Python's global interpreter lock and when it held it, as traced (nsys python-gil)."""

    waiting: Intervals
    holding: Intervals


@dataclass(frozen=True, eq=False)
class HostThread:
    """Everything captured of one thread. `switches` is None when context switches were not captured, `gil` likewise."""

    thread_id: int
    process_id: int
    tid: int
    name: str | None
    names: Mapping[int, str]
    patterns: Mapping[int, str]
    all_ranges: Ranges
    calls: Calls
    os_calls: OsCalls
    switches: Switches | None
    samples: Samples
    gil: GilStates | None
    blocking_copies: Intervals = field(default_factory=Intervals.empty)
    """Time inside calls, asynchronous ones by name, whose copies from or to pageable memory keep the thread."""

    @cached_property
    def off_cpu(self) -> Intervals | None:
        return None if self.switches is None else self.switches.off_cpu()

    @cached_property
    def ranges(self) -> Ranges:
        """Ranges that nest on this thread: without start/end ranges and marks."""
        nests = np.isin(self.all_ranges.kind, NESTING_KINDS)
        return self.all_ranges if nests.all() else self.all_ranges.select(nests)

    @cached_property
    def parents(self) -> Index:
        return nesting.parents(self.ranges.start_ns, self.ranges.end_ns)

    @cached_property
    def range_patterns(self) -> list[str]:
        """The distinct name patterns of the ranges; `range_labels` are indices into it."""
        return self._labelled[1]

    @property
    def range_labels(self) -> Index:
        return self._labelled[0]

    @cached_property
    def _labelled(self) -> tuple[Index, list[str]]:
        distinct, index = np.unique(self.ranges.name_id, return_inverse=True)
        of_distinct = [self.patterns[name_id] for name_id in distinct.tolist()]
        texts = list(dict.fromkeys(of_distinct))
        number = {text: label for label, text in enumerate(texts)}
        return np.array([number[text] for text in of_distinct], np.int64)[index], texts

    @cached_property
    def outermost(self) -> NDArray[np.bool_]:
        """False for a range inside another one of the same pattern, so that recursion is counted once."""
        return nesting.outermost_of_label(self.range_labels, self.parents)

    @cached_property
    def in_cuda(self) -> Intervals:
        return Intervals.union_of(self.calls.start_ns, self.calls.end_ns)

    @cached_property
    def synchronising(self) -> Intervals:
        """Time inside CUDA calls that wait for the device."""
        names = [i for i in np.unique(self.calls.name_id).tolist() if SYNCHRONISING_CALL.search(self.names[i])]
        waits = np.isin(self.calls.name_id, names)
        return Intervals.union_of(self.calls.start_ns[waits], self.calls.end_ns[waits]) | self.blocking_copies

    @cached_property
    def in_os(self) -> Intervals:
        return self.os_calls.union()

    @cached_property
    def recorded(self) -> Intervals:
        """Time inside any range that was closed, or any OS call."""
        closed = self.ranges.end_ns != OPEN_NS
        return Intervals.union_of(self.ranges.start_ns[closed], self.ranges.end_ns[closed]) | self.in_os


@dataclass(frozen=True, eq=False)
class ThreadStates:
    """A set of a thread's time, each nanosecond given to the first state that holds."""

    off_cpu: Intervals
    cuda_call: Intervals
    os_call: Intervals
    running: Intervals


def states_within(thread: HostThread, when: Intervals) -> ThreadStates:
    """Partitions `when` by the thread's own state, in the order of the fields of ThreadStates."""
    off_cpu = when & thread.off_cpu if thread.off_cpu is not None else Intervals.empty()
    rest = when - off_cpu
    cuda_call = rest & thread.in_cuda
    rest = rest - cuda_call
    os_call = rest & thread.in_os
    return ThreadStates(off_cpu, cuda_call, os_call, rest - os_call)
