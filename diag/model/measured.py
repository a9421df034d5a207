"""Ceilings that were measured: which of them holds for what, and on which device."""

from __future__ import annotations

from collections.abc import Sequence

from diag.model.benchmark import MeasuredCeiling
from diag.model.ceilings import Arithmetic, Level


def best_rate(
    ceilings: Sequence[MeasuredCeiling],
    *,
    arithmetic: Arithmetic | None = None,
    level: Level | None = None,
    access: str | None = None,
) -> MeasuredCeiling | None:
    """The highest rate of an arithmetic, or at a level of memory by any access or the one that is named.

    None where nothing of the kind was measured. Raises ValueError unless either arithmetic or level is given.
    """
    if (arithmetic is None) == (level is None):
        raise ValueError("ask for the best rate of an arithmetic or at a level, not of both")
    possible = [
        each
        for each in ceilings
        if each.ceiling.arithmetic == arithmetic
        and each.ceiling.level == level
        and access in (None, each.ceiling.access)
    ]
    return max(possible, key=lambda each: each.ceiling.per_s, default=None)
