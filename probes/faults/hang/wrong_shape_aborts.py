"""One rank reduces a small tensor of twice the size: the rank that receives it aborts, and takes the others with it.

All ranks wait at the gate before that step, so that the dumps are of a moment at which nothing was outstanding.
"""

from __future__ import annotations

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import WRONG_STEP, Member
from diag.probes.faults.hang.training import GRADIENTS, reduce_gradients


def program(member: Member) -> None:
    member.join()
    for step, is_wrong in enumerate(member.steps()):
        if step == WRONG_STEP:
            member.pass_gate()
        member.enter("reduce gradients")
        reduce_gradients(2 * GRADIENTS if is_wrong else GRADIENTS)
    member.leave()


AT_GATE = frozenset({(WRONG_STEP, "load batch")})
FAULT = HangFault(
    name="wrong-shape-aborts",
    idea="rank 1 reduces a small tensor of twice the size; the rank that receives it aborts",
    cause="different shape",
    world_size=3,
    faulty=(1,),
    program=program,
    stands_at={0: AT_GATE, 1: AT_GATE, 2: AT_GATE},
    fails=True,
)
