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

Rows = NDArray[np.int64]

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
    has_p2p: bool  # the rank also uses the group for sends and receives
    status: int | None  # number of the last call, of whichever kind it was
    seen: int  # number of the last collective by the entries; -1: none
    completed_seen: int | None  # the last one that is completed, by the entries
    completed_status: int | None  # number of the last call that is completed, of whichever kind it was
    is_all_seen: bool  # whether there can be no collective after the last one that is seen
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
    order = np.argsort(entries.group, kind="stable")
    edges = np.searchsorted(entries.group[order], np.arange(len(dump.groups) + 1))
    is_open = ~entries.is_done
    groups = []
    for at, group in enumerate(dump.groups):
        rows = order[edges[at] : edges[at + 1]]
        is_open[rows] &= _is_open(dump, group, rows)
        groups.append(_in_group(dump, group, rows, is_open[rows]))
    outstanding = np.flatnonzero(is_open)
    return Standing(groups, len(outstanding), int(outstanding[0]) if len(outstanding) else None)


def _is_open(dump: RankDump, group: Membership, rows: Rows) -> NDArray[np.bool_]:
    """Not completed by the group's status, as far as that counts collectives."""
    entries = dump.entries
    if group.last_completed is None or _has_p2p(dump, group, rows):
        return np.ones(len(rows), dtype=np.bool_)
    is_open: NDArray[np.bool_] = entries.is_p2p[rows] | (entries.sequence[rows] > group.last_completed)
    return is_open


def _has_p2p(dump: RankDump, group: Membership, rows: Rows) -> bool:
    """Gloo counts sends and receives, too, but records none: what its status has beyond the last entry are such."""
    entries = dump.entries
    counted = -1 if group.last_enqueued is None or not len(rows) else group.last_enqueued
    return bool((entries.p2p_sequence[rows] > 0).any()) or counted > int(entries.sequence[rows].max(initial=-1))


def _in_group(dump: RankDump, group: Membership, rows: Rows, is_open: NDArray[np.bool_]) -> GroupStanding:
    entries = dump.entries
    is_p2p, sequence = entries.is_p2p[rows], entries.sequence[rows]
    collectives, outstanding = rows[~is_p2p], rows[is_open & ~is_p2p]
    done = sequence[~is_open & ~is_p2p]
    oldest = int(outstanding[0]) if len(outstanding) else None
    last_done = None if oldest is None else int(entries.sequence[oldest]) - 1  # on a communicator they end in order
    numbers = np.where(is_p2p, entries.p2p_sequence[rows], sequence)
    is_last_there = len(rows) > 0 and numbers[-1] == group.last_enqueued
    in_order = np.argsort(entries.sequence[collectives], kind="stable")
    return GroupStanding(
        label=group.label,
        outstanding=int(is_open.sum()),
        has_p2p=_has_p2p(dump, group, rows),
        status=group.last_enqueued,
        seen=int(sequence.max(initial=-1)),
        completed_seen=int(done[-1]) if len(done) else last_done,
        completed_status=group.last_completed,
        is_all_seen=dump.is_whole or oldest is not None or bool((~is_open).any()) or bool(is_last_there),
        oldest=oldest,
        together=next((int(row) for row in outstanding if dump.signature(row).completes_only_together), None),
        p2p=_by_side(dump, rows[is_open & is_p2p]),
        p2p_calls=_all_calls(dump, rows[is_p2p], int(entries.p2p_sequence[rows].max(initial=0))),
        sequences=entries.sequence[collectives][in_order],
        rows=collectives[in_order],
    )


def _by_side(dump: RankDump, rows: Rows) -> Mapping[Side, Sequence[int]]:
    sides: dict[Side, list[int]] = {}
    for row in rows.tolist():
        peer, found = dump.peer(row), dump.signature(row).peer
        if peer is not None and found is not None:
            sides.setdefault((peer, found[1]), []).append(row)
    return sides


def _all_calls(dump: RankDump, rows: Rows, counted: int) -> Mapping[Side, int] | None:
    """Sends and receives to and from each rank, where all that were ever made are still in the recorder."""
    if len(rows) != counted or (not counted and not dump.is_whole):
        return None
    return {side: len(calls) for side, calls in _by_side(dump, rows).items()}
