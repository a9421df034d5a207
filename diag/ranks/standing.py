"""How far one rank has come in each of its groups, by its own recorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from diag.ranks.hang import GroupLabel

if TYPE_CHECKING:
    from diag.ranks.dumps import Membership, RankDump

Side = tuple[int, bool]
"""(the other rank, whether this one sends)."""

Identity = tuple[str, tuple[int, ...] | str]
"""Description and ranks of a group, or description and name where its ranks are not known."""


@dataclass(frozen=True, eq=False)
class GroupStanding:
    """Of one rank in one of its groups. Rows are those of the dump's entries.

    The recorder counts collectives, and sends and receives, apart; its status says the number of whatever came last.
    In a group that does both, that number tells nothing.
    """

    label: GroupLabel
    outstanding: int  # calls that are not completed
    has_p2p: bool  # the group is also used for sends and receives
    enqueued: int | None  # number of the last collective; None: not known
    is_exact: bool  # whether it can be no higher
    completed: int | None  # number of the last collective that is known to be completed
    oldest: int | None  # row of the oldest collective that is not completed
    together: int | None  # the same of those that no rank completes before all have entered them
    p2p: Mapping[Side, Sequence[int]]  # rows of sends and receives that are not completed, oldest first
    p2p_calls: Mapping[Side, int] | None  # how many there were ever; None: the recorder has forgotten some
    sequences: NDArray[np.int64]  # of the collectives whose entries are there, ascending
    rows: NDArray[np.int64]

    @cached_property
    def identity(self) -> Identity:
        return (self.label.description, self.label.ranks or self.label.name)

    def row_of(self, sequence: int) -> int | None:
        """The entry of a collective; None: it is not in the recorder any more, or not yet."""
        at = int(np.searchsorted(self.sequences, sequence))
        found = at < len(self.sequences) and self.sequences[at] == sequence
        return int(self.rows[at]) if found else None


@dataclass(frozen=True, eq=False)
class Standing:
    """Of one rank in all its groups."""

    groups: Sequence[GroupStanding]
    outstanding: int
    head: int | None  # row of its oldest call that is not completed: nothing that is recorded holds it up on its device

    @cached_property
    def twins(self) -> frozenset[Identity]:
        """Groups that were made anew: only their names tell them apart."""
        identities = [group.identity for group in self.groups]
        return frozenset(each for each in identities if identities.count(each) > 1)


def standing_of(dump: RankDump) -> Standing:
    entries = dump.entries
    is_open = ~entries.is_done
    order = np.argsort(entries.group, kind="stable")
    edges = np.searchsorted(entries.group[order], np.arange(len(dump.groups) + 1))
    groups = [_in_group(dump, group, order[edges[at] : edges[at + 1]]) for at, group in enumerate(dump.groups)]
    for at, group in enumerate(groups):
        if group.completed is not None:
            mine = order[edges[at] : edges[at + 1]]
            is_open[mine[~entries.is_p2p[mine] & (entries.sequence[mine] <= group.completed)]] = False
    rows = np.flatnonzero(is_open)
    return Standing(groups, len(rows), int(rows[0]) if len(rows) else None)


def _in_group(dump: RankDump, group: Membership, rows: NDArray[np.int64]) -> GroupStanding:
    entries = dump.entries
    is_p2p, done, sequence = entries.is_p2p[rows], entries.is_done[rows], entries.sequence[rows]
    has_p2p = bool(is_p2p.any() or (entries.p2p_sequence[rows] > 0).any())
    by_status = None if has_p2p or (group.last_completed or -1) < 0 else group.last_completed
    done_here = sequence[done & ~is_p2p]
    completed = max([*([by_status] if by_status is not None else []), *done_here[-1:].tolist()], default=None)
    is_open = ~done & (is_p2p | (sequence > (-1 if completed is None else completed)))
    seen = sequence.max(initial=-1)
    by_status = None if has_p2p else group.last_enqueued
    enqueued = max(int(seen), -1 if by_status is None else by_status)
    collectives, open_collectives = rows[~is_p2p], rows[is_open & ~is_p2p]
    oldest = int(open_collectives[0]) if len(open_collectives) else None
    if completed is None and oldest is not None:  # on one communicator they complete in order
        completed = int(entries.sequence[oldest]) - 1
    in_order = np.argsort(entries.sequence[collectives], kind="stable")
    open_p2p = rows[is_open & is_p2p]
    return GroupStanding(
        label=group.label,
        outstanding=int(is_open.sum()),
        has_p2p=has_p2p,
        enqueued=enqueued if by_status is not None or len(rows) else None,
        is_exact=not has_p2p or oldest is not None or bool(done.any()),
        completed=completed,
        oldest=oldest,
        together=next((int(row) for row in open_collectives if dump.signature(row).completes_only_together), None),
        p2p=_by_side(dump, open_p2p),
        p2p_calls=_all_calls(dump, rows[is_p2p], int(entries.p2p_sequence[rows].max(initial=0))),
        sequences=entries.sequence[collectives][in_order],
        rows=collectives[in_order],
    )


def _by_side(dump: RankDump, rows: NDArray[np.int64]) -> Mapping[Side, Sequence[int]]:
    sides: dict[Side, list[int]] = {}
    for row in rows.tolist():
        peer, found = dump.peer(row), dump.signature(row).peer
        if peer is not None and found is not None:
            sides.setdefault((peer, found[1]), []).append(row)
    return sides


def _all_calls(dump: RankDump, rows: NDArray[np.int64], counted: int) -> Mapping[Side, int] | None:
    """Sends and receives to and from each rank, where all that were ever made are still in the recorder."""
    if len(rows) != counted or (not counted and not dump.is_whole):
        return None
    return {side: len(calls) for side, calls in _by_side(dump, rows).items()}
