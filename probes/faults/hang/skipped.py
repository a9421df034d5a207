"""One rank leaves a collective out, as after a batch without samples, and is one call short from then on.

Its next call fits the others' skipped one. What hangs is the end: the others' last call, and this rank, which waits for
the checkpoint that rank 0 has yet to write.
"""

from __future__ import annotations

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import STEPS, TIMEOUT, Member
from diag.probes.faults.hang.training import reduce_gradients

CHECKPOINT = "checkpoint"


def program(member: Member) -> None:
    member.join()
    for is_wrong in member.steps():
        if not is_wrong:
            member.enter("reduce gradients")
            reduce_gradients()
    if member.rank == 0:
        member.store.set(CHECKPOINT, "")
    wait_for_checkpoint(member)
    member.leave()


def wait_for_checkpoint(member: Member) -> None:
    member.enter("wait for checkpoint")
    member.store.wait([CHECKPOINT], TIMEOUT)


REDUCES = frozenset({(STEPS - 1, "reduce gradients")})
FAULT = HangFault(
    name="skipped",
    idea="rank 1 skips an all_reduce, is one call short at the end, and waits for a checkpoint instead",
    cause="collective skipped",
    world_size=3,
    faulty=(1,),
    program=program,
    stands_at={0: REDUCES, 1: frozenset({(STEPS - 1, "wait for checkpoint")}), 2: REDUCES},
)
