"""A fault of a job that stands still, in words and figures."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from diag.model import units
from diag.model.rank_lists import ranks as rank_list
from diag.ranks.hang import Call, Cause, Fault, HangAnalysis
from diag.ranks.job import Job
from diag.rules import hang_devices
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits

MOST_SHOWN = 8

RECORDERS = ("process_group", "recorder_entry")
"""What a source holds that is a dump of a flight recorder."""

REFUTES: Mapping[Cause, str] = {
    Cause.HOST: "A second dump of these ranks, a minute later, shows the call.",
    Cause.DEVICE: "A second dump of these ranks, a minute later, shows these calls completed: then this one was only "
    "taken earlier than that of the others.",
    Cause.CALL: "The program means these ranks to call different things in groups of their own.",
    Cause.TENSORS: "The sizes are meant to differ and the collective allows it.",
    Cause.CYCLE: "A second dump, a minute later, shows one of these calls completed.",
    Cause.UNFINISHED: "A second dump, a minute later, shows it completed: then it was only running.",
    Cause.DEAD: "The process of the rank is still there, on its host.",
    Cause.RESTARTED: "The other ranks were restarted as well, after their dumps: then dumps of one moment show no such "
    "thing.",
    Cause.TRANSPORT: "nccl-tests between the same hosts runs without an error, again and again.",
    Cause.GROUPS: "The groups of that name are meant to be different ones, made by parts of the job apart.",
    Cause.INIT: "The ranks belong to two jobs, whose dumps lie in one folder.",
    Cause.LATE: "A third dump shows the same calls as the second one.",
}

NEXT: Mapping[Cause, str] = {
    Cause.HOST: "See where their host is: py-spy dump --pid PID on their hosts, then diag hang on dumps and stacks.",
    Cause.DEVICE: "Look for the device's error: dmesg | grep -i xid, and nvidia-smi -q on the hosts of these ranks.",
    Cause.CALL: "Find where the programs of these ranks part: a condition on the rank, the data or an error.",
    Cause.TENSORS: "Print the shapes and dtypes before that call on these ranks and one other.",
    Cause.CYCLE: "Give both directions one order (batch_isend_irecv), or let one side receive first.",
    Cause.UNFINISHED: "See whether the devices compute or poll: nvidia-smi dmon -s pu on the hosts of these ranks.",
    Cause.DEAD: "Read the end of its log, and of the kernel's: dmesg | grep -i -e oom -e killed -e xid",
    Cause.RESTARTED: "Restart the job as a whole: communicators do not take a new process in. Then read the end of the "
    "log of the earlier process.",
    Cause.TRANSPORT: "Run nccl-tests on the same hosts: all_reduce_perf -b 8 -e 1G -f 2 -g GPUS",
    Cause.GROUPS: "Let every rank call new_group for every group, in the same order, with the same list of ranks.",
    Cause.INIT: "Compare WORLD_SIZE, RANK and MASTER_ADDR of these ranks with those of the others.",
    Cause.LATE: "See what these ranks do before that call: nsys profile on one of them, or py-spy record --pid PID",
}

EVERY_SHAPE = "Print the shapes and dtypes of that step's collectives on every rank, and compare them."
"""Where it is not known which call it was."""

NO_OWN_FRAME = "See what native code these ranks are in: py-spy dump --native --pid PID on their hosts."
"""Where their stacks are known, and none has a line of the program's own."""


def answers(
    job: Job, causes: Collection[Cause], limits: Limits | None = None, *, needs_all: bool = True
) -> Iterator[Answer]:
    """A finding for each fault of one of these causes; else clear, where no absent dump could show one.

    `limits`: where it is also told what the devices do.
    """
    hang = job.hang
    about = Subject(subject_source(job))
    found = [fault for fault in hang.faults if fault.cause in causes]
    yield from (finding_of(job, fault, limits) for fault in found)
    if not found:
        if not hang.dumped:
            yield CannotTell(about, NO_RANKS if job.dumps.unranked else NO_DUMPS)
        elif needs_all and hang.is_still and hang.absent:
            yield CannotTell(about, missing_dumps(hang))
        elif needs_all and not any((row.outstanding is not None and row.oldest) or row.outstanding == 0
                                   for row in hang.ranks):  # fmt: skip
            yield CannotTell(about, NO_CALLS)
        else:
            yield Clear(about)


NO_DUMPS = "no rank left a dump of its flight recorder: set TORCH_FR_BUFFER_SIZE=2000 before the job starts"
NO_RANKS = "no dump tells of which rank it is: name each file after its rank, as _dump_3"
NO_CALLS = "no dump holds calls"


def subject_source(job: Job) -> int:
    dumps = job.dumps.by_rank
    return dumps[min(dumps)].source if dumps else job.sources[0].id


def _source_of(job: Job, fault: Fault) -> int:
    """The dump of the first rank at fault that has one."""
    of_ranks = (job.dumps.by_rank.get(rank) for rank in fault.ranks or fault.candidates)
    return next((dump.source for dump in of_ranks if dump is not None), subject_source(job))


def missing_dumps(hang: HangAnalysis) -> str:
    deciders = sorted({rank for each in hang.undecided for rank in each.deciders}) or list(hang.absent)
    return f"ranks have no dump: any of {rank_list(deciders)} may show it"


def finding_of(job: Job, fault: Fault, limits: Limits | None = None) -> Finding:
    devices = hang_devices.devices_of(job, fault, limits) if limits is not None and job.watched else None
    of_devices = () if devices is None else hang_devices.sentences(devices)
    return Finding(
        title=title(fault),
        claim=" ".join([claim(fault), *of_devices]),
        subject=Subject(
            _source_of(job, fault), ranks=fault.ranks or fault.candidates, range=str(fault.call or "") or None
        ),
        counterfactual="The job would go on.",
        held_up=len(fault.waiting),
        level="warning" if fault.cause is Cause.LATE else "critical",
        confidence=fault.confidence,
        evidence=[*evidence(job, fault), *hang_devices.evidence(devices or ())],
        refute=REFUTES[fault.cause],
        next=list(_next(job, fault)),
    )


def _next(job: Job, fault: Fault) -> Iterator[str]:
    if fault.frame is not None:
        yield f"Look at {fault.frame.function} ({fault.frame.file}:{fault.frame.line})."
    if fault.cause is Cause.HOST and has_stacks(job, fault.ranks or fault.candidates):
        if fault.frame is None:
            yield NO_OWN_FRAME
    elif fault.cause is Cause.TENSORS and fault.call is None:
        yield EVERY_SHAPE
    else:
        yield NEXT[fault.cause]


def has_stacks(job: Job, ranks: Collection[int]) -> bool:
    """Of all of them: then there is no need to ask for any."""
    return {*ranks} <= {thread.rank for thread in job.stacks}


# ---- sentences -----------------------------------------------------------------------------------------------------


def who(ranks: Sequence[int]) -> str:
    words = rank_list(ranks)
    return words[:1].upper() + words[1:]


def title(fault: Fault) -> str:
    ranks, verb = who(fault.ranks or fault.candidates), _Verbs(len(fault.ranks or fault.candidates))
    group = f" of {fault.group}" if fault.group is not None else ""
    op = f"{fault.call.op} {fault.call.sequence}{group}" if fault.call is not None else "a call"
    match fault.cause:
        case Cause.HOST if fault.is_queue_empty:
            return f"{ranks} {verb.hold} up the job: nothing outstanding on {verb.these}: host blocked"
        case Cause.HOST:
            return f"{ranks} {verb.hold} up the job: the host has not called {op}"
        case Cause.DEVICE:
            return f"{ranks} {verb.hold} up the job: {verb.their} device or watchdog stopped"
        case Cause.CALL if fault.ranks:
            return f"{ranks} {verb.call} another collective, or in another order, than the rest of {fault.group}"
        case Cause.CALL:
            return f"{ranks} call different collectives in {fault.group}"
        case Cause.TENSORS if not fault.ranks:
            they = ranks if len(fault.candidates) > 1 else "Ranks"
            return f"{they} do not agree on the sizes of {'a collective' if fault.call is None else op}"
        case Cause.TENSORS:
            return f"{ranks} {verb.call} {op} with another shape or dtype"
        case Cause.CYCLE if not fault.by_rank:
            return f"{ranks} {verb.hold} up the job: in a send or receive that does not end"
        case Cause.CYCLE:
            return f"{ranks} wait for each other in {op}"
        case Cause.UNFINISHED:
            return f"{op} was entered by {rank_list(fault.candidates)} and finished by none"
        case Cause.DEAD:
            return f"{ranks} {verb.be} gone, and the others wait for {verb.it}"
        case Cause.RESTARTED:
            return f"{ranks} {verb.be} not the process any more that the others wait for: restarted alone"
        case Cause.TRANSPORT:
            return f"{ranks} {verb.hold} up the job: {verb.their} link failed"
        case Cause.GROUPS if not fault.differing:
            return f"{ranks} {verb.wait} in new_group: a member has not called it, or with another list of ranks"
        case Cause.INIT if not fault.differing:
            return (
                f"{ranks} {verb.wait} in init_process_group: a rank has not called it, or with another size or address"
            )
        case Cause.GROUPS:
            return f"{ranks} {verb.take} {fault.group} for a group of other ranks"
        case Cause.INIT:
            return f"{ranks} {verb.take} the job for one of another size"
        case Cause.LATE:
            return f"{ranks} {verb.be} late but alive"


class _Verbs:
    """Words that depend on how many ranks there are."""

    def __init__(self, n: int) -> None:
        s, is_one = ("s", True) if n == 1 else ("", False)
        self.hold, self.call, self.take = f"hold{s}", f"call{s}", f"take{s}"
        self.be, self.have = ("is", "has") if is_one else ("are", "have")
        self.wait = f"wait{s}"
        self.it, self.these, self.their = ("it", "this rank", "its") if is_one else ("them", "these ranks", "their")


def claim(fault: Fault) -> str:
    return " ".join(filter(None, (_what(fault), _waits(fault), _elsewhere(fault), _note(fault))))


def _what(fault: Fault) -> str:
    ranks, verb = who(fault.ranks or fault.candidates), _Verbs(len(fault.ranks or fault.candidates))
    match fault.cause:
        case Cause.HOST | Cause.LATE:
            empty = f" Nothing is outstanding on {verb.these}: the host is blocked." if fault.is_queue_empty else ""
            went = f" Between two dumps {verb.these} went on." if fault.cause is Cause.LATE else ""
            return f"{ranks} {verb.have} not called {_quoted(fault.call)}, which other members wait in.{empty}{went}"
        case Cause.DEVICE | Cause.TRANSPORT:
            return (
                f"{ranks} called {_quoted(fault.call)} and did not complete it, while {rank_list(fault.completed_by)} "
                "completed it or what comes after it, which no rank can before all have entered it."
            )
        case Cause.CALL | Cause.TENSORS if fault.differing:
            sides = "; ".join(f"{rank_list(each.ranks)} {each.what}" for each in fault.differing[:MOST_SHOWN])
            vote = "" if fault.ranks and len(fault.ranks) < sum(len(each.ranks) for each in fault.differing) else (
                " No side has a majority."
            )  # fmt: skip
            return f"At place {fault.sequence} of {fault.group}: {sides}.{vote}"
        case Cause.CYCLE if not fault.by_rank:
            return (
                f"{ranks} {verb.have} not called {_quoted(fault.call)}, which other members wait in, and "
                f"{verb.be} in a send or receive, which this recorder does not record: the other half is missing."
            )
        case Cause.CALL | Cause.CYCLE:
            calls = "; ".join(f"rank {rank}: {call}" for rank, call in [*fault.by_rank.items()][:MOST_SHOWN])
            return f"{who(fault.candidates)} wait for each other in a circle. What each is in: {calls or 'not known'}."
        case Cause.UNFINISHED:
            return (
                f"All of {rank_list(fault.candidates)} entered {_quoted(fault.call)}; nothing that is recorded holds "
                "them up before it. One of their devices, or what is between them, holds it, or it is still running."
            )
        case Cause.DEAD:
            return f"{ranks} ended."
        case Cause.RESTARTED:
            return f"{ranks} began anew, while the others wait in {_quoted(fault.call)}."
        case Cause.GROUPS | Cause.INIT if not fault.differing:
            return f"{ranks} {verb.be} in a call that ends when all members have made it, with the same arguments."
        case Cause.GROUPS | Cause.INIT:
            return "; ".join(f"{rank_list(each.ranks)}: {each.what}" for each in fault.differing) + "."
    return ""


def _quoted(call: Call | None) -> str:
    return "a call" if call is None else f"{call}" + (f" ({call.input_sizes} {call.dtypes})" if call.dtypes else "")


def _waits(fault: Fault) -> str:
    return f"{units.count(len(fault.waiting), 'rank')} wait for that." if len(fault.waiting) > 1 else ""


def _elsewhere(fault: Fault) -> str:
    return " ".join(f"Rank {each.rank}: {each.says}." for each in fault.where[:MOST_SHOWN])


def _note(fault: Fault) -> str:
    return f"{fault.note[:1].upper()}{fault.note[1:]}." if fault.note else ""


# ---- figures -------------------------------------------------------------------------------------------------------

CALLS = "SELECT * FROM recorder_entry WHERE source_id = {source} AND id = {entry}"
GROUPS = (
    "SELECT s.rank, g.last_enqueued, g.last_completed FROM process_group g JOIN source s ON s.id = g.source_id "
    "WHERE g.source_id IN ({sources}) ORDER BY s.rank, g.id"
)
OUTSTANDING = (
    "SELECT s.rank, COUNT(e.id) FROM source s LEFT JOIN recorder_entry e ON e.source_id = s.id AND "
    "NOT COALESCE(e.is_retired, 0) WHERE s.id IN ({sources}) GROUP BY s.rank"
)


def evidence(job: Job, fault: Fault) -> Iterator[Evidence]:
    """All ids in the SQL are integers of the case."""
    dumps = job.dumps.by_rank
    ranks = fault.ranks or fault.candidates
    sources = ", ".join(str(dumps[rank].source) for rank in ranks[:MOST_SHOWN] if rank in dumps)
    if fault.call is not None:
        call = fault.call
        sql = CALLS.format(source=call.source, entry=call.entry)
        yield Evidence("call", str(call), "text", f"oldest that rank {call.rank} has not completed", sql)
        yield Evidence("sequence number", call.sequence, "count", "of the call in its group", sql)
        yield Evidence("tensors", f"{call.input_sizes} {call.dtypes}", "text", "as recorded", sql)
    elif fault.cause is Cause.TENSORS:
        n = sum(event.kind == "gloo.size" for event in job.events)
        sql = "SELECT line, text, fields FROM log_event WHERE kind = 'gloo.size'"
        yield Evidence("aborts by Gloo", n, "count", "lines of the logs", sql)
        return
    if sources:
        outstanding = sum(dumps[rank].standing.outstanding for rank in ranks if rank in dumps)
        sql = OUTSTANDING.format(sources=sources)
        yield Evidence("outstanding calls", outstanding, "count", "on the ranks named, not completed", sql)
        sql = GROUPS.format(sources=sources)
        yield Evidence("groups", len(dumps[next(r for r in ranks if r in dumps)].groups), "count",
                       "of the first of them, with what it enqueued and completed last", sql)  # fmt: skip
    for each in fault.differing[:MOST_SHOWN]:
        yield Evidence(rank_list(each.ranks), each.what, "text", "what these called or said", None)
    yield Evidence("waiting ranks", len(fault.waiting), "count", "whose chain of waits ends there", None)
    for where in fault.where[:MOST_SHOWN]:
        yield Evidence(f"rank {where.rank}", where.says, "text", "stacks, heartbeats or logs", where.sql)
