"""How activities are drawn: a colour and a height for each cell, or, in a terminal of few colours, a sign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rich.style import Style

from diag.render.palette import ACTIVITIES as INKS
from diag.timeline.track import ACTIVITIES

HEIGHTS = "╵▁▂▃▄▅▆▇█"
"""The first is something without a duration."""

SEAM = "▉"
"""The last cell of a slice: a hairline tells it from the next one."""

_DARK = ("#0072b2", "#009e73", "#666666")

Drawn = Literal["kernel", "copy", "memset", "graph", "communication", "range", "call", "os_call", "step", "idle"]


@dataclass(frozen=True)
class Pen:
    """The styles of one activity."""

    fill: Style
    name: Style  # of a name that is written inside
    sign: str

    dim: Style  # of a sign for what takes less than half of a column, as signs have one height

    def cell(self, height: int, *, signs: bool) -> tuple[str, Style]:
        """Of a column that is busy for so many eighths; 0 is something without a duration."""
        if not signs or height == 0:
            return HEIGHTS[height], self.fill
        return self.sign, self.fill if height >= 4 else self.dim


def pens(*, signs: bool) -> Mapping[int, Pen]:
    """By the code of the activity, STEP and IDLE. With `signs` names stand in reverse and no colour is needed."""
    by_code = {code: INKS[name] for code, name in enumerate(ACTIVITIES)}  # type: ignore[index]
    by_code |= {STEP: INKS["step"], IDLE: INKS["idle"]}
    return {
        code: Pen(
            Style(color=ink.color),
            Style(color=ink.color, reverse=True) if signs else Style(color=_on(ink.color), bgcolor=ink.color),
            ink.sign,
            Style(color=ink.color, dim=True),
        )
        for code, ink in by_code.items()
    }


def _on(color: str) -> str:
    return "#ffffff" if color in _DARK else "#000000"


STEP, IDLE = 100, 101
"""Codes beyond those of slices."""
