"""Exercise 9: a job that stands still, or fell apart when it did."""

from __future__ import annotations

import random
from collections.abc import Mapping

from diag.learn.lesson import Incident, Lab

RULES: Mapping[str, str] = {
    "swapped_order": "hang.mismatch",
    "wrong_shape": "hang.mismatch",
    "dies": "hang.blocked",
    "sleeps": "hang.blocked",
    "holds_gil": "hang.blocked",
    "recv_cycle": "hang.cycle",
    "mismatched_group": "hang.groups",
    "wrong_world_size": "hang.init",
}
"""By fault: whose finding proves it."""


def exercise(lab: Lab, draw: random.Random) -> Incident:
    from diag.learn.stuck import hang

    fault = draw.choice(sorted(RULES))
    lab.progress("starting ranks")
    (folder,) = hang([name_of(fault)], lab.folder).values()
    folder = folder.rename(lab.folder / "job")
    return Incident(fault, [("hang", str(folder))], RULES[fault])


def name_of(fault: str) -> str:
    """As `diag.probes.faults.hang` has it."""
    return fault.replace("_", "-")
