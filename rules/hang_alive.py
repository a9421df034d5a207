"""Why a job stands still: what stacks and heartbeats say, each by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.model.rank_lists import ranks as rank_list
from diag.ranks.heartbeats import RankBeat, ended_of_itself, newest
from diag.ranks.job import Job
from diag.ranks.stack_answer import StackAnswer, stack_answer
from diag.ranks.stack_clusters import StackCluster
from diag.ranks.thread_stacks import RankThread
from diag.ranks.whereabouts import rows_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Confidence, Evidence, Finding, Severity, Subject
from diag.rules.hang_places import function, gil, heartbeat, of_cluster, of_thread, place, sentence, where
from diag.rules.thresholds import Limits

MOST_SHOWN = 8
LONGEST_END = 120


@job_rule("hang.stacks", needs=("thread_stack",))
def stacks(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks stand elsewhere while others wait for them.

    Asks      While ranks stand in a collective, or wait for their device, does any rank stand somewhere else?
    Decides   By the main thread of each rank in its last dump. It waits if its own code called a function of
              torch.distributed, NCCL, Gloo or MPI, or one that waits for the device; ranks in the same frames are
              counted together, and the smallest group elsewhere comes first. Two or more dumps tell who moved between
              them, and who held the GIL in the same line in all of them. Nobody waits: clear. If all wait, stacks do
              not say for what. What recorders say comes first.
    Matters   A collective ends when all have called it: whoever stands elsewhere holds up the rest.
    Do        Read the line that the rank stands in; dump the flight recorders to learn which collective it is.
    Refute    A second dump, a minute later, shows the rank elsewhere.
    """
    told = stack_answer(job.stacks)
    about = Subject(next((thread.source_id for thread in job.stacks), job.sources[0].id))
    n_seen = sum(len(cluster.threads) for cluster in (*told.waiting, *told.elsewhere))
    if told.is_telling or told.holders:
        yield _elsewhere(job, told) if told.is_telling else _holder(job, told.holders[0])
    elif n_seen < 2:
        yield CannotTell(about, "fewer than two ranks have a stack with frames of Python")
    elif told.waiting:
        yield CannotTell(about, "all of them wait in a collective, a send or a receive: for what, stacks do not say")
    else:
        yield Clear(about)


def _level(job: Job, *, is_over: bool) -> Severity:
    """What recorders and logs tell is more: which call does not end. Unless `is_over`, it may go on by itself."""
    if job.hang.named:
        return "info"
    return "critical" if is_over and not job.hang.faults else "warning"


def _elsewhere(job: Job, told: StackAnswer) -> Finding:
    first = told.elsewhere[0]
    waiting = sum(len(cluster.threads) for cluster in told.waiting)
    away = sum(len(cluster.threads) for cluster in told.elsewhere)
    own = first.own
    return Finding(
        title=f"{sentence(of_cluster(first))} stand{'s' if len(first.threads) == 1 else ''} {place(first)}"
        f"{' and holds the GIL' if any(holder in first.threads for holder in told.holders) else ''}; "
        f"{units.count(waiting, 'rank')} wait{'s' if waiting == 1 else ''} for the others",
        claim=" ".join(_what(told, waiting)),
        subject=Subject(first.threads[0].source_id, ranks=first.ranks or None),
        counterfactual="The collective would end.",
        held_up=waiting,
        level=_level(job, is_over=first.moved == 0),
        confidence="medium" if away <= waiting else "low",
        evidence=[
            Evidence("waiting", waiting, "count", "processes in a collective, or that wait for the device", None),
            *(_stands(cluster) for cluster in told.elsewhere[:MOST_SHOWN]),
        ],
        refute="A second dump, a minute later, shows it elsewhere: then it is late, and not stuck.",
        next=[
            *_go_on(first),
            *([f"Read {where(own)}: why is it there while the others wait?"] if own is not None else []),
            "Collect the dumps of the flight recorder (TORCH_FR_BUFFER_SIZE=2000 before the job starts): they say "
            "which collective does not end.",
        ],
    )


def _go_on(cluster: StackCluster) -> Iterator[str]:
    pids = " ".join(str(thread.pid) for thread in cluster.threads[:MOST_SHOWN] if thread.pid is not None)
    if cluster.is_stopped and pids:
        yield f"Find out who stopped it; it goes on with: kill -CONT {pids}"


def _what(told: StackAnswer, waiting: int) -> Iterator[str]:
    numbers = [rank for cluster in told.waiting for rank in cluster.ranks]
    who = sentence(rank_list(numbers)) if len(numbers) == waiting else units.count(waiting, "process")
    s = "s" if waiting == 1 else ""
    yield (
        f"{who} stand{s} in a collective or wait{s} for the device ({place(told.waiting[0])}), which cannot end before "
        "the others call it. This comes from stacks alone: a dump of the flight recorder would say which collective."
    )
    if told.elsewhere[0].moved is None:
        yield "One dump does not show that a rank stays where it is."
    if more := len(told.elsewhere) - 1:
        yield f"Others stand in {units.count(more, 'more place')}."
    for cluster in told.elsewhere[:MOST_SHOWN]:
        if cluster.moved:
            yield f"{sentence(of_cluster(cluster))} moved between the dumps: late, rather than stuck."
    yield from map(gil, told.holders[:MOST_SHOWN])


def _stands(cluster: StackCluster) -> Evidence:
    thread = cluster.threads[0]
    return Evidence(of_cluster(cluster), place(cluster), "text", "where the main thread stands", rows_of(thread))


def _holder(job: Job, holder: RankThread) -> Finding:
    line = function(holder.frames[:1])
    return Finding(
        title=f"{sentence(of_thread(holder))} holds the GIL in {line}",
        claim=gil(holder),
        subject=Subject(holder.source_id, ranks=None if holder.rank is None else (holder.rank,)),
        counterfactual="The other threads of the rank would run, its watchdog among them.",
        level=_level(job, is_over=True),
        confidence="medium",
        evidence=[Evidence("holds the GIL in", line, "text", "the same frames in every dump", rows_of(holder))],
        refute="A second dump, a minute later, shows another thread with the GIL.",
        next=[f"Read {line}: a call into C that takes long should let go of the GIL."],
    )


@job_rule("hang.heartbeats", needs=("heartbeat",))
def heartbeats(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks ended, are stopped, or run no Python.

    Asks      Is the process of every rank there, and does it run Python?
    Decides   By the last heartbeat of each rank. It ended of itself with an exception that does not speak of a broken
              connection or a timeout, or if it vanished while at least as many ranks did not. It is stopped in the
              kernel's state T, or t for longer than a look takes. It wrote none if its file is a minute behind the
              newest. It runs no Python if it has noted none for 3 s while its file was written.
              Whoever finished counts where others have not. If ranks ended, and none of itself, who began it is not
              told.
    Matters   A rank that is gone never calls the collective that the others wait in.
    Do        Read the end of its log: that a rank ended first does not say that it is the one that is wrong.
    Refute    The log of another rank shows an earlier failure.
    """
    last = newest(job.heartbeats)
    own = ended_of_itself(last)
    about = Subject(last[0].source_id if last else job.sources[0].id)
    is_over = all(beat.condition == "finished" for beat in last)
    gone = [beat for beat in last if beat.rank in own]
    held = [beat for beat in last if beat.condition in ("stopped", "no Python", "not written")]
    left = [beat for beat in last if beat.condition == "finished" and not is_over]
    ended = [beat for beat in last if beat.condition == "ended"]
    if found := gone or held or ([] if ended else left):
        yield _silent(job, found, [beat for beat in ended if beat.rank not in own])
    elif ended:
        because = f"{rank_list(beat.rank for beat in ended)} ended, each as others did: who began it no heartbeat says"
        yield CannotTell(about, because)
    elif not last:
        yield CannotTell(about, "no heartbeat is at hand")
    else:
        yield Clear(about)


def _silent(job: Job, found: Sequence[RankBeat], with_others: Sequence[RankBeat]) -> Finding:
    first = found[0]
    who = tuple(beat.rank for beat in found)
    confidence: Confidence = "low" if first.has_vanished else "medium"
    also = f", and {units.count(len(with_others), 'rank')} ended with it" if with_others else ""
    more = f" So {'is' if len(found) == 2 else 'are'} {rank_list(who[1:])}." if len(found) > 1 else ""
    limits = (
        " That it ended is seen, why is not: a rank that aborts may be right, and another one wrong."
        if first.has_vanished
        else ""
    )
    return Finding(
        title=f"{sentence(_in_short(first))}{also}",
        claim=f"{sentence(heartbeat(first))}.{more}{limits}",
        subject=Subject(first.source_id, ranks=who),
        counterfactual="The others would not wait for it.",
        held_up=len(newest(job.heartbeats)) - len(found),
        level=_level(job, is_over=first.condition == "ended"),
        confidence=confidence,
        evidence=[
            Evidence(
                f"rank {beat.rank}", heartbeat(beat), "text", "its last heartbeat",
                f"SELECT * FROM heartbeat WHERE source_id = {int(beat.source_id)} AND rank = {int(beat.rank)}",
            )
            for beat in [*found, *with_others][:MOST_SHOWN]
        ],
        refute="The log of another rank shows an earlier failure.",
        next=[_next(first)],
    )  # fmt: skip


def _in_short(beat: RankBeat) -> str:
    match beat.condition:
        case "ended" if beat.has_vanished:
            return f"rank {beat.rank} vanished without a word"
        case "ended":
            said = beat.ended or ""
            return f"rank {beat.rank} ended: {said[:LONGEST_END]}{'…' if len(said) > LONGEST_END else ''}"
        case "finished":
            return f"rank {beat.rank} finished while others have not"
        case "stopped":
            return f"rank {beat.rank} is stopped by a signal or a debugger"
        case "not written":
            return f"rank {beat.rank} wrote no heartbeat for {units.time(beat.behind_ns)}"
        case _:
            return f"rank {beat.rank} runs no Python"


def _next(beat: RankBeat) -> str:
    match beat.condition:
        case "ended":
            return "Read the end of its log, and of the kernel's: dmesg | grep -i -e oom -e killed -e xid"
        case "finished":
            return "Compare how many steps each rank has: an uneven data set lets one end early."
        case "stopped":
            pid = beat.pid or "PID"
            return (
                f"See who stopped it: grep -E 'State|TracerPid' /proc/{pid}/status; it goes on with: kill -CONT {pid}"
            )
        case "not written":
            host, pid = f" {beat.host}" if beat.host else "", beat.pid or "PID"
            return f"Look at its host{host}: is it reachable, and does process {pid} live?"
        case _:
            return f"Dump its stack twice: py-spy dump --native --pid {beat.pid or 'PID'}"
