"""One rank was told of a rank more than there are, as with a stale WORLD_SIZE."""

from __future__ import annotations

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import Member
from diag.probes.faults.hang.training import reduce_gradients


def program(member: Member) -> None:
    member.join()
    for _ in member.steps():
        member.enter("reduce gradients")
        reduce_gradients()
    member.leave()


INITIALISES = frozenset({(None, "initialise")})
INITIALISES_OR_REDUCES = INITIALISES | {(0, "reduce gradients")}
"""Whether a rank waits for the wrong one is chance, as it is which of the two opens their connection."""
FAULT = HangFault(
    name="wrong-world-size",
    idea="rank 1 was told that there are 4 ranks, the others that there are 3",
    cause="initialisation disagrees",
    world_size=3,
    faulty=(1,),
    program=program,
    stands_at={0: INITIALISES_OR_REDUCES, 1: INITIALISES, 2: INITIALISES_OR_REDUCES},
    told_world_size={1: 4},
)
