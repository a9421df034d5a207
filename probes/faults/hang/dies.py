"""One rank is killed while the others wait for it."""

from __future__ import annotations

import os
import signal

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import Member
from diag.probes.faults.hang.training import reduce_gradients
from diag.probes.faults.hang.waiting import LOADS, REDUCES


def program(member: Member) -> None:
    member.join()
    for is_wrong in member.steps():
        if is_wrong:
            member.pass_gate()
            os.kill(os.getpid(), signal.SIGKILL)
        member.enter("reduce gradients")
        reduce_gradients()
    member.leave()


FAULT = HangFault(
    name="dies",
    idea="rank 1 is killed before an all_reduce in which the others wait; their links break",
    cause="dead",
    world_size=3,
    faulty=(1,),
    program=program,
    stands_at={0: REDUCES, 1: LOADS, 2: REDUCES},
    fails=True,
)
