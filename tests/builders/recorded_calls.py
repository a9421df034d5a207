"""Flight recorders, made up by hand: what `diag.ranks.recorders` would read from a case."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from diag.ranks.dumps import Dumps, Entries, Membership, RankDump, together
from diag.ranks.hang import GroupLabel
from diag.ranks.signatures import CallSignature, CallSignatures

_KNOWN: dict[tuple[str, str, str], CallSignature] = {}
"""Numbered as they are made up, so that those of several dumps fit together."""


@dataclass(frozen=True)
class Recorded:
    """One entry of a recorder."""

    group: str
    op: str
    record: int
    sequence: int
    p2p_sequence: int = 0
    is_p2p: bool = False
    is_done: bool = False
    sizes: tuple[int, ...] = (4,)
    dtype: str = "Float"
    created_ns: int | None = None
    completed_ns: int | None = None


@dataclass(frozen=True)
class Group:
    name: str
    ranks: tuple[int, ...] | None
    last_enqueued: int | None = None
    last_completed: int | None = None
    description: str | None = None


def signature_id(op: str, sizes: Sequence[int], dtype: str) -> int:
    key = (op, json.dumps([list(sizes)]), json.dumps([dtype]))
    if key not in _KNOWN:
        _KNOWN[key] = CallSignature(len(_KNOWN) + 1, f"nccl:{op}", key[1], key[2], key[1], key[2])
    return _KNOWN[key].id


def job_of(dumps: Sequence[RankDump]) -> Dumps:
    """All dumps of a job, which share their signatures."""
    signatures = CallSignatures({each.id: each for each in _KNOWN.values()})
    return together([replace(dump, signatures=signatures) for dump in dumps])


def rank_dump(
    rank: int, groups: Sequence[Group], calls: Sequence[Recorded], *, source: int | None = None, world_size: int = 0
) -> RankDump:
    """To be put together with others by `job_of`."""

    def column(values: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, dtype=np.int64)

    at = {group.name: number for number, group in enumerate(groups)}
    entries = Entries(
        id=column([1000 * rank + number for number, _ in enumerate(calls)]),
        group=column([at[call.group] for call in calls]),
        signature=column([signature_id(call.op, call.sizes, call.dtype) for call in calls]),
        record_id=column([call.record for call in calls]),
        sequence=column([call.sequence for call in calls]),
        p2p_sequence=column([call.p2p_sequence for call in calls]),
        is_p2p=column([call.is_p2p for call in calls]) != 0,
        is_done=column([call.is_done for call in calls]) != 0,
        created_ns=column([call.record if call.created_ns is None else call.created_ns for call in calls]),
        completed_ns=column([-1 if call.completed_ns is None else call.completed_ns for call in calls]),
        timeout_ns=column([600_000_000_000 for _ in calls]),
        stack_id=column([-1 for _ in calls]),
    )
    memberships = [
        Membership(
            number,
            GroupLabel(group.name, group.name if group.description is None else group.description, group.ranks),
            group.last_enqueued,
            group.last_completed,
        )
        for number, group in enumerate(groups)
    ]
    return RankDump(
        rank, rank if source is None else source, world_size or None, memberships, entries, CallSignatures({})
    )
