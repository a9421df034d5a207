"""The last sign of life of each rank, and what it proves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.ranks.ends import is_of_others
from diag.store.case import Case

STALE_NS = 3_000_000_000
"""A rank that runs Python notes so every 0.5 s (diag/collect/heartbeat.py): six times it has not, by then."""
BEHIND_NS = 60_000_000_000
"""A file is written every 2 s: thirty times it was not, by then, and clocks of hosts differ by less."""

Condition = Literal["finished", "ended", "not written", "stopped", "no Python", "runs Python"]
"""'not written': files of other ranks are newer, as its host may be gone. 'stopped': by a signal or a debugger.
'no Python': a call holds the GIL, or the kernel holds the process.
"""


@dataclass(frozen=True)
class RankBeat:
    """A row of the table `heartbeat`, which says what the fields are."""

    source_id: int
    rank: int
    world_size: int | None
    local_rank: int | None
    device: int | None
    host: str | None
    pid: int | None
    time_ns: int
    written_ns: int
    beat_ns: int | None
    state: str | None
    step: int | None
    phase: str | None
    ended: str | None
    behind_ns: int = 0  # before the newest file of the job was written

    @property
    def condition(self) -> Condition:
        if self.ended is not None:
            return "finished" if self.ended == "finished" else "ended"
        if self.behind_ns > BEHIND_NS:
            return "not written"
        is_stale = self.written_ns - self.time_ns > STALE_NS
        if self.state == "T" or (self.state == "t" and is_stale):  # 't' for a moment: py-spy looked at it just then
            return "stopped"
        return "no Python" if is_stale else "runs Python"

    @property
    def held(self) -> str:
        """What keeps a rank that does not run Python, as a clause."""
        return "the kernel holds it (state D)" if self.state == "D" else "a call holds the GIL"

    @property
    def has_vanished(self) -> bool:
        """Whether its process was gone before it could say why."""
        return (self.ended or "").startswith("vanished")

    @property
    def silent_ns(self) -> int | None:
        """Since the program itself last told its step or phase; None: it never did."""
        return None if self.beat_ns is None else self.written_ns - self.beat_ns


def load_heartbeats(case: Case, n_ranks: int | None = None) -> Sequence[RankBeat]:
    """By rank; of two files of one rank, as before and after a restart, the older one first.

    `n_ranks`: of the job, where it is known: a heartbeat of a rank beyond is of another job, or of none.
    """
    beats = [RankBeat(**dict(row)) for row in case.rows(_HEARTBEATS)]
    return [beat for beat in beats if n_ranks is None or beat.rank < n_ranks]


def newest(beats: Sequence[RankBeat]) -> Sequence[RankBeat]:
    """Of each rank the last one: one before a restart tells nothing of now."""
    return list({beat.rank: beat for beat in sorted(beats, key=lambda beat: beat.written_ns)}.values())


def ended_of_itself(beats: Sequence[RankBeat]) -> Collection[int]:
    """Ranks with an exception of their own, and those that vanished while at least as many did not.

    Watchdogs abort all ranks of a job without a word: of those that vanish together none began it.
    """
    last = newest(beats)
    vanished = {beat.rank for beat in last if beat.has_vanished}
    raised = {beat.rank for beat in last if beat.condition == "ended" and not is_of_others(beat.ended or "")}
    return raised if 2 * len(vanished) <= len(last) else raised - vanished


def rank_of(pid: int | None, host: str | None, beats: Sequence[RankBeat]) -> int | None:
    """A pid is unique on its host alone: where hosts are not told, a pid of two ranks gives none."""
    known = {
        beat.rank
        for beat in beats
        if beat.pid is not None and beat.pid == pid and (None in (beat.host, host) or beat.host == host)
    }
    return known.pop() if len(known) == 1 else None


_HEARTBEATS = """
SELECT source_id, rank, world_size, local_rank, device, host, pid, time_ns, written_ns, beat_ns, state, step, phase,
       ended, max(written_ns) OVER () - written_ns AS behind_ns
  FROM heartbeat
 ORDER BY rank, written_ns, source_id
"""
