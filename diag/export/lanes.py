"""Lanes: which row a slice is drawn on, so that no viewer has to drop one.

Viewers of trace events draw the slices of a row as a call stack: two that overlap must nest. Work on a GPU stream may
overlap (concurrent graph nodes, timestamps that are not exact), and host ranges may cross (start/end ranges, a
profiler step that outlives the function that announced it). Slices are placed in the order of their start, of equal
starts the longest first; intervals are half-open.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

DEEPEST = 200
"""Perfetto counts the depth of a stack in eight bits and drops what lies deeper."""


class Lanes(Protocol):
    def place(self, start_ns: int, end_ns: int) -> int:
        """The lane, counted from 0, of the next slice `[start_ns, end_ns)`."""
        ...


class Partition:
    """Greedy interval partitioning: the lowest lane that is free, so that no two slices of a lane overlap.

    It needs no more lanes than slices overlap at any one time (Kleinberg and Tardos, Algorithm Design, section 4.1).
    """

    def __init__(self) -> None:
        self._busy: list[tuple[int, int]] = []  # heap of (end, lane)
        self._free: list[int] = []  # heap of lanes
        self._count = 0

    def place(self, start_ns: int, end_ns: int) -> int:
        while self._busy and self._busy[0][0] <= start_ns:
            heappush(self._free, heappop(self._busy)[1])
        if self._free:
            lane = heappop(self._free)
        else:
            lane = self._count
            self._count += 1
        heappush(self._busy, (end_ns, lane))
        return lane


class Nesting:
    """Slices that nest share lane 0 as a stack; one that crosses it, or lies too deep, goes to a lane beside it."""

    def __init__(self) -> None:
        self._open: list[int] = []  # ends of the slices around this moment, outermost first
        self._beside = Partition()

    def place(self, start_ns: int, end_ns: int) -> int:
        while self._open and self._open[-1] <= start_ns:
            self._open.pop()
        if len(self._open) < DEEPEST and (not self._open or end_ns <= self._open[-1]):
            self._open.append(end_ns)
            return 0
        return 1 + self._beside.place(start_ns, end_ns)
