"""Places for labels in a picture: each near what it names, none over another or over what must stay in sight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    width: float
    height: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> Box:
        return cls(x - width / 2, y - height / 2, width, height)

    @property
    def center(self) -> tuple[float, float]:
        return self.left + self.width / 2, self.top + self.height / 2

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.top < other.top + other.height
            and other.top < self.top + self.height
        )

    def is_inside(self, other: Box) -> bool:
        return (
            other.left <= self.left
            and other.top <= self.top
            and self.left + self.width <= other.left + other.width
            and self.top + self.height <= other.top + other.height
        )


DIRECTIONS = 16
FARTHEST = 12


def near(x: float, y: float, width: float, height: float, taken: Sequence[Box], within: Box) -> Box:
    """A box of this size near a point that meets none of `taken`; over the point itself where all is full."""
    candidates = (Box.around(x + dx, y + dy, width, height) for dx, dy in _around(max(width, height)))
    free = (box for box in candidates if box.is_inside(within) and not any(map(box.meets, taken)))
    return next(free, Box.around(x, y, width, height))


def _around(step: float) -> Iterator[tuple[float, float]]:
    """Ways from a point, the shortest first, upwards before downwards."""
    for distance in range(1, FARTHEST + 1):
        for turn in range(DIRECTIONS):
            angle = -math.pi / 2 + turn * 2 * math.pi / DIRECTIONS
            yield distance * step * math.cos(angle), distance * step * math.sin(angle)
