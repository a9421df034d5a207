"""An answer on paper: figures, each with the formula that it comes from, and what was assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    label: str
    value: float
    unit: str  # of `diag.model.units.EVIDENCE`
    formula: str
    error: float | None = None  # half-width of an interval, in the same unit; None: not known


@dataclass(frozen=True)
class Column:
    """`values` are numbers of `unit`, or texts where that is 'text'."""

    header: str
    unit: str
    values: Sequence[float | str]


def whole_number(value: float, digits: int = 3) -> float:
    """As an int where it is one, for `Column` shows all digits of a count.

    >>> whole_number(8.0), whole_number(1.00013)
    (8, 1.0)
    """
    return int(value) if value == int(value) else round(value, digits)


@dataclass(frozen=True)
class Answer:
    """To one question of a plan."""

    title: str
    figures: Sequence[Figure]
    assumptions: Sequence[str] = ()
    table: Sequence[Column] = ()  # of equal length; the last one holds names
    verdict: str | None = None  # what the figures decide, where the question has a yes or a no
    cannot_tell: Sequence[str] = ()  # what is not known, with the reason: the end of a sentence
