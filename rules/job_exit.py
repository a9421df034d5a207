"""How the processes of a job ended, and which end came first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from diag.model import units
from diag.model.rank_lists import ranks as rank_list
from diag.ranks.ends import is_of_others
from diag.ranks.job import Job
from diag.ranks.log_events import LogEvent
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Severity
from diag.rules.job_logs import lines_of, subject_of
from diag.rules.thresholds import Limits

CAUSES = {
    "xid": "the driver reported a fault of a GPU",
    "slurm.node_fail": "a node failed",
    "slurm.oom": "the host's memory ran out",
    "kernel.oom": "the host's memory ran out",
    "slurm.time_limit": "the job's time was up",
    "slurm.preempted": "the job was preempted",
    "gloo.size": "ranks gave one collective tensors of different sizes",
    "python.exception": "an exception",
    "launcher.signal": "a signal",
    "slurm.exit": "a task ended with an error",
    "launcher.exit": "a process ended with an error",
    "launcher.failed": "a process ended with an error",
    "launcher.rendezvous": "the ranks did not find each other",
    "slurm.cancelled": "the job was cancelled",
    "launcher.signalled": "torchrun was told to end",
}
"""What each line stands for, those first that explain the others: a process that was killed for want of memory is also
reported as ended, and a job that is cancelled may be so because a task ended.
"""

ENDED_WELL = ("nccl.destroy", "launcher.closing")


@job_rule("job.exit", needs=("log_event",))
def job_exit(job: Job, limits: Limits) -> Iterator[Answer]:
    """A process of the job was killed, failed, or raised an exception.

    Asks      What ended the job: want of memory, a time limit, a node, a fault of a GPU, a signal, or an exception of a
              rank; and which came first?
    Decides   Fires on what Slurm, the kernel, torchrun and tracebacks say. First comes the earliest in the log among
              the lines that explain most (a fault of a GPU or node, want of memory, a limit, then exceptions, then how
              processes ended); of exceptions, those that only say that a peer is gone come after all others. Clear: the
              log shows communicators destroyed in order, or has other lines of the program, and none of these.
    Matters   Ends spread: when one rank dies all others fail in their next collective, and each says so.
    Do        Look at the rank that is named and at the lines before it. The first that was observed is not always the
              first that failed: torchrun looks once a second, logs of several hosts have several clocks, and output
              that was buffered comes late.
    Refute    An earlier failure in the log of another rank, or in the kernel's log of its host (dmesg -T).
    """
    ends = [event for event in job.events if event.kind in CAUSES]
    if ends:
        yield _finding(job, ends)
    elif any(event.kind in ENDED_WELL for event in job.events):
        yield Clear(subject_of(job))
    else:
        yield CannotTell(subject_of(job), "no line tells how the processes of this job ended")


def _is_of_others(event: LogEvent) -> bool:
    return event.kind == "python.exception" and is_of_others(event.text)


def _weight(event: LogEvent) -> tuple[bool, int, bool, int, int]:
    observed_first = bool(event.fields.get("is_first_observed"))
    return _is_of_others(event), list(CAUSES).index(event.kind), not observed_first, event.source, event.line


def _finding(job: Job, ends: Sequence[LogEvent]) -> Finding:
    first = min(ends, key=_weight)
    by_kind: defaultdict[str, list[LogEvent]] = defaultdict(list)
    for event in ends:
        by_kind[event.kind].append(event)
    ranks = _ranks(first)
    who = rank_list(ranks) if ranks else _where(first)
    others = sorted({rank for event in ends for rank in _ranks(event)} - set(ranks))
    return Finding(
        title=f"{CAUSES[first.kind][0].upper()}{CAUSES[first.kind][1:]}: {who}",
        claim=f"What explains most is {CAUSES[first.kind]} ({who}): {first.text}"
        + (f" Others that ended, too: {rank_list(others)}." if others else "")
        + (" It only says that another rank is gone." if _is_of_others(first) else "")
        + " The first that was observed is not always the cause.",
        subject=subject_of(job, ranks),
        level=_level(job, first),
        confidence="medium",
        counterfactual="The job would have gone on.",
        evidence=[
            Evidence(
                CAUSES[kind],
                sum(event.times for event in by_kind[kind]),
                "count",
                _listed(by_kind[kind]),
                lines_of(kind),
            )
            for kind in CAUSES
            if kind in by_kind
        ],
        refute="An earlier failure in the log of another rank, or in dmesg -T of its host.",
        next=[_next(first), "Look at the lines before it in the log of that rank."],
    )


def _level(job: Job, first: LogEvent) -> Severity:
    """Whoever lost a peer is not the cause: that is told where it is known, and else to be looked for."""
    if not _is_of_others(first):
        return "critical"
    return "info" if job.hang.named else "warning"


def _ranks(event: LogEvent) -> Sequence[int]:
    if event.rank is not None:
        return [event.rank]
    listed = event.fields.get("ranks")
    return sorted({each for each in listed if isinstance(each, int)}) if isinstance(listed, list) else []


def _where(event: LogEvent) -> str:
    said = event.fields
    parts = [
        f"host {event.host}" if event.host else "",
        f"local rank {said['local_rank']}" if "local_rank" in said else "",
        f"GPU {said['pci']}, Xid {said.get('xid')}" if "pci" in said else "",
        f"step {said['step']}" if "step" in said else "",
        f"process {event.pid}" if event.pid is not None else "",
    ]
    return ", ".join(filter(None, parts)) or "which rank is not said"


def _listed(events: Sequence[LogEvent]) -> str:
    ranks = sorted({rank for event in events for rank in _ranks(event)})
    return rank_list(ranks) if ranks else f"{units.count(len(events), 'line')}; first: {_where(events[0])}"


def _next(first: LogEvent) -> str:
    match first.kind:
        case "slurm.oom" | "kernel.oom":
            return (
                "Ask for more memory (--mem), or find what grew: data-loader workers each hold a copy of the data set."
            )
        case "xid":
            return (
                "Look the number up in NVIDIA's list of Xid errors, and drain the host: nvidia-smi -q, dcgmi diag -r 2"
            )
        case "slurm.time_limit" | "slurm.preempted" | "slurm.cancelled":
            return "Look at how the job was to end: sacct -j JOB --format=JobID,State,ExitCode,Elapsed,Timelimit"
        case "slurm.node_fail":
            return "Look at the node: scontrol show node NODE, and sacct -j JOB"
        case "launcher.rendezvous":
            return "Look whether all hosts have the same --rdzv_endpoint, --nnodes and --rdzv_id, and reach that port."
        case _:
            return "Run that rank with TORCH_SHOW_CPP_STACKTRACES=1, and with @record around main() for its traceback."
