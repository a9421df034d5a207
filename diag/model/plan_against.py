"""A plan held against a run, line by line: what was planned, what was measured, and what nobody can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.plan import Answer, Column

CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Line:
    """`measured` None: not captured, `because` says why. A text in place of a planned value says what the plan says."""

    what: str
    unit: str
    planned: float | str
    measured: float | None
    because: str = ""


def against(title: str, lines: Sequence[Line], assumptions: Sequence[str] = ()) -> list[Answer]:
    """A table for each unit, for a column has one."""
    units = list(dict.fromkeys(line.unit for line in lines))
    tables = [(unit, [line for line in lines if line.unit == unit]) for unit in units]
    return [
        Answer(
            f"{title}: {_OF_UNIT.get(unit, unit)}",
            [],
            assumptions if number == 0 else (),
            (
                Column("measured", unit, [CANNOT_TELL if line.measured is None else line.measured for line in of]),
                Column("planned", unit, [line.planned for line in of]),
                Column("/ planned", "x", [_ratio(line) for line in of]),
                Column("what", "text", [line.what for line in of]),
            ),
            _verdict(of),
            _untold(of),
        )
        for number, (unit, of) in enumerate(tables)
    ]


_OF_UNIT = {"bytes": "memory", "ns": "times", "count": "numbers", "share": "shares", "requests/s": "rates"}


def _ratio(line: Line) -> float | str:
    if line.measured is None or isinstance(line.planned, str) or not line.planned:
        return "-"
    return line.measured / line.planned


def _verdict(lines: Sequence[Line]) -> str:
    told = [(ratio, line) for line in lines if not isinstance(ratio := _ratio(line), str)]
    if not told:
        return "Nothing of it was measured, or planned as a number."
    ratio, line = max(told, key=lambda each: abs(each[0] - 1))
    far = f"{ratio:,.1f} times" if ratio >= 2 else f"{abs(ratio - 1):.0%} {'over' if ratio > 1 else 'under'}"
    return f"Farthest from the plan: {line.what}, {far} it."


def _untold(lines: Sequence[Line]) -> list[str]:
    """One sentence for each reason, with all that it is about."""
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line.measured is None:
            reasons.setdefault(line.because, []).append(line.what)
    return [f"{'; '.join(whats)}: {because}." for because, whats in reasons.items()]
