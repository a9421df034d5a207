"""Exercise 3: a comparison that says less than it seems to."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from diag.learn.lesson import Figure, Incident, Lab
from diag.learn.loops import RUNS, Loop

FEW_STEPS = 5
"""Of which three are timed, without the first and the last: ranks of three and three never tell a change at 5 %."""


def exercise(lab: Lab, draw: random.Random) -> Incident:
    from diag.learn.loops import record_in_turn

    fault = draw.choice(sorted(FAULTS))
    sick = FAULTS[fault]
    record_in_turn(lab, {"main": sick.main, "branch": sick.branch}, sick.runs or RUNS[lab.scale])
    command = ("compare", str(lab.folder / "main"), str(lab.folder / "branch"))
    return Incident(fault, [command], None, (sick.injected,))


@dataclass(frozen=True)
class Sick:
    """Two loops that are called the same program before and after a change."""

    main: Loop
    branch: Loop
    injected: Figure
    runs: int | None = None
    """Of each side; None: as many as the scale of the lab wants."""


FAULTS: Mapping[str, Sick] = {
    "other_shapes": Sick(
        Loop(), Loop(smaller=2), Figure("injected", 0.5, "x", "rows and columns of the branch / of main")
    ),
    "other_types": Sick(
        Loop(), Loop(dtype="bf16"), Figure("injected", 2, "bytes", "of a number on the branch; 4 on main")
    ),
    "other_capture": Sick(
        Loop(), Loop(stacks=True), Figure("injected", 1, "x", "recorded with calls of Python: the branch alone")
    ),
    "too_few": Sick(
        Loop(n_steps=FEW_STEPS),
        Loop(n_steps=FEW_STEPS, products=8),
        Figure("injected", 2, "x", "products in a step of the branch / of main"),
        runs=1,
    ),
}
