"""The communicators of a job, put together from what each of their members recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from diag.ranks.dumps import Dumps, RankDump
from diag.ranks.hang import GroupLabel
from diag.ranks.signatures import CallSignature
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

    def called(self, rank: int) -> tuple[int, bool] | None:
        """Number of the last collective that a member called, and whether it can be no later one. None: not known."""
        one = self.of[rank]
        if self.has_p2p or one.status is None:
            return (one.seen, one.is_all_seen) if one.seen >= 0 or one.is_all_seen else None
        return max(one.seen, one.status), True

    def completed(self, rank: int) -> int | None:
        """Number of the last collective that a member completed. None: not known."""
        one = self.of[rank]
        if self.has_p2p or one.completed_status is None:
            return one.completed_seen
        return max(one.completed_status, -1 if one.completed_seen is None else one.completed_seen)


@dataclass(frozen=True, eq=False)
class Communicators:
    """What all dumps say of all groups."""

    dumps: Mapping[int, RankDump]
    standings: Mapping[int, Standing]
    all: Mapping[Key, Communicator]

    def signature(self, rank: int, row: int) -> CallSignature:
        return self.dumps[rank].signature(row)

    def record(self, rank: int, row: int) -> int:
        return int(self.dumps[rank].entries.record_id[row])

    def has_called(self, rank: int, group: Communicator, sequence: int) -> bool | None:
        """Whether a rank called a collective of a group; None: its dump is absent, or does not tell."""
        dump = self.dumps.get(rank)
        if dump is None:
            return None
        if rank not in group.of:
            return False if dump.tells_groups or dump.is_whole else None
        called = group.called(rank)
        if called is None:
            return None
        last, is_last = called
        return True if last >= sequence else False if is_last else None

    def has_matched(self, rank: int, peer: int, group: Communicator, *, is_send: bool) -> bool | None:
        """Whether the peer called the other half of a rank's oldest outstanding send to it, or receive from it.

        Calls between two ranks match in the order in which they were made, so they are counted. Where a recorder has
        forgotten some, those that are outstanding on both sides match; one that has none outstanding on the other side
        may also have been answered, and its end not been seen.
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
        return False if self._has_called_fewer(group, rank, peer) else None

    def _has_called_fewer(self, group: Communicator, rank: int, peer: int) -> bool:
        """Of a group of two, whether the peer made fewer sends and receives than the oldest outstanding one's number.

        Its status counts them if it counts more than there were collectives.
        """
        here, there = group.of[rank], group.of[peer]
        if len(group.members) != 2 or there.outstanding or there.status is None:
            return False
        oldest = min(rows[0] for rows in here.p2p.values())
        number = int(self.dumps[rank].entries.p2p_sequence[oldest])
        return here.seen < there.status < number


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
        one.has_p2p |= _counts_something_else(one)
    return Communicators(dumps.by_rank, standings, found)


def _counts_something_else(group: Communicator) -> bool:
    """Whether a status counts sends and receives though no entry shows any: none completes what others never called."""
    called = [one.seen for one in group.of.values() if one.seen >= 0 and one.is_all_seen]
    completed = [one.completed_status or -1 for one in group.of.values() if one.seen < 0]
    return bool(called and completed) and max(completed) > min(called)


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
