"""What evidence other than recorders says of a rank: stacks, heartbeats, logs; and what that makes of a fault."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from diag.model import units
from diag.model.live import Frame
from diag.model.live_stacks import first_own_frame
from diag.ranks.ends import is_killed
from diag.ranks.hang import Cause, Fault, Where
from diag.ranks.heartbeats import RankBeat, ended_of_itself, newest, rank_of
from diag.ranks.log_events import LogEvent
from diag.ranks.restarts import RESTARTED
from diag.ranks.thread_stacks import RankThread, gil_holders, last_main_threads

_DISTRIBUTED = r".*(?:distributed_c10d\.py|torch/distributed)"
"""The end of such a frame: sockets and pipes have a recv, too."""

HOST_PLACES: Sequence[tuple[str, str, re.Pattern[str]]] = (
    ("checkpoint", "saves or loads a checkpoint", re.compile(r"\b(save|load|save_state_dict|torch_save|fsync)\b")),
    ("data loader", "waits for its data loader", re.compile(r"dataloader|_next_data|_try_get_data|_get_data")),
    ("lock", "waits for a lock", re.compile(r"\b(acquire|__enter__|wait_for|_wait_for_tstate_lock)\b|threading\.py")),
    ("synchronize", "waits for its device", re.compile(r"\bsynchronize\b|\bitem\b|\bcpu\b|wait_tensor")),
    ("receive", "is in a send or receive", re.compile(rf"\b(recv|send|irecv|isend|batch_isend_irecv) {_DISTRIBUTED}")),
    ("initialise", "joins the job", re.compile(r"\binit_process_group\b")),
    ("new group", "makes a group", re.compile(r"\b(new_group|new_subgroups|_new_process_group_helper)\b")),
    ("collective", "is in a collective", re.compile(_DISTRIBUTED)),
    ("sleep", "sleeps", re.compile(r"\bsleep\b")),
)
"""(what, in words, in the frames of libraries above own code and in the name of the own function). The first that is
found holds.
"""

ENDS = frozenset({"slurm.exit", "slurm.oom", "slurm.node_fail", "launcher.exit", "launcher.signal", "kernel.oom"})
LINKS = frozenset({"InfiniBand completion error", "InfiniBand port or device event", "peer closed the connection"})
"""Classes of NCCL's warnings that are about what is between ranks."""

OF_DEVICES = ("xid", "transport")
"""What names a device or link where every host is in the same place."""

OF_A_NEW_PROCESS = frozenset({Cause.HOST, Cause.DEVICE, Cause.CALL, Cause.TENSORS})
"""How a rank that was restarted alone looks to the recorders: it counts from the start, and calls what comes first."""


def fused(fault: Fault, where: Mapping[int, Sequence[Where]]) -> Fault:
    """A fault with what is known of where its ranks are.

    Of ranks among which it cannot be told only errors of devices and links are: where they stand, all stand.
    """
    known = tuple(one for rank in fault.ranks for one in where.get(rank, ()))
    if fault.cause is Cause.UNFINISHED:
        known = tuple(one for rank in fault.candidates for one in where.get(rank, ()) if one.what in OF_DEVICES)
    if not known:
        return fault
    frame = next((one.frame for one in known if one.frame is not None), fault.frame)
    if fault.cause in OF_A_NEW_PROCESS and fault.ranks and _all(fault, where, RESTARTED):
        return replace(fault, cause=Cause.RESTARTED, where=known, frame=frame, confidence="medium")
    if fault.cause is Cause.HOST and _all(fault, where, "ended"):
        return replace(fault, cause=Cause.DEAD, where=known, frame=frame)
    if fault.cause is Cause.HOST and _all(fault, where, "receive"):
        return replace(fault, cause=Cause.CYCLE, where=known, frame=frame, confidence="medium")
    if fault.cause is Cause.DEVICE and any(one.what == "transport" for one in known):
        return replace(fault, cause=Cause.TRANSPORT, where=known, frame=frame)
    return replace(fault, where=known, frame=frame)


def _all(fault: Fault, where: Mapping[int, Sequence[Where]], what: str) -> bool:
    return all(any(one.what == what for one in where.get(rank, ())) for rank in fault.ranks)


def whereabouts(
    threads: Sequence[RankThread], beats: Sequence[RankBeat], events: Sequence[LogEvent], n_ranks: int | None = None
) -> Sequence[Where]:
    """`n_ranks`: of the job, where it is known: a rank beyond is none of it. If more than half of them ended, no end
    tells who began it.
    """
    told = [*_of_stacks(threads), *_of_heartbeats(beats), *_of_logs(events, beats)]
    found = [one for one in told if one.rank >= 0 and (n_ranks is None or one.rank < n_ranks)]
    ended = {one.rank for one in found if one.what == "ended"}
    if n_ranks is None or 2 * len(ended) <= n_ranks:
        return found
    return [replace(one, what="ended with others") if one.what == "ended" else one for one in found]


# ---- stacks --------------------------------------------------------------------------------------------------------


def _of_stacks(threads: Sequence[RankThread]) -> Iterator[Where]:
    for thread in last_main_threads(threads):
        if thread.rank is not None and thread.frames:
            own = first_own_frame(thread.frames)
            what, does = place(thread.frames, own)
            at = own or thread.frames[0]
            line = f"{at.function} ({at.file}:{at.line})"
            says = f"its main thread is in {line}" if what == "host" else f"its main thread {does}, called from {line}"
            yield Where(thread.rank, what, says, own, rows_of(thread))
    for holder in gil_holders(threads):
        if holder.rank is not None:
            says = "one of its threads holds the GIL in every dump"
            yield Where(holder.rank, "gil", says, first_own_frame(holder.frames), rows_of(holder))


def place(frames: Sequence[Frame], own: Frame | None) -> tuple[str, str]:
    """What a thread does, by the frames of libraries above own code; the file of own code may be called anything.

    >>> place([Frame("step", "/home/me/load/train.py", 3)], Frame("step", "/home/me/load/train.py", 3))
    ('host', 'runs')
    """
    inner = frames[: frames.index(own)] if own in frames else frames
    above = [f"{frame.function} {frame.file}" for frame in inner]
    text = "\n".join(above if own is None else [*above, own.function])
    return next(((what, words) for what, words, found in HOST_PLACES if found.search(text)), ("host", "runs"))


def rows_of(thread: RankThread) -> str:
    """Numbers of the case alone."""
    tid = "NULL" if thread.tid is None else int(thread.tid)
    return (
        f"SELECT * FROM thread_stack WHERE source_id = {int(thread.source_id)} AND dump = {int(thread.dump)} "
        f"AND tid IS {tid}"
    )


# ---- heartbeats ----------------------------------------------------------------------------------------------------


def _of_heartbeats(beats: Sequence[RankBeat]) -> Iterator[Where]:
    own = ended_of_itself(beats)
    for beat in newest(beats):
        sql = f"SELECT * FROM heartbeat WHERE source_id = {int(beat.source_id)} AND rank = {int(beat.rank)}"
        match beat.condition:
            case "finished":
                yield Where(beat.rank, "ended", "it had finished", None, sql)
            case "ended":
                what = "ended" if beat.rank in own else "ended with others"
                yield Where(beat.rank, what, f"it ended: {beat.ended}", None, sql)
            case "not written":
                behind = units.time(beat.behind_ns)
                yield Where(beat.rank, "silent", f"its heartbeat is {behind} older than the newest", None, sql)
            case "stopped":
                says = f"it is stopped by a signal or a debugger (state {beat.state})"
                yield Where(beat.rank, "stopped", says, None, sql)
            case "no Python":
                stale = units.time(beat.written_ns - beat.time_ns)
                yield Where(beat.rank, "gil", f"it had not run Python for {stale}: {beat.held}", None, sql)
            case "runs Python" if beat.phase:
                yield Where(beat.rank, "phase", f"it runs Python, in phase {beat.phase!r}", None, sql)


# ---- logs ----------------------------------------------------------------------------------------------------------


def _of_logs(events: Sequence[LogEvent], beats: Sequence[RankBeat]) -> Iterator[Where]:
    for event in events:
        sql = f"SELECT * FROM log_event WHERE source_id = {int(event.source)} AND line = {int(event.line)}"
        what = _said(event)
        if what is not None:
            yield from (Where(rank, what, f"a log says: {event.text}", None, sql) for rank in ranks_told(event, beats))


def _said(event: LogEvent) -> str | None:
    if event.kind in ENDS and is_killed(event.text):
        return "ended"
    if event.kind == "kernel.oom":
        return "ended"
    if event.kind == "xid":
        return "xid"
    if event.kind == "nccl.warning" and event.fields.get("class") in LINKS:
        return "transport"
    return None


def ranks_told(event: LogEvent, beats: Sequence[RankBeat]) -> Sequence[int]:
    """A line of Slurm speaks of several ranks; one of the kernel of a process, whose rank its heartbeat tells."""
    if event.rank is not None:
        return [event.rank]
    several = event.fields.get("ranks")
    if isinstance(several, list):
        return [each for each in several if isinstance(each, int)]
    rank = rank_of(event.pid, event.host, beats)
    return [] if rank is None else [rank]
