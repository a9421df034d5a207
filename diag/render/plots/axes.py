"""Linear axes from 0: round ticks, and the unit once, in the title."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from diag.model import units

MOST_TICKS = 6


@dataclass(frozen=True)
class Axis:
    title: str  # with the unit
    top: float  # in the unit of the values
    ticks: Sequence[tuple[float, str]]

    def along(self, value: float) -> float:
        """From 0 to 1; what is beyond the axis is at its end."""
        return min(max(value / self.top, 0.0), 1.0)


def time_axis(what: str, top_ns: float, most: int = MOST_TICKS) -> Axis:
    """
    >>> axis = time_axis("time", 2_400_000)
    >>> axis.title, axis.top, axis.ticks[1]
    ('time (ms)', 2400000, (500000.0, '0.5'))
    """
    top_ns = max(top_ns, 1)
    unit = units.time(top_ns).split(" ")[1]
    scale = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1.0}[unit]
    return Axis(
        f"{what} ({unit})", top_ns, [(value * scale, f"{value:g}") for value in round_values(top_ns / scale, most)]
    )


def share_axis(what: str) -> Axis:
    """Of values from 0 to 1."""
    return Axis(f"{what} (%)", 1.0, [(percent / 100, f"{percent}") for percent in range(0, 101, 20)])


def count_axis(what: str, top: int, most: int = MOST_TICKS) -> Axis:
    """Of whole numbers."""
    steps = [value for value in round_values(max(top, 1), most) if value == int(value)]
    return Axis(what, max(top, 1), [(value, f"{value:,.0f}") for value in steps])


def round_values(top: float, most: int) -> list[float]:
    """From 0 up to `top`, at most about `most` of them, in steps of 1, 2 or 5 times a power of ten.

    >>> round_values(2.4, 6), round_values(950, 5)
    ([0.0, 0.5, 1.0, 1.5, 2.0], [0.0, 200.0, 400.0, 600.0, 800.0])
    """
    decade = 10.0 ** math.floor(math.log10(top / most))
    step = next(factor * decade for factor in (1, 2, 5, 10) if factor * decade * most >= top * (1 - 1e-9))
    return [round(at * step, 12) for at in range(math.floor(top / step * (1 + 1e-9)) + 1)]
