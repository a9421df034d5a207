"""One rank starts two overlapping collectives in the other order."""

from __future__ import annotations

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import WRONG_STEP, Member
from diag.probes.faults.hang.training import start_gathering_metrics, start_reducing_gradients


def program(member: Member) -> None:
    member.join()
    for is_wrong in member.steps():
        starts = [start_reducing_gradients, start_gathering_metrics]
        if is_wrong:
            starts.reverse()
        member.enter("reduce gradients")
        for work in [start() for start in starts]:
            work.wait()
    member.leave()


REDUCES = frozenset({(WRONG_STEP, "reduce gradients")})
FAULT = HangFault(
    name="swapped-order",
    idea="rank 1 starts all_gather before all_reduce, the others after it",
    cause="different order",
    world_size=3,
    faulty=(1,),
    program=program,
    stands_at={0: REDUCES, 1: REDUCES, 2: REDUCES},
)
