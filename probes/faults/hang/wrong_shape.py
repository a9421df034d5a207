"""One rank reduces a tensor of twice the size.

Gloo sends segments of at most 1 MiB in a ring. Where each tensor makes a whole number of full ones for each rank, the
first ones fit, the smaller tensors are done, and the rank with the larger one waits for more.
"""

from __future__ import annotations

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import STEPS, WRONG_STEP, Member
from diag.probes.faults.hang.training import reduce_gradients

SEGMENT = 1 << 18  # elements: 1 MiB
SEGMENTS_PER_RANK = 2


def program(member: Member) -> None:
    member.join()
    elements = SEGMENTS_PER_RANK * member.world_size * SEGMENT
    for is_wrong in member.steps():
        member.enter("reduce gradients")
        reduce_gradients(2 * elements if is_wrong else elements)
    member.leave()


IS_STUCK = frozenset({(WRONG_STEP, "reduce gradients")})
IS_ONE_STEP_ON = frozenset({(STEPS - 1, "reduce gradients")})
FAULT = HangFault(
    name="wrong-shape",
    idea="rank 1 reduces a tensor of twice the size; Gloo finishes it on the others, which wait in the next step",
    cause="different shape",
    world_size=3,
    faulty=(1,),
    program=program,
    stands_at={0: IS_ONE_STEP_ON, 1: IS_STUCK, 2: IS_ONE_STEP_ON},
)
