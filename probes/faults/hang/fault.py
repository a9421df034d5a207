"""What a hang fault is: what is wrong on which ranks, and where each rank stands once nothing moves any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from diag.errors import DiagError
from diag.probes.faults.hang.member import Member

Cause = Literal[
    "different order",
    "different shape",
    "collective skipped",
    "dead",
    "late",
    "host blocked",
    "send/receive",
    "groups disagree",
    "initialisation disagrees",
]

Place = tuple[int | None, str]
"""Step and phase of a rank, as its heartbeat says them."""


class DidNotHappen(DiagError):
    """A program did not come to stand, or to its end, as it should have."""


@dataclass(frozen=True)
class HangFault:
    """One thing wrong.

    `program` runs on every rank; only the `faulty` ones learn that something is to go wrong. A fault that `fails` hangs
    first, with its cause still to come: then the gate opens (`Member.pass_gate`), and all ranks end.
    """

    name: str
    idea: str
    cause: Cause
    world_size: int
    faulty: tuple[int, ...]
    program: Callable[[Member], None]
    stands_at: Mapping[int, frozenset[Place]]
    """Where each rank is found, once it hangs: one of these."""
    alike: tuple[int, ...] = ()
    """Healthy ranks that nothing left behind can tell from the faulty ones: each of the two groups may be the wrong."""
    holds_gil: frozenset[int] = frozenset()
    """Ranks that run no Python once it hangs: their last dump is an old one."""
    fails: bool = False
    told_world_size: Mapping[int, int] = field(default_factory=dict)
    """What faulty ranks are told instead of `world_size`."""
