"""Whether an amount of memory grows throughout: by its floor, which what comes and goes does not lift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

PARTS = 4
FEWEST_IN_PART = 2


@dataclass(frozen=True)
class Growth:
    """The lowest value of the first quarter of a window and of the last, and the time between their middles."""

    first: int
    last: int
    between_ns: int

    @property
    def per_s(self) -> float:
        return (self.last - self.first) * 1e9 / self.between_ns

    def time_to_ns(self, rest: float) -> float:
        """Until as much more is taken, if it goes on as in the window: an extrapolation."""
        return rest / self.per_s * 1e9


def is_long_enough(times_ns: Sequence[int]) -> bool:
    return all(len(part) >= FEWEST_IN_PART for part in _parts(times_ns, times_ns))


def growth(times_ns: Sequence[int], values: Sequence[int]) -> Growth | None:
    """None unless the floor of each quarter of the window is above that of the one before.

    >>> growth(range(8), [0, 9, 1, 9, 2, 9, 3, 9])
    Growth(first=0, last=3, between_ns=5)
    >>> growth(range(8), [0, 9, 1, 9, 1, 9, 3, 9]) is None
    True
    """
    parts = _parts(times_ns, values)
    if any(len(part) < FEWEST_IN_PART for part in parts):
        return None
    floors = [min(part) for part in parts]
    if any(after <= before for before, after in pairwise(floors)):
        return None
    return Growth(floors[0], floors[-1], (times_ns[-1] - times_ns[0]) * (PARTS - 1) // PARTS)


def _parts(times_ns: Sequence[int], values: Sequence[int]) -> list[list[int]]:
    """Values by the quarter of the window that their time lies in."""
    parts: list[list[int]] = [[] for _ in range(PARTS)]
    if not times_ns:
        return parts
    first, span = times_ns[0], max(1, times_ns[-1] - times_ns[0])
    for time_ns, value in zip(times_ns, values, strict=True):
        parts[min(PARTS - 1, (time_ns - first) * PARTS // span)].append(value)
    return parts
