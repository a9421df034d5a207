"""What NCCL's RAS says of a running job: ranks that are missing, and ranks that are behind."""

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
from diag.rules.job_logs import lines_of, named, subject_of
from diag.rules.thresholds import Limits

KINDS = ("nccl.ras.missing", "nccl.ras.process", "nccl.ras.dead", "nccl.ras.error", "nccl.ras.count", "nccl.ras.status")


@dataclass(frozen=True)
class Behind:
    """Ranks of a communicator that have launched fewer of an operation than others of it."""

    communicator: str
    op: str | None
    least: int
    most: int
    ranks: tuple[int, ...]  # in the communicator, of those that are named
    n_ranks: int


@job_rule("nccl.ras", needs=("log_event",))
def ras(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks are missing from a communicator, or behind in it.

    Asks      Does every rank of every communicator answer NCCL's RAS, without an error, and has launched as many
              operations as the others?
    Decides   Fires on ranks that RAS calls missing or dead, on errors of ranks, and on ranks that have launched fewer
              of an operation than the most of their communicator. A difference in one look alone is information, for a
              running job is never even; the same counts in two looks mean that it stands still, and that is critical.
    Matters   A rank that is behind has not called the collective in which the others wait: it, and not they, is what to
              look at. A rank that does not answer is gone, or its host is.
    Do        Look again a few seconds later (`ncclras -v`). Of ranks that stay behind take the stack (py-spy dump
              --pid); of those that are missing look whether the process lives, and at the kernel's log of its host.
    Refute    A second look shows that the counts went on.
    """
    events = [event for event in job.events if event.kind.startswith("nccl.ras.")]
    if not events:
        yield CannotTell(
            subject_of(job), "no status of NCCL's RAS is at hand; while the job runs: ncclras -v > ras.txt"
        )
        return
    found = [event for event in events if event.kind in KINDS]
    gone = [event for event in found if event.kind in ("nccl.ras.missing", "nccl.ras.process", "nccl.ras.dead")]
    errors = [event for event in found if event.kind == "nccl.ras.error"]
    behind = behind_of(found)
    if not gone and not errors and not behind:
        yield Clear(subject_of(job))
        return
    yield _finding(job, gone, errors, behind, _stands_still(job))


def behind_of(events: Sequence[LogEvent]) -> Sequence[Behind]:
    counts: defaultdict[tuple[int, str, str | None], list[LogEvent]] = defaultdict(list)
    for event in events:
        if event.kind == "nccl.ras.count" and isinstance(event.fields.get("operation"), int):
            counts[event.source, str(event.communicator), event.fields.get("op")].append(event)
    found: dict[Behind, None] = {}
    for (_, communicator, op), group in counts.items():
        most = max(event.fields["operation"] for event in group)
        late = [event for event in group if event.fields["operation"] < most]
        if late:
            ranks = sorted({rank for event in late for rank in _members(event)})
            n_ranks = sum(int(event.fields.get("n_ranks") or len(_members(event)) or 1) for event in late)
            least = min(event.fields["operation"] for event in late)
            found[Behind(communicator, op, least, most, tuple(ranks), n_ranks)] = None
    return list(found)


def _members(event: LogEvent) -> Sequence[int]:
    members = event.fields.get("members", ())
    return [each for each in members if isinstance(each, int)] if isinstance(members, list) else ()


def _stands_still(job: Job) -> bool:
    """Whether two looks found the same counts in some communicator."""
    looks: defaultdict[tuple[object, ...], set[int]] = defaultdict(set)
    for event in job.events:
        if event.kind == "nccl.ras.count":
            key = (event.communicator, event.fields.get("op"), event.fields.get("operation"), tuple(_members(event)))
            looks[key].add(event.source)
    return any(len(sources) > 1 for sources in looks.values())


def _finding(
    job: Job, gone: Sequence[LogEvent], errors: Sequence[LogEvent], behind: Sequence[Behind], stands_still: bool
) -> Finding:
    ranks = sorted({int(event.fields["member"]) for event in gone if isinstance(event.fields.get("member"), int)})
    late = max(behind, key=lambda each: (each.most - each.least, each.communicator), default=None)
    said = [*_gone(gone, ranks), *_errors(errors), *([_late(late)] if late else [])]
    is_alarming = bool(gone or errors) or stands_still
    return Finding(
        title=f"NCCL's RAS: {said[0]}",
        claim=f"{'; '.join(said)}." + ("" if is_alarming else " One look alone: a running job is never even."),
        subject=subject_of(job, ranks or (late.ranks if late else ())),
        level="critical" if is_alarming else "info",
        confidence="high" if is_alarming else "low",
        counterfactual="With these ranks in it the collective that the others wait in would complete.",
        evidence=[
            *(Evidence("missing or dead", _place(each), "text", each.text, lines_of(each.kind)) for each in gone[:8]),
            *(Evidence("error", _error(each), "text", each.text, lines_of(each.kind)) for each in errors[:4]),
            *(
                Evidence(f"behind in {each.op or 'operations'} of {each.communicator}", each.most - each.least, "count",
                         f"{each.most} - {each.least} launched; {_who(each)}", lines_of("nccl.ras.count"))
                for each in behind[:8]
            ),
        ],
        refute="A second look a few seconds later shows other counts, and no rank missing.",
        next=[
            "Look again: ncclras -v, twice, some seconds apart.",
            "Of the ranks that are behind: py-spy dump --pid PID, on their hosts.",
        ],
    )  # fmt: skip


def _gone(events: Sequence[LogEvent], ranks: Sequence[int]) -> Iterator[str]:
    if ranks:
        hosts = sorted({event.host for event in events if event.host})
        yield f"{rank_list(ranks)} {'do' if len(ranks) > 1 else 'does'} not answer" + (
            f" ({named(hosts, 'host')})" if hosts else ""
        )
    elif events:
        do_not = "do not" if len(events) > 1 else "does not"
        yield f"{units.count(len(events), 'process')} {do_not} answer ({_place(events[0])})"


def _errors(events: Sequence[LogEvent]) -> Iterator[str]:
    for event in events[:2]:
        members = _members(event)
        yield f"{rank_list(members) if members else 'ranks'} reported {_error(event)}"


def _error(event: LogEvent) -> str:
    return str(event.fields.get("error"))


def _late(of: Behind) -> str:
    what = f"{of.op} " if of.op else ""
    is_are = "are" if of.n_ranks > 1 else "is"
    return (
        f"{_who(of)} {is_are} behind in {of.communicator}: {what}operation {of.least} where others launched {of.most}"
    )


def _who(of: Behind) -> str:
    return rank_list(of.ranks) if len(of.ranks) == of.n_ranks else units.count(of.n_ranks, "rank")


def _place(event: LogEvent) -> str:
    known: Mapping[str, object] = {
        "rank": event.fields.get("member"),
        "process": event.pid,
        "host": event.host,
        "GPU": event.device,
    }
    said = ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
    return said or str(event.fields.get("address", "a peer"))
