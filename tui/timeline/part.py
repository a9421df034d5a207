"""The part of the time axis that is shown, in columns of terminal cells."""

from __future__ import annotations

from dataclasses import dataclass, replace

from diag.timeline.intervals import Times
from diag.timeline.track import equal_parts

MARGIN = 0.1
"""Of what is jumped to, on either side of it."""


@dataclass(frozen=True)
class Part:
    """`[start_ns, end_ns)` of an axis that runs from 0 to `whole_ns`, in `columns` of equal length, of 1 ns at least.

    Make the first one with `Part.whole`; the others follow from it and stay inside the axis.
    """

    start_ns: int
    end_ns: int
    whole_ns: int
    columns: int

    @classmethod
    def whole(cls, whole_ns: int, columns: int) -> Part:
        length_ns = max(whole_ns, columns)
        return cls(0, length_ns, length_ns, columns)

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def column_ns(self) -> float:
        return self.length_ns / self.columns

    @property
    def is_whole(self) -> bool:
        return self.length_ns == self.whole_ns

    @property
    def edges_ns(self) -> Times:
        return equal_parts(self.start_ns, self.end_ns, self.columns)

    def span_of(self, column: int) -> tuple[int, int]:
        """First nanosecond of a column and the one behind its last."""
        return self.time_at(column), self.time_at(column + 1)

    def time_at(self, column: int) -> int:
        """Where a column begins, as `edges_ns` has it."""
        return self.start_ns + round(column * (self.length_ns / self.columns))

    def column_of(self, time_ns: int) -> int:
        """The column that holds this time; below 0 or from `columns` on where none of them does."""
        guess = int((time_ns - self.start_ns) * self.columns // self.length_ns)
        while self.time_at(guess) > time_ns:
            guess -= 1
        while self.time_at(guess + 1) <= time_ns:
            guess += 1
        return guess

    def holds(self, start_ns: int, end_ns: int) -> bool:
        return self.start_ns <= start_ns and end_ns <= self.end_ns

    def in_columns(self, columns: int) -> Part:
        """The same part on a screen of another width."""
        whole_ns = max(self.whole_ns, columns)
        if self.is_whole:
            return Part.whole(whole_ns, columns)
        return replace(self, whole_ns=whole_ns, columns=columns)._placed(self.start_ns, self.length_ns)

    def all(self) -> Part:
        return self._placed(0, self.whole_ns)

    def panned(self, by_ns: int) -> Part:
        return self._placed(self.start_ns + by_ns, self.length_ns)

    def zoomed(self, factor: float, around_ns: int) -> Part:
        """Shorter by the factor; the time around which it is zoomed keeps its place on the screen."""
        length_ns = self._possible(round(self.length_ns / factor))
        place = (around_ns - self.start_ns) / self.length_ns
        return self._placed(around_ns - round(place * length_ns), length_ns)

    def showing(self, start_ns: int, end_ns: int) -> Part:
        """As long as these times need with a margin around them, and they in the middle."""
        length_ns = self._possible(round((end_ns - start_ns) * (1 + 2 * MARGIN)))
        return self._placed((start_ns + end_ns - length_ns) // 2, length_ns)

    def reaching(self, start_ns: int, end_ns: int) -> Part:
        """Itself where it holds these times; else moved to have them in the middle, longer only where it must be."""
        if self.holds(start_ns, end_ns):
            return self
        if end_ns - start_ns > self.length_ns:
            return self.showing(start_ns, end_ns)
        return self._placed((start_ns + end_ns - self.length_ns) // 2, self.length_ns)

    def _possible(self, length_ns: int) -> int:
        return min(max(length_ns, self.columns), self.whole_ns)

    def _placed(self, start_ns: int, length_ns: int) -> Part:
        length_ns = self._possible(length_ns)
        start_ns = min(max(start_ns, 0), self.whole_ns - length_ns)
        return replace(self, start_ns=start_ns, end_ns=start_ns + length_ns)
