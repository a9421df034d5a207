"""Colours that also tell apart for colour-blind readers, each with a sign of its own so that none is needed.

The hues are those of Okabe and Ito, "Color Universal Design" (2008). In a terminal of 16 colours they fall on eight
different ones (a test says so), and without any colour the signs remain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from diag.rules.finding import Severity

Activity = Literal["kernel", "copy", "memset", "graph", "communication", "range", "call", "os_call", "step", "idle"]


@dataclass(frozen=True)
class Ink:
    """`color` is '#rrggbb'; `sign` one cell of a terminal that is told from all others without colour."""

    color: str
    sign: str
    label: str


ACTIVITIES: Mapping[Activity, Ink] = {
    "kernel": Ink("#0072b2", "█", "kernels"),
    "copy": Ink("#e69f00", "▓", "copies"),
    "memset": Ink("#f0e442", "▒", "memsets"),
    "graph": Ink("#56b4e9", "▇", "graph launches"),
    "communication": Ink("#cc79a7", "▚", "communication"),
    "range": Ink("#009e73", "▄", "ranges"),
    "call": Ink("#56b4e9", "▖", "CUDA calls"),
    "os_call": Ink("#999999", "▗", "OS calls"),
    "step": Ink("#009e73", "▔", "steps"),
    "idle": Ink("#666666", "·", "idle"),
}

SEVERITIES: Mapping[Severity, Ink] = {
    "critical": Ink("#d55e00", "●", "critical"),
    "warning": Ink("#e69f00", "◐", "warning"),
    "info": Ink("#56b4e9", "○", "info"),
}
