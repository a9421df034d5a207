"""Why a job stands still: what can be said of it, as plain values. `diag.ranks.analysis` works it out.

A rank is *named* only where its own dump, or what its peers' dumps say of it, leaves no other explanation. A rank
without a dump is a suspect and is never named; one whose guilt an absent dump would settle is undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from diag.model.live import Frame

Confidence = Literal["high", "medium", "low"]


class Cause(StrEnum):
    """What a fault is, in the words of a report."""

    HOST = "the host has not called it"
    DEVICE = "the device or its watchdog stopped"
    CALL = "a different collective or order"
    TENSORS = "a different shape or dtype"
    CYCLE = "a cycle of ranks that wait for each other"
    UNFINISHED = "entered by all, finished by none"
    DEAD = "dead"
    RESTARTED = "restarted while the others were not"
    TRANSPORT = "a link or transport fault"
    GROUPS = "groups whose members disagree"
    INIT = "an initialisation that disagrees"
    LATE = "late but alive"


@dataclass(frozen=True)
class GroupLabel:
    """A communicator as people know it. `ranks` None: no dump says them."""

    name: str
    description: str
    ranks: tuple[int, ...] | None

    def __str__(self) -> str:
        called = self.description or "group"
        return f"{called} {self.name}" if self.name not in {"", called} else called


@dataclass(frozen=True)
class Call:
    """One communication call that one rank enqueued."""

    entry: int  # recorder_entry.id
    source: int
    rank: int
    group: GroupLabel
    op: str  # without the backend's prefix, e.g. '_all_gather_base', 'send 0->3'
    sequence: int  # of its group: collectives, or sends and receives
    is_p2p: bool
    peer: int | None  # of a send or receive, in the job
    input_sizes: str  # JSON, as recorded
    output_sizes: str
    dtypes: str
    created_ns: int | None
    timeout_ns: int | None
    stack_id: int | None

    def __str__(self) -> str:
        return f"{self.op} {self.sequence} of {self.group}"


Need = Literal["not called", "behind other work", "not known"]
"""Why a rank waits for another one: that one has not called the operation; it has, behind work that is not finished;
no dump says; it called another one; or both are in it."""


@dataclass(frozen=True)
class Wait:
    """Rank `rank` cannot go on before `on` does."""

    rank: int
    on: int
    call: Call  # of `rank`
    need: Need


@dataclass(frozen=True)
class Where:
    """What evidence other than a recorder says that a rank is doing."""

    rank: int
    what: str  # of `diag.ranks.whereabouts`: 'gil', 'lock', 'data loader', 'ended', ...
    says: str  # in words that end a sentence: 'its main thread is in ...'
    frame: Frame | None = None  # innermost one of own code
    sql: str | None = None  # the rows behind it


@dataclass(frozen=True)
class Differing:
    """What the members of a group called at the same place."""

    what: str  # 'all_reduce', '[[4]] Float', ...
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Fault:
    """One cause with the ranks at fault. Several faults at once are several of these."""

    cause: Cause
    ranks: tuple[int, ...]  # named
    group: GroupLabel | None
    call: Call | None  # the one that does not go on, of a rank that waits; of DEVICE the one not completed
    sequence: int | None
    waiting: tuple[int, ...]  # ranks that wait for it, at once or in the end
    candidates: tuple[int, ...] = ()  # where it cannot be told which of these it is
    differing: tuple[Differing, ...] = ()
    completed_by: tuple[int, ...] = ()  # peers that completed what these did not
    is_queue_empty: bool = False  # nothing is outstanding on these ranks
    by_rank: Mapping[int, Call] = field(default_factory=dict)  # of each rank at fault what it called last or first
    where: tuple[Where, ...] = ()
    frame: Frame | None = None  # of the caller, where the dump has frames
    confidence: Confidence = "high"
    note: str = ""  # what limits it, as a sentence


@dataclass(frozen=True)
class Suspect:
    """A rank without a dump that others wait for, or may wait for."""

    rank: int
    awaited_by: tuple[int, ...]  # ranks with a dump whose oldest call it may hold up
    call: Call | None
    where: tuple[Where, ...] = ()


@dataclass(frozen=True)
class Undecided:
    """A rank with a dump that may be at fault, and the absent dumps any of which may show it."""

    rank: int
    because: str  # a clause
    deciders: tuple[int, ...]


RankState = Literal["blocked", "waiting", "suspect", "absent", "undecided", "idle", "running"]
"""blocked: at fault. absent: no dump and nobody seen to wait for it. idle: nothing outstanding, and not awaited.
running: everything it called completes."""


@dataclass(frozen=True)
class RankRow:
    rank: int
    source: int | None
    state: RankState
    outstanding: int | None  # calls not completed; None: no dump
    oldest: Call | None
    chain: tuple[Wait, ...]  # from this rank to the rank at fault, or to where it cannot be followed further
    where: tuple[Where, ...] = ()


@dataclass(frozen=True)
class MemberRow:
    """What a member of a group has done in it. None: not known."""

    rank: int
    enqueued: int | None  # sequence number of its last collective
    completed: int | None
    outstanding: int | None


@dataclass(frozen=True)
class GroupRow:
    group: GroupLabel
    members: tuple[MemberRow, ...]
    open_call: Call | None  # the oldest one that does not complete; None: all complete


@dataclass(frozen=True)
class HangAnalysis:
    """What the dumps of a job, and what else is known of its ranks, say about why it stands still."""

    world_size: int | None
    dumped: tuple[int, ...]  # ranks with a dump
    absent: tuple[int, ...]  # ranks of the job without one
    faults: tuple[Fault, ...]  # the one to look at first is the first
    suspects: tuple[Suspect, ...]
    undecided: tuple[Undecided, ...]
    ranks: tuple[RankRow, ...]
    groups: tuple[GroupRow, ...]
    restarted: tuple[int, ...] = ()  # ranks whose later dump has counted fewer calls
    notes: Sequence[str] = ()

    @property
    def named(self) -> tuple[int, ...]:
        return tuple(sorted({rank for fault in self.faults for rank in fault.ranks}))

    @property
    def is_still(self) -> bool:
        """Whether any call is outstanding, or a rank is at fault."""
        return bool(self.faults) or any(row.outstanding for row in self.ranks)
