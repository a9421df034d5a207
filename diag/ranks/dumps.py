"""The flight recorders of a job: for each rank the one dump that speaks for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.ranks.hang import Call, GroupLabel
from diag.ranks.signatures import CallSignature, CallSignatures
from diag.ranks.standing import Standing, standing_of

Column = NDArray[np.int64]
"""-1: the recorder does not say."""


@dataclass(frozen=True)
class Membership:
    """A row of `process_group`: a communicator as one rank knows it."""

    id: int
    label: GroupLabel
    last_enqueued: int | None
    last_completed: int | None


@dataclass(frozen=True)
class Entries:
    """The calls of one dump in the order in which the rank made them, as parallel arrays."""

    id: Column
    group: Column  # index into the dump's groups
    signature: Column  # call_signature.id
    record_id: Column
    sequence: Column
    p2p_sequence: Column
    is_p2p: NDArray[np.bool_]
    is_done: NDArray[np.bool_]  # by what its own entry says
    created_ns: Column
    completed_ns: Column
    timeout_ns: Column
    stack_id: Column

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, eq=False)
class RankDump:
    """What the recorder of one rank held."""

    rank: int
    source: int
    world_size: int | None
    groups: Sequence[Membership]
    entries: Entries
    signatures: CallSignatures  # of the whole job

    @cached_property
    def newest(self) -> tuple[int, int]:
        """(created_ns, record id) of its last call; -1 where there is none."""
        return (int(self.entries.created_ns[-1]), int(self.entries.record_id[-1])) if len(self.entries) else (-1, -1)

    @cached_property
    def tells_groups(self) -> bool:
        """Whether it lists all groups of the rank, so that one that it lacks was not made there."""
        return any(group.last_enqueued is not None for group in self.groups)

    @cached_property
    def is_whole(self) -> bool:
        """Whether it holds every call that the rank ever made."""
        return len(self.entries) > 0 and self.newest[1] + 1 == len(self.entries)

    @cached_property
    def standing(self) -> Standing:
        return standing_of(self)

    def signature(self, row: int) -> CallSignature:
        return self.signatures.by_id[int(self.entries.signature[row])]

    def peer(self, row: int) -> int | None:
        """Rank in the job of the other end of a send or receive. Its name says the rank in the group."""
        found, ranks = self.signature(row).peer, self.groups[int(self.entries.group[row])].label.ranks
        if found is None or (ranks is not None and found[0] >= len(ranks)):
            return None
        return ranks[found[0]] if ranks is not None else found[0]

    def call(self, row: int) -> Call:
        entries, signature = self.entries, self.signature(row)
        is_p2p = bool(entries.is_p2p[row])
        return Call(
            entry=int(entries.id[row]),
            source=self.source,
            rank=self.rank,
            group=self.groups[int(entries.group[row])].label,
            op=signature.op,
            sequence=int((entries.p2p_sequence if is_p2p else entries.sequence)[row]),
            is_p2p=is_p2p,
            peer=self.peer(row) if is_p2p else None,
            input_sizes=signature.input_sizes,
            output_sizes=signature.output_sizes,
            dtypes=", ".join(sorted(signature.dtypes)),
            created_ns=_known(entries.created_ns[row]),
            timeout_ns=_known(entries.timeout_ns[row]),
            stack_id=_known(entries.stack_id[row]),
        )


@dataclass(frozen=True, eq=False)
class Dumps:
    """The recorders of a job, one dump for each rank that has any."""

    by_rank: Mapping[int, RankDump]
    world_size: int | None
    progressed: frozenset[int] = frozenset()
    """Ranks whose newer dump shows more calls than an older one."""
    restarted: frozenset[int] = frozenset()
    """Ranks whose dumps contradict each other: the later one has counted fewer calls."""
    unranked: tuple[int, ...] = ()
    """Sources of dumps that do not say which rank they are of."""
    world_sizes: Mapping[int, int] = field(default_factory=dict)
    """What each rank takes the size of the job for, where it says so."""

    def only(self, ranks: Sequence[int]) -> Dumps:
        """As if only the dumps of some ranks were there."""
        kept = frozenset(ranks)
        return Dumps(
            {rank: dump for rank, dump in self.by_rank.items() if rank in kept},
            self.world_size,
            self.progressed & kept,
            self.restarted & kept,
            (),
            {rank: size for rank, size in self.world_sizes.items() if rank in kept},
        )


def _known(value: np.int64) -> int | None:
    return int(value) if value >= 0 else None


def together(dumps: Sequence[RankDump], unranked: tuple[int, ...] = ()) -> Dumps:
    """The newest dump of each rank; the others tell whether it went on, or began anew."""
    of_rank: defaultdict[int, list[RankDump]] = defaultdict(list)
    for dump in sorted(dumps, key=lambda dump: (dump.newest[0], dump.source)):
        of_rank[dump.rank].append(dump)
    newest = {rank: of_rank[rank][-1] for rank in sorted(of_rank)}
    records = {rank: [dump.newest[1] for dump in each if len(dump.entries)] for rank, each in of_rank.items()}
    sizes = {rank: size for rank, dump in newest.items() if (size := dump.world_size) is not None}
    return Dumps(
        by_rank=newest,
        world_size=max(sizes.values(), default=None),
        progressed=frozenset(rank for rank, seen in records.items() if seen and seen[-1] > seen[0]),
        restarted=frozenset(rank for rank, seen in records.items() if seen and max(seen) > seen[-1]),
        unranked=unranked,
        world_sizes=sizes,
    )
