"""How activities are drawn: a colour and a height for each cell, or, in a terminal of few colours, a sign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rich.style import Style

from diag.render.palette import ACTIVITIES as INKS
from diag.timeline.track import ACTIVITIES

HEIGHTS = " ▁▂▃▄▅▆▇█"
MOMENT = "╵"
"""Something without a duration."""

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

    def letter(self, share: float, *, signs: bool) -> str:
        """The cell of a column that is busy for this share of it, more than nothing."""
        return self.sign if signs else HEIGHTS[max(1, min(8, round(share * 8)))]

    def style(self, share: float, *, signs: bool) -> Style:
        """Signs have one height: what takes less than half of a column is dim."""
        return self.fill + _DIM if signs and share < 0.5 else self.fill


_DIM = Style(dim=True)


def pens(*, signs: bool) -> Mapping[int, Pen]:
    """By the code of the activity, STEP and IDLE. With `signs` names stand in reverse and no colour is needed."""
    by_code = {code: INKS[name] for code, name in enumerate(ACTIVITIES)}  # type: ignore[index]
    by_code |= {STEP: INKS["step"], IDLE: INKS["idle"]}
    return {
        code: Pen(
            Style(color=ink.color),
            Style(color=ink.color, reverse=True) if signs else Style(color=_on(ink.color), bgcolor=ink.color),
            ink.sign,
        )
        for code, ink in by_code.items()
    }


def _on(color: str) -> str:
    return "#ffffff" if color in _DARK else "#000000"


STEP, IDLE = 100, 101
"""Codes beyond those of slices."""
