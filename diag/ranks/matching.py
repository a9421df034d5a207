"""Which calls of several ranks are one collective.

By the sequence number in the group where the traces give it, else by order: the n-th call of an operation in a group on
one rank is the n-th on the others, as long as all of them have as many. Where they have not, captures began or ended at
different calls, and nothing says which belong together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from diag.ranks.summary import NONE, OPS, SYNCHRONISING, Group, RankCalls
from diag.timeline.intervals import Times

FEWEST_MEMBERS = 2
MATCHED_OPS = frozenset(range(len(OPS))) - {OPS.index("send_recv")}
"""A send belongs to one receive: what one rank has sent has no place in another's order."""

Order = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Matched:
    """Instances of the collectives of one group that several ranks recorded, in the order of their times.

    Matrices are members × instances; times are on each member's own clock.
    """

    group: Group
    members: Order  # indices into the sequence of summaries that were matched
    op: NDArray[np.int8]  # of each instance, an index into OPS
    size_bytes: Times  # of each instance, the largest that a member says; or NONE
    call: NDArray[np.int64]  # index into the member's `calls`
    start_ns: Times
    end_ns: Times
    received_bytes: Times

    @property
    def n_instances(self) -> int:
        return len(self.op)

    @property
    def n_ranks(self) -> int:
        """Of the whole group, recorded or not."""
        return max(self.group.size or 0, len(self.members))

    @property
    def synchronises(self) -> NDArray[np.bool_]:
        return np.isin(self.op, SYNCHRONISING)

    @property
    def duration_ns(self) -> Times:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class Unmatched:
    """Calls of a group that could not be set side by side."""

    group: Group
    op: str
    counts: Mapping[int, int]  # calls by place in the sequence of summaries


@dataclass(frozen=True, eq=False)
class Matches:
    groups: Sequence[Matched]
    unmatched: Sequence[Unmatched]

    @property
    def n_instances(self) -> int:
        return sum(group.n_instances for group in self.groups)


def match(summaries: Sequence[RankCalls], fewest_members: int = FEWEST_MEMBERS) -> Matches:
    """The collectives that at least so many of the ranks recorded. Linear in calls, but for sorting."""
    members: defaultdict[Group, list[tuple[int, NDArray[np.intp]]]] = defaultdict(list)
    sizes: defaultdict[Group, int] = defaultdict(int)
    for at, summary in enumerate(summaries):
        order = np.argsort(summary.calls.group, kind="stable")
        bounds = np.searchsorted(summary.calls.group[order], np.arange(len(summary.groups) + 1))
        for index, group in enumerate(summary.groups):
            members[group].append((at, order[bounds[index] : bounds[index + 1]]))
            sizes[group] = max(sizes[group], group.size or 0)
    matched, unmatched = [], []
    for group, of in members.items():
        if len(of) >= fewest_members:
            found, rest = _match_group(summaries, replace(group, size=sizes[group] or None), of)
            matched += [found] if found is not None else []
            unmatched += rest
    return Matches(matched, unmatched)


def _match_group(
    summaries: Sequence[RankCalls], group: Group, of: Sequence[tuple[int, Order]]
) -> tuple[Matched | None, list[Unmatched]]:
    columns, unmatched = [], []
    if all(_are_numbered(summaries[at], calls) for at, calls in of):
        columns.append(_by_sequence(summaries, of))
    else:
        for op in sorted(set().union(*(np.unique(summaries[at].calls.op[calls]).tolist() for at, calls in of))):
            if op not in MATCHED_OPS:
                continue
            same = [calls[summaries[at].calls.op[calls] == op] for at, calls in of]
            counts = [len(calls) for calls in same]
            if min(counts) == max(counts):
                columns.append(np.stack(same))
            else:
                places = (at for at, _ in of)
                unmatched.append(Unmatched(group, OPS[op], dict(zip(places, counts, strict=True))))
    call = np.concatenate(columns, axis=1) if columns else np.empty((len(of), 0), np.int64)
    if not call.shape[1]:
        return None, unmatched
    return _gathered(summaries, group, [at for at, _ in of], call), unmatched


def _are_numbered(summary: RankCalls, calls: Order) -> bool:
    sequence = summary.calls.sequence[calls]
    return bool((sequence != NONE).all()) and len(np.unique(sequence)) == len(sequence)


def _by_sequence(summaries: Sequence[RankCalls], of: Sequence[tuple[int, Order]]) -> Order:
    """Calls of the numbers that all ranks have and that name the same operation on all of them."""
    numbers = [summaries[at].calls.sequence[calls] for at, calls in of]
    common = numbers[0]
    for each in numbers[1:]:
        common = np.intersect1d(common, each, assume_unique=True)
    call = np.stack([_in_order(calls, sequence, common) for (_, calls), sequence in zip(of, numbers, strict=True)])
    ops = np.stack([summaries[at].calls.op[call[row]] for row, (at, _) in enumerate(of)])
    return call[:, (ops == ops[0]).all(axis=0) & np.isin(ops[0], list(MATCHED_OPS))]


def _in_order(calls: Order, sequence: Times, wanted: Times) -> Order:
    order = np.argsort(sequence)
    return calls[order[np.searchsorted(sequence[order], wanted)]]


def _gathered(summaries: Sequence[RankCalls], group: Group, members: Sequence[int], call: Order) -> Matched:
    def column(name: str) -> Times:
        rows = enumerate(members)
        return np.stack([getattr(summaries[at].calls, name)[call[row]] for row, at in rows])

    start_ns = column("start_ns")
    order = np.argsort(start_ns[0], kind="stable")
    return Matched(
        group,
        np.array(members, np.intp),
        column("op")[0].astype(np.int8)[order],
        column("size_bytes").max(axis=0)[order],
        call[:, order],
        start_ns[:, order],
        column("end_ns")[:, order],
        column("received_bytes")[:, order],
    )
