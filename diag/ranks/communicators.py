"""The communicators of a job, put together from what each of their members recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from diag.ranks.dumps import Dumps, RankDump
from diag.ranks.hang import GroupLabel
from diag.ranks.signatures import EAGER_BYTES, Signature
from diag.ranks.standing import GroupStanding, Identity, Standing

DEFAULT_GROUP = "default_pg"

Key = tuple[Identity, str]
"""Identity of a group, and its name where a rank has made several of that identity."""


@dataclass(eq=False)
class Communicator:
    label: GroupLabel
    members: Sequence[int]  # ranks in the job
    of: dict[int, GroupStanding] = field(default_factory=dict)  # members whose dumps know it
    has_p2p: bool = False

    def completed(self, rank: int) -> int | None:
        """Number of the last collective that a rank completed; None where its status may count something else."""
        standing = self.of[rank]
        return None if self.has_p2p and not standing.has_p2p else standing.completed


@dataclass(frozen=True, eq=False)
class Communicators:
    """What all dumps say of all groups."""

    dumps: Mapping[int, RankDump]
    standings: Mapping[int, Standing]
    all: Mapping[Key, Communicator]

    def signature(self, rank: int, row: int) -> Signature:
        return self.dumps[rank].signature(row)

    def record(self, rank: int, row: int) -> int:
        return int(self.dumps[rank].entries.record_id[row])

    def has_called(self, rank: int, group: Communicator, sequence: int) -> bool | None:
        """Whether a rank called a collective of a group; None: its dump is absent, or does not tell."""
        dump = self.dumps.get(rank)
        if dump is None:
            return None
        standing = group.of.get(rank)
        if standing is None:
            return False if dump.tells_groups or dump.is_whole else None
        if standing.enqueued is None or (group.has_p2p and not standing.has_p2p):
            return None
        if standing.enqueued >= sequence:
            return True
        return False if standing.is_exact else None

    def has_matched(self, rank: int, row: int, peer: int, group: Communicator, *, is_send: bool) -> bool | None:
        """Whether the peer called the other half of a rank's oldest outstanding send to it, or receive from it.

        Calls between two ranks match in the order in which they were made. Where a recorder has forgotten some, those
        that are outstanding on both sides match: neither half of a large message completes without the other.
        """
        dump = self.dumps.get(peer)
        if dump is None:
            return None
        there, here = group.of.get(peer), group.of[rank]
        if there is None:
            return False if dump.tells_groups or dump.is_whole else None
        calls, answers = here.p2p_calls, there.p2p_calls
        if calls is not None and answers is not None:
            outstanding = len(here.p2p[(peer, is_send)])
            return answers.get((rank, not is_send), 0) > calls.get((peer, is_send), 0) - outstanding
        if there.p2p.get((rank, not is_send)):
            return True
        return False if self.signature(rank, row).n_bytes > EAGER_BYTES else None


def communicators_of(dumps: Dumps) -> Communicators:
    standings = {rank: dump.standing for rank, dump in dumps.by_rank.items()}
    twins = frozenset().union(*(standing.twins for standing in standings.values()))
    found: dict[Key, Communicator] = {}
    for rank, standing in standings.items():
        for group in standing.groups:
            key = (group.identity, group.label.name if group.identity in twins else "")
            one = found.get(key)
            if one is None:
                one = found[key] = Communicator(group.label, group.label.ranks or ())
            one.of[rank] = group
            one.has_p2p |= group.has_p2p
    for one in found.values():
        if not one.members:
            one.members = sorted(_members(one, dumps))
    return Communicators(dumps.by_rank, standings, found)


def _members(group: Communicator, dumps: Dumps) -> Iterable[int]:
    """Those seen in it, where no dump lists them; the default group holds all ranks."""
    if group.label.description == DEFAULT_GROUP:
        return {*group.of, *dumps.by_rank, *range(dumps.world_size or 0)}
    return group.of


def outstanding_p2p(group: Communicator) -> Iterator[tuple[int, int, bool, int]]:
    """(rank, peer, whether it sends, row) of the oldest outstanding call between any two ranks in either direction."""
    for rank, standing in group.of.items():
        for (peer, is_send), rows in standing.p2p.items():
            yield rank, peer, is_send, rows[0]
