"""What one device or process was like over the snapshots of a run: each reading speaks for the time before it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Generic, TypeVar

LONGEST_HOLD = 2
"""A reading speaks for this many usual periods at most: where snapshots were missed, nothing is known."""

LEAST_KNOWN = 0.5
"""Of a window: what was readable for less of it is not known. Own choice."""

Span = tuple[int, int]
"""Start and end in ns since 1970."""

T = TypeVar("T")


def spans_of(times_ns: Sequence[int]) -> list[Span]:
    """For each time the span that a reading at it speaks for: back to the one before. The first speaks for none.

    >>> spans_of([0, 10, 20, 90])
    [(0, 0), (0, 10), (10, 20), (70, 90)]
    """
    gaps = sorted(after - before for before, after in pairwise(times_ns))
    longest_ns = LONGEST_HOLD * gaps[len(gaps) // 2] if gaps else 0
    first = [(time_ns, time_ns) for time_ns in times_ns[:1]]
    return first + [(max(before, after - longest_ns), after) for before, after in pairwise(times_ns)]


@dataclass(frozen=True)
class Told:
    """For how much of a window something held, and for how much of it that is known."""

    window_ns: int
    known_ns: int
    spans: Sequence[Span]  # in which it held

    @property
    def held_ns(self) -> int:
        return sum(end - start for start, end in self.spans)

    @property
    def is_known(self) -> bool:
        """Whether it is known for at least `LEAST_KNOWN` of the window: fields may be readable, but never together."""
        return self.known_ns >= LEAST_KNOWN * self.window_ns

    @property
    def share(self) -> float:
        """Of the window."""
        return self.held_ns / self.window_ns if self.window_ns else 0.0


@dataclass(frozen=True)
class Series(Generic[T]):
    """Parallel: readings of one thing, and the spans that they speak for."""

    window_ns: int
    readings: Sequence[T]
    spans: Sequence[Span]
    _columns: dict[str, Sequence[Any]] = field(default_factory=dict, compare=False, repr=False)
    _tells: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    _told: dict[Hashable, Told] = field(default_factory=dict, compare=False, repr=False)

    @property
    def last(self) -> T:
        return self.readings[-1]

    def column(self, name: str) -> Sequence[Any]:
        """A field of all readings."""
        if name not in self._columns:
            self._columns[name] = [getattr(each, name) for each in self.readings]
        return self._columns[name]

    def known(self, name: str) -> list[Any]:
        return [value for value in self.column(name) if value is not None]

    def tells(self, name: str) -> bool:
        """Whether a field was readable, and for at least `LEAST_KNOWN` of the window."""
        if name not in self._tells:
            readings = zip(self.column(name), self.spans, strict=True)
            known_ns = sum(end - start for value, (start, end) in readings if value is not None)
            self._tells[name] = known_ns >= LEAST_KNOWN * self.window_ns and bool(self.known(name))
        return self._tells[name]

    def mean(self, name: str, within: Sequence[Span] | None = None) -> float | None:
        """Mean of a field, weighted by time, over the spans that are given; None where it is not known."""
        only = None if within is None else set(within)
        weighted = total_ns = 0.0
        for value, span in zip(self.column(name), self.spans, strict=True):
            if value is not None and (only is None or span in only):
                weighted += value * (span[1] - span[0])
                total_ns += span[1] - span[0]
        return weighted / total_ns if total_ns else None

    def when(self, holds: Callable[[T], bool | None], *, key: Hashable = None) -> Told:
        """When a condition held; it answers None where it cannot be told. With a `key` it is worked out once."""
        if key is None:
            return self._when(holds)
        if key not in self._told:
            self._told[key] = self._when(holds)
        return self._told[key]

    def _when(self, holds: Callable[[T], bool | None]) -> Told:
        spans, known_ns = [], 0
        for reading, (start, end) in zip(self.readings, self.spans, strict=True):
            answer = holds(reading) if end > start else None
            known_ns += (end - start) if answer is not None else 0
            if answer:
                spans.append((start, end))
        return Told(self.window_ns, known_ns, spans)
