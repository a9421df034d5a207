"""The time axis: where its ticks are and what they are called, from a whole run down to single nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, pairwise

from diag.render.layout import cells
from diag.tui.timeline.part import Part

_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1))
MOST_DECIMALS = 3
"""A tick that needs more of them says how far it is from the left edge instead."""

SPACE = 2
"""Cells between two labels at least."""


@dataclass(frozen=True)
class Tick:
    column: int
    label: str


def ticks(part: Part) -> list[Tick]:
    """Labels at round times, as many as there is room for. Those that begin with + count from `part.start_ns`."""
    for step_ns in _steps(part):
        found = _ticks(part, step_ns)
        if all(_fits(a, b) for a, b in pairwise(found)):
            return [tick for tick in found if tick.column + cells(tick.label) <= part.columns]
    return []


def exact(time_ns: int) -> str:
    """A time on the axis to the nanosecond, in the unit that its size asks for.

    >>> exact(1_500), exact(2_000_000_001), exact(0)
    ('1.5 µs', '2.000000001 s', '0 ns')
    """
    unit, size_ns = _unit_of(time_ns)
    return f"{_decimal(time_ns, size_ns)} {unit}"


def _steps(part: Part) -> list[int]:
    """1, 2 and 5 times the powers of ten, from about a column on."""
    steps = []
    for power in count():
        for factor in (1, 2, 5):
            step_ns = factor * 10**power
            if step_ns >= part.column_ns:
                steps.append(step_ns)
            if step_ns > part.length_ns:
                return steps
    raise AssertionError("unreachable")


def _ticks(part: Part, step_ns: int) -> list[Tick]:
    first = -(-part.start_ns // step_ns)
    times = [step_ns * n for n in range(first, -(-part.end_ns // step_ns))]
    unit, size_ns = _unit_of(times[-1] if times else part.end_ns)
    if step_ns * 10**MOST_DECIMALS >= size_ns:
        return [Tick(part.column_of(time), _label(time, unit, size_ns)) for time in times]
    beyond = range(step_ns, part.length_ns, step_ns)
    unit, size_ns = _unit_of(beyond[-1] if beyond else step_ns)
    return [Tick(part.column_of(part.start_ns + after), f"+{_label(after, unit, size_ns)}") for after in beyond]


def _label(time_ns: int, unit: str, size_ns: int) -> str:
    return "0" if time_ns == 0 else f"{_decimal(time_ns, size_ns)} {unit}"


def _fits(a: Tick, b: Tick) -> bool:
    return a.column + cells(a.label) + SPACE <= b.column


def _unit_of(time_ns: int) -> tuple[str, int]:
    return next(((unit, size_ns) for unit, size_ns in _UNITS if time_ns >= size_ns), _UNITS[-1])


def _decimal(time_ns: int, size_ns: int) -> str:
    """The quotient without rounding."""
    whole, rest = divmod(time_ns, size_ns)
    digits = f"{rest:0{len(str(size_ns)) - 1}d}".rstrip("0") if size_ns > 1 else ""
    return f"{whole:,}.{digits}" if digits else f"{whole:,}"
