"""What a reader predicted: the number that was typed, and how far it is from what was measured."""

from __future__ import annotations

import math
import re
from typing import Literal

Verdict = Literal["right", "near", "far", "wrong", "unsaid"]

NEAR = 2.0
"""Half or twice the figure is the right order of magnitude."""

_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_SCALES: dict[str, tuple[str, float]] = {
    **{name: ("ns", ns) for name, ns in {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}.items()},
    **{
        f"{prefix}{unit}": (base, factor)
        for unit, base in {
            "B": "bytes",
            "bytes": "bytes",
            "B/s": "bytes/s",
            "FLOP": "FLOP",
            "FLOPs": "FLOP",
            "FLOP/s": "FLOP/s",
            "FLOPS": "FLOP/s",
        }.items()
        for prefix, factor in _PREFIXES.items()
    },
    "%": ("share", 0.01),
    "×": ("x", 1),
}
"""Units that people type: the unit of figures, and how many of it one is. Any other unit stands for itself."""

_NUMBER = re.compile(r"\s*([0-9][0-9,_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)(?:\s*/\s*([0-9]+))?\s*(.*?)\s*")
MOST_CHARACTERS = 60


def parsed(text: str, unit: str) -> float | None:
    """What was typed, in the unit of figures; `unit` is that of a bare number. None for what is no such quantity.

    >>> parsed("1/12", "FLOP/byte"), parsed("40", "GB/s"), parsed("250 us", "ms"), parsed("30 %", "%")
    (0.08333333333333333, 40000000000.0, 250000.0, 0.3)
    >>> parsed("many", "GB/s"), parsed("3 apples", "GB/s"), parsed("3 ms", "GB/s")
    (None, None, None)
    """
    match = _NUMBER.fullmatch(text[:MOST_CHARACTERS])
    if match is None or (match[2] is not None and int(match[2]) == 0):
        return None
    typed = match[3] or unit
    asked, said = scale(unit), scale(typed)
    if said[0] != asked[0]:
        return None
    value = float(match[1].replace(",", "").replace("_", "")) / int(match[2] or 1) * said[1]
    return value if math.isfinite(value) else None


def scale(unit: str) -> tuple[str, float]:
    """The unit of figures behind one that people type, and how many of it one is."""
    return _SCALES.get(unit, (unit, 1.0))


def ratio(predicted: float, figure: float) -> float:
    """How many times the larger is the smaller one, ≥ 1; infinite where one of them is 0 and the other is not."""
    small, large = sorted((abs(predicted), abs(figure)))
    if small == large:
        return 1.0
    return large / small if small else math.inf


def verdict(predicted: float | None, figure: float, close: float) -> Verdict:
    """
    >>> verdict(80e9, 100e9, 1.25), verdict(50e9, 100e9, 1.25), verdict(1e9, 100e9, 1.25), verdict(None, 1, 1.25)
    ('right', 'near', 'far', 'unsaid')

    What is counted is right or wrong: it leaves no room.

    >>> verdict(4, 4, 1), verdict(3, 4, 1)
    ('right', 'wrong')
    """
    if predicted is None:
        return "unsaid"
    off = ratio(predicted, figure)
    if close == 1 and off > 1:
        return "wrong"
    return "right" if off <= close else "near" if off <= NEAR else "far"
