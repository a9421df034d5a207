"""Ranks and communicators of a job as rows of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.ranks.hang import Call, RankState
from diag.ranks.job import Job


@dataclass(frozen=True)
class OpenCallRow:
    op: str
    sequence: int
    group: str
    input_sizes: str  # JSON, as recorded
    dtypes: str
    source: int
    entry: int  # recorder_entry.id


@dataclass(frozen=True)
class RankOfJobRow:
    """A rank by its flight recorder. `waits_for` are the ranks on the way to the one at fault, nearest first."""

    rank: int
    source: int | None  # None: it left no dump
    state: RankState
    outstanding: int | None
    oldest: OpenCallRow | None
    waits_for: Sequence[int]


@dataclass(frozen=True)
class GroupOfRanksRow:
    """A communicator. `enqueued` and `completed` count collectives, by member; None: not known."""

    name: str
    description: str
    ranks: Sequence[int]
    enqueued: Sequence[int | None]
    completed: Sequence[int | None]
    open_call: OpenCallRow | None


def _call(call: Call | None) -> OpenCallRow | None:
    if call is None:
        return None
    return OpenCallRow(
        op=call.op,
        sequence=call.sequence,
        group=str(call.group),
        input_sizes=call.input_sizes,
        dtypes=call.dtypes,
        source=call.source,
        entry=call.entry,
    )


def rank_rows(job: Job) -> Sequence[RankOfJobRow]:
    return [
        RankOfJobRow(
            rank=row.rank,
            source=row.source,
            state=row.state,
            outstanding=row.outstanding,
            oldest=_call(row.oldest),
            waits_for=[wait.on for wait in row.chain],
        )
        for row in job.hang.ranks
    ]


def group_rows(job: Job) -> Sequence[GroupOfRanksRow]:
    return [
        GroupOfRanksRow(
            name=row.group.name,
            description=row.group.description,
            ranks=[member.rank for member in row.members],
            enqueued=[member.enqueued for member in row.members],
            completed=[member.completed for member in row.members],
            open_call=_call(row.open_call),
        )
        for row in job.hang.groups
    ]
