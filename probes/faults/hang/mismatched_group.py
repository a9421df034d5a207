"""One rank makes a group of four where the others make groups of two, as with another --tensor-parallel-size."""

from __future__ import annotations

import torch.distributed as dist

from diag.probes.faults.hang.fault import HangFault
from diag.probes.faults.hang.member import TIMEOUT, Member
from diag.probes.faults.hang.training import reduce_gradients

WORLD_SIZE = 4


def program(member: Member) -> None:
    member.join()
    group = make_groups(member)
    for _ in member.steps():
        member.enter("reduce activations")
        reduce_gradients(group=group)
        member.enter("reduce gradients")
        reduce_gradients()
    member.leave()


def make_groups(member: Member) -> object:
    """The group of this rank; every rank has to make all groups of the job, in the same order."""
    member.enter("make groups")
    size = WORLD_SIZE if member.is_faulty else 2
    groups = [
        dist.new_group(list(range(first, first + size)), timeout=TIMEOUT, group_desc="tensor parallel")
        for first in range(0, WORLD_SIZE, size)
    ]
    return groups[member.rank // size]


REDUCES = frozenset({(0, "reduce gradients")})
MAKES_GROUPS = frozenset({(None, "make groups")})
FAULT = HangFault(
    name="mismatched-group",
    idea="rank 3 makes one group of four, the others two of two: it and rank 2, its partner, stand in new_group",
    cause="groups disagree",
    world_size=WORLD_SIZE,
    faulty=(3,),
    program=program,
    stands_at={0: REDUCES, 1: REDUCES, 2: MAKES_GROUPS, 3: MAKES_GROUPS},
    alike=(2,),
)
