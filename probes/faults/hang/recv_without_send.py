"""One rank receives once more than its neighbour sends."""

from __future__ import annotations

import torch
import torch.distributed as dist

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import WRONG_STEP, Member
from diag.probes.faults.hang.training import reduce_gradients
from diag.probes.faults.hang.waiting import REDUCES

SENDER, RECEIVER = 0, 1
ACTIVATIONS = 16  # elements


def program(member: Member) -> None:
    member.join()
    for is_wrong in member.steps():
        if member.rank == SENDER:
            member.enter("send activations")
            dist.send(torch.ones(ACTIVATIONS), RECEIVER)
        if member.rank == RECEIVER:
            receive_activations(member)
        if is_wrong:
            receive_activations(member)
        member.enter("reduce gradients")
        reduce_gradients()
    member.leave()


def receive_activations(member: Member) -> None:
    member.enter("receive activations")
    dist.recv(torch.empty(ACTIVATIONS), SENDER)


FAULT = HangFault(
    name="recv-without-send",
    idea="rank 1 waits in recv for what rank 0 does not send; the others wait in an all_reduce",
    cause="send/receive",
    world_size=3,
    faulty=(RECEIVER,),
    program=program,
    stands_at={0: REDUCES, 1: frozenset({(WRONG_STEP, "receive activations")}), 2: REDUCES},
)
