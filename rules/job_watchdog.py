"""Which collective PyTorch's watchdog gave up on, and who was waiting in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.model.rank_lists import ranks as rank_list
from diag.ranks.job import Job
from diag.ranks.log_events import LogEvent
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.job_logs import lines_of, subject_of
from diag.rules.thresholds import Limits

OF_PROGRAM = ("watchdog.", "launcher.", "python.", "slurm.")
"""Lines that only the output of the program itself holds, where the watchdog's would stand, too."""


@dataclass(frozen=True)
class Last:
    """What the watchdog says of one rank and group: the numbers of the collectives that it enqueued and completed."""

    enqueued: int
    completed: int


@job_rule("job.watchdog", needs=("log_event",))
def watchdog(job: Job, limits: Limits) -> Iterator[Answer]:
    """PyTorch's watchdog gave up on a collective.

    Asks      Which collective timed out first, which ranks waited in it, and which had not even called it?
    Decides   Fires on `Watchdog caught collective operation timeout`. The first is the one with the earliest date, or
              where there is none the lowest sequence number. A rank that had enqueued fewer collectives of the same
              group than that number had not called it: it is what the others waited for. Numbers are per group: those
              of groups that the line does not name are compared within one sequence only.
    Matters   The ranks that complain are the ones that waited: the culprit is a rank that does not, or one that is
              elsewhere. The watchdog ends them all, and with them the evidence.
    Do        Look at the ranks that had not called it, at what they did then (`diag hang` with flight-recorder dumps:
              TORCH_FR_BUFFER_SIZE=2000). If they were only slow (a checkpoint, an evaluation on one rank, uneven data),
              raise the timeout of init_process_group or let the others wait there.
    Refute    All ranks had enqueued that collective: then it is the network or a GPU, and not the program's order.
    """
    timeouts = [event for event in job.events if event.kind == "watchdog.timeout"]
    if timeouts:
        yield _finding(job, timeouts)
    elif any(event.kind.startswith(OF_PROGRAM) for event in job.events):
        yield Clear(subject_of(job))
    else:
        yield CannotTell(
            subject_of(job), "no line of PyTorch, its launcher or Slurm is in these logs, where a timeout would stand"
        )


def _finding(job: Job, timeouts: Sequence[LogEvent]) -> Finding:
    first = min(timeouts, key=lambda event: (event.order[0], _sequence(event), event.source, event.line))
    same = [
        event
        for event in timeouts
        if (_sequence(event), event.fields.get("op")) == (_sequence(first), first.fields.get("op"))
    ]
    waited = sorted({rank for event in same if (rank := rank_of(event)) is not None})
    last = last_by_rank(job.events)
    not_called = sorted(rank for rank, each in last.items() if each.enqueued < _sequence(first) and rank not in waited)
    op, after_ms = first.fields.get("op"), first.fields.get("ran_ms") or first.fields.get("timeout_ms") or 0
    late = rank_list(not_called)
    suspects = (
        f" {late} had not called it: the last enqueued there was "
        f"{', '.join(str(last[rank].enqueued) for rank in not_called[:4])}."
        if not_called
        else " Which rank did not come is not in these lines: those that complain are those that waited."
    )
    who = rank_list(waited) if waited else "Ranks"
    return Finding(
        title=f"{who} waited {units.time(after_ms * 1e6)} in {op} {_sequence(first)}"
        + (f"; {late} had not called it" if not_called else ""),
        claim=f"The first collective that timed out is {op} with sequence number {_sequence(first)}, on "
        f"{rank_list(waited) if waited else 'ranks that are not named'}.{suspects}",
        subject=subject_of(job, not_called or waited),
        level="critical",
        confidence="high" if not_called else "medium",
        counterfactual="The job would have gone on had all ranks come.",
        evidence=list(_evidence(first, timeouts, waited, not_called, last)),
        refute="A flight-recorder dump shows that all ranks had enqueued it.",
        next=[
            "Look at what kept the rank that did not come: diag hang DUMPS, with TORCH_FR_BUFFER_SIZE=2000 set.",
            *([f"Look at the log of {late} just before that."] if not_called else []),
            "Look for the first other error: an exception or a signal of another rank comes before the timeouts.",
        ],
    )  # fmt: skip


def _evidence(
    first: LogEvent,
    timeouts: Sequence[LogEvent],
    waited: Sequence[int],
    not_called: Sequence[int],
    last: Mapping[int, Last],
) -> Iterator[Evidence]:
    rows = lines_of("watchdog.timeout")
    yield Evidence("sequence number", _sequence(first), "count", "of the first that timed out", rows)
    yield Evidence("ranks that waited", len(waited), "count", rank_list(waited) if waited else "none is named", rows)
    yield Evidence("timeouts", sum(event.times for event in timeouts), "count", "lines of all collectives", rows)
    for rank in not_called[:8]:
        told = f"completed {last[rank].completed}"
        yield Evidence(f"last enqueued by rank {rank}", last[rank].enqueued, "count", told, lines_of("watchdog.last"))
    numel = first.fields.get("numel_in")
    if isinstance(numel, int):
        yield Evidence("elements", numel, "count", "of its input", rows)


def rank_of(event: LogEvent) -> int | None:
    """In the job where a label says it; else the one in its group, which in the group of all ranks is the same."""
    if event.rank is not None:
        return event.rank
    rank = event.fields.get("group_rank")
    return rank if isinstance(rank, int) else None


def _sequence(event: LogEvent) -> int:
    number = event.fields.get("sequence")
    return number if isinstance(number, int) else 0


def last_by_rank(events: Sequence[LogEvent]) -> Mapping[int, Last]:
    """Of the group that most ranks speak of: numbers of different groups say nothing of each other."""
    by_group: defaultdict[object, dict[int, Last]] = defaultdict(dict)
    for event in events:
        rank, said = rank_of(event), event.fields
        if event.kind == "watchdog.last" and rank is not None and isinstance(said.get("enqueued"), int):
            group = said.get("description") or said.get("group")
            completed = said.get("completed")
            by_group[group][rank] = Last(said["enqueued"], completed if isinstance(completed, int) else -1)
    return max(by_group.values(), key=len, default={})
