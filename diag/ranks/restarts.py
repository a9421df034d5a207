"""Ranks whose process is not the first one that was this rank, while the rest of the job is as it was.

A job that was restarted as a whole has nobody at fault for it, and a log of one launcher does not show whether the
others restarted with it. So each sign counts only where it sets a rank apart from others that show none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from diag.model import units
from diag.ranks.dumps import Dumps, RankDump
from diag.ranks.hang import Where
from diag.ranks.heartbeats import BEHIND_NS, RankBeat
from diag.ranks.log_events import LogEvent

RESTARTED = "restarted"
"""`Where.what` of a rank that was restarted alone."""
WITH_OTHERS = "restarted with others"


def restarts(
    dumps: Dumps, beats: Sequence[RankBeat], events: Sequence[LogEvent], n_ranks: int | None = None
) -> Sequence[Where]:
    """`n_ranks`: of the job, where it is known. Where half of the known ranks or more show a sign of their own process
    alone, it sets nobody apart.
    """
    own = [*_of_dumps(dumps), *_of_calls(dumps), *_of_heartbeats(beats)]
    known = n_ranks or len({*dumps.by_rank, *(beat.rank for beat in beats)})
    if 2 * len({one.rank for one in own}) >= known:
        own = [replace(one, what=WITH_OTHERS) for one in own]
    return [*own, *_of_launchers(events, n_ranks)]


def _of_dumps(dumps: Dumps) -> Iterator[Where]:
    """A recorder never counts back: of two dumps of one process the later one has counted more."""
    for rank in sorted(dumps.restarted):
        says = "it was restarted: its later dump has counted fewer calls than an earlier one"
        yield Where(rank, RESTARTED, says, None, _CALLS.format(rank=rank))


# ---- calls that somebody else must have made -----------------------------------------------------------------------


def _of_calls(dumps: Dumps) -> Iterator[Where]:
    """Peers completed a collective that needs this rank, before this process had called anything at all.

    Only times of completion count, which NCCL's watchdog notes: retired entries and last completed numbers are
    falsified by an exception. Clocks of hosts differ by less than BEHIND_NS.
    """
    began = {rank: int(dump.entries.created_ns[0]) for rank, dump in dumps.by_rank.items() if dump.is_whole}
    began = {rank: at_ns for rank, at_ns in began.items() if at_ns >= 0}
    if not began:
        return
    latest_ns = max(began.values()) - BEHIND_NS
    first: dict[int, tuple[int, int]] = {}  # by member: when its first collective was completed, by which peer
    for peer, dump in dumps.by_rank.items():
        for members, completed_ns in _first_completed(dump):
            if completed_ns < latest_ns:
                for rank in members:
                    if rank != peer and rank in began:
                        first[rank] = min(first.get(rank, (completed_ns, peer)), (completed_ns, peer))
    for rank, (completed_ns, peer) in sorted(first.items()):
        later_ns = began[rank] - completed_ns
        if later_ns > BEHIND_NS:
            says = (
                f"it was restarted: its first call of all came {units.time(later_ns)} after rank {peer} completed a "
                "collective that needs it"
            )
            yield Where(rank, RESTARTED, says, None, _CALLS.format(rank=rank))


def _first_completed(dump: RankDump) -> Iterator[tuple[Sequence[int], int]]:
    """By group with known ranks, when the first collective that no rank completes alone was completed."""
    entries = dump.entries
    is_told = (entries.completed_ns >= 0) & (entries.completed_ns < _sound_until_ns(dump)) & ~entries.is_p2p
    rows = np.flatnonzero(is_told)
    together = {
        number: dump.signatures.by_id[number].completes_only_together
        for number in np.unique(entries.signature[rows]).tolist()
    }
    rows = rows[[together[number] for number in entries.signature[rows].tolist()]] if len(rows) else rows
    for at in np.unique(entries.group[rows]).tolist():
        if members := dump.groups[at].label.ranks:
            yield members, int(entries.completed_ns[rows[entries.group[rows] == at]].min())


def _sound_until_ns(dump: RankDump) -> int:
    """Until when a completion was none by abort: before any call had run into its time-out, and while the rank went on
    calling. An abort ends kernels, too, and looks like their completion.
    """
    entries = dump.entries
    ends_ns = entries.created_ns + np.maximum(entries.timeout_ns, 0)
    is_late = (entries.completed_ns < 0) | (entries.completed_ns >= ends_ns)
    return int(min(ends_ns[is_late].min(initial=NEVER_NS), dump.newest[0]))


NEVER_NS = 1 << 62

_CALLS = (
    "SELECT s.path, e.record_id, e.sequence, e.created_ns FROM recorder_entry e JOIN source s ON s.id = e.source_id "
    "WHERE s.rank = {rank} ORDER BY s.id, e.record_id"
)

# ---- processes -----------------------------------------------------------------------------------------------------


def _of_heartbeats(beats: Sequence[RankBeat]) -> Iterator[Where]:
    """A process ended, and another one is this rank now. Two that both live are a mistake in the setup."""
    by_rank: dict[int, list[RankBeat]] = {}
    for beat in beats:
        by_rank.setdefault(beat.rank, []).append(beat)
    for rank, each in by_rank.items():
        *earlier, last = each
        gone = [beat for beat in earlier if beat.ended is not None and _is_other(beat, last)]
        if gone and last.ended is None:
            says = f"it was restarted: its process {gone[-1].pid} ended ({gone[-1].ended}), and process {last.pid} runs"
            yield Where(rank, RESTARTED, says, None, f"SELECT * FROM heartbeat WHERE rank = {int(rank)}")


def _is_other(one: RankBeat, other: RankBeat) -> bool:
    if one.pid is None or other.pid is None:
        return False
    return one.pid != other.pid or (None not in (one.host, other.host) and one.host != other.host)


def _of_launchers(events: Sequence[LogEvent], n_ranks: int | None) -> Iterator[Where]:
    """torchrun says at each start of its workers which ranks they are. Only a log in which all launchers of the job
    write shows that some ranks were started more often than others, as with a static rendezvous.
    """
    by_log: dict[int, list[LogEvent]] = {}
    for event in events:
        if event.kind == "launcher.workers":
            by_log.setdefault(event.source, []).append(event)
    for source, said in by_log.items():
        starts = Counter(dict.fromkeys(range(n_ranks or 0), 0))
        for event in said:
            starts.update(dict.fromkeys(_ranks(event), event.times))
        fewest = min(starts.values())
        if n_ranks is not None and len(starts) == n_ranks and fewest:
            for rank, n in sorted(starts.items()):
                if n > fewest:
                    says = f"it was restarted: torchrun started it {units.count(n, 'time')}, others {fewest}"
                    yield Where(rank, RESTARTED, says, None, _STARTS.format(source=int(source)))


def _ranks(event: LogEvent) -> Sequence[int]:
    found = event.fields.get("ranks")
    return [each for each in found if isinstance(each, int)] if isinstance(found, list) else []


_STARTS = "SELECT line, fields FROM log_event WHERE source_id = {source} AND kind = 'launcher.workers' ORDER BY line"
