"""Where ranks are, by their stacks and heartbeats, in words."""

from __future__ import annotations

from collections.abc import Sequence

from diag.model import units
from diag.model.live import Frame
from diag.model.live_stacks import short_file
from diag.model.rank_lists import numbers_only, ranks
from diag.ranks.heartbeats import RankBeat
from diag.ranks.stack_clusters import StackCluster
from diag.ranks.thread_stacks import RankThread

LONGEST_FILE = 40


def sentence(clause: str) -> str:
    return clause[:1].upper() + clause[1:]


def gil(holder: RankThread) -> str:
    held = f"{sentence(of_thread(holder))} held the GIL in {function(holder.frames[:1])} in every dump"
    if holder.is_running:
        return f"{held} and was running: a long call, or a loop in one line."
    return f"{held} while it slept: a C call does not release it, so that no other thread of this rank runs Python."


def of_thread(thread: RankThread) -> str:
    return f"rank {thread.rank}" if thread.rank is not None else f"process {thread.pid}"


def of_cluster(cluster: StackCluster) -> str:
    """The ranks of a cluster, or its processes where no rank is known."""
    if cluster.ranks:
        return ranks(cluster.ranks)
    pids = [thread.pid for thread in cluster.threads if thread.pid is not None]
    if not pids:
        return units.count(len(cluster.threads), "process")
    return f"{'process' if len(pids) == 1 else 'processes'} {numbers_only(pids)}"


def place(cluster: StackCluster) -> str:
    """'in sleep ← load_batch (train.py:14)': the leaf, and the line of own code that it was called from."""
    if not cluster.frames:
        return "with no frame of Python"
    stopped = "stopped by a signal (state T), " if cluster.is_stopped else ""
    leaf, own = cluster.frames[0], cluster.own
    if own is None or own == leaf:
        return f"{stopped}in {where(leaf)}"
    return f"{stopped}in {leaf.function} ← {where(own)}"


def function(frames: Sequence[Frame]) -> str:
    return where(frames[0]) if frames else "a frame that is not told"


def where(frame: Frame) -> str:
    short = short_file(frame.file, LONGEST_FILE)
    line = f":{frame.line}" if frame.line else ""
    return f"{frame.function} ({short}{line})" if short else frame.function


def heartbeat(beat: RankBeat) -> str:
    """A clause about one rank, without its stop."""
    stale = units.time(max(0, beat.written_ns - beat.time_ns))
    at = ", ".join(
        filter(
            None, (f"step {beat.step}" if beat.step is not None else "", f"phase {beat.phase!r}" if beat.phase else "")
        )
    )
    last = f" (last told: {at})" if at else ""
    match beat.condition:
        case "finished":
            return f"rank {beat.rank} finished{last}"
        case "ended":
            return f"rank {beat.rank} ended: {beat.ended}{last}"
        case "not written":
            return (
                f"rank {beat.rank} wrote its heartbeat {units.time(beat.behind_ns)} before the newest of another rank: "
                f"its host is gone, or its file is an older copy{last}"
            )
        case "stopped":
            return f"rank {beat.rank} is stopped by a signal or a debugger (state {beat.state}){last}"
        case "no Python":
            return f"rank {beat.rank} has run no Python for {stale} while its process lives: {beat.held}{last}"
        case "runs Python":
            silent = "" if beat.silent_ns is None else f", silent for {units.time(max(0, beat.silent_ns))}"
            return f"rank {beat.rank} runs Python{last}{silent}"
