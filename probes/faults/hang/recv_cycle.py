"""Two neighbours exchange activations, and both receive first."""

from __future__ import annotations

import torch
import torch.distributed as dist

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import WRONG_STEP, Member
from diag.probes.faults.hang.training import reduce_gradients
from diag.probes.faults.hang.waiting import REDUCES

LEFT, RIGHT = 0, 1
ACTIVATIONS = 16  # elements


def program(member: Member) -> None:
    member.join()
    for is_wrong in member.steps():
        if member.rank in (LEFT, RIGHT):
            exchange_activations(member, sends_first=member.rank == LEFT and not is_wrong)
        member.enter("reduce gradients")
        reduce_gradients()
    member.leave()


def exchange_activations(member: Member, *, sends_first: bool) -> None:
    member.enter("exchange activations")
    neighbour = LEFT + RIGHT - member.rank
    if sends_first:
        dist.send(torch.ones(ACTIVATIONS), neighbour)
    dist.recv(torch.empty(ACTIVATIONS), neighbour)
    if not sends_first:
        dist.send(torch.ones(ACTIVATIONS), neighbour)


EXCHANGES = frozenset({(WRONG_STEP, "exchange activations")})
FAULT = HangFault(
    name="recv-cycle",
    idea="ranks 0 and 1 both receive from each other before they send; rank 2 waits in an all_reduce",
    cause="send/receive",
    world_size=3,
    faulty=(LEFT, RIGHT),
    program=program,
    stands_at={0: EXCHANGES, 1: EXCHANGES, 2: REDUCES},
)
