"""Student's t for whole degrees of freedom, without SciPy."""

from __future__ import annotations

import math


def t_inside(t: float, freedom: int) -> float:
    """P(|T| < t) for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    >>> round(t_inside(12.706, 1), 4), round(t_inside(2.776, 4), 4)
    (0.95, 0.95)
    """
    angle = math.atan(t / math.sqrt(freedom))
    squared = math.cos(angle) ** 2
    is_odd = freedom % 2 == 1
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for k in range(1 + is_odd, freedom, 2):
        total += term
        term *= squared * k / (k + 1)
    if is_odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


def t_within(level: float, freedom: int) -> float:
    """The t that |T| stays below with this probability."""
    low, high = 0.0, 1.0
    while t_inside(high, freedom) < level:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if t_inside(middle, freedom) < level else (low, middle)
    return high
