"""One rank sleeps before a collective, as one does that waits for slow storage: it is late, and alive."""

from __future__ import annotations

import time

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import TIMEOUT, Member
from diag.probes.faults.hang.training import reduce_gradients
from diag.probes.faults.hang.waiting import LOADS, REDUCES


def program(member: Member) -> None:
    member.join()
    for is_wrong in member.steps():
        if is_wrong:
            load_slowly()
        member.enter("reduce gradients")
        reduce_gradients()
    member.leave()


def load_slowly() -> None:
    time.sleep(TIMEOUT.total_seconds())


FAULT = HangFault(
    name="sleeps",
    idea="rank 1 sleeps before an all_reduce in which the others wait",
    cause="late",
    world_size=3,
    faulty=(1,),
    program=program,
    stands_at={0: REDUCES, 1: LOADS, 2: REDUCES},
)
