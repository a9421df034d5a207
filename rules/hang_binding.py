"""Why a job stands still: which device its ranks took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.model.rank_lists import ranks as rank_list
from diag.ranks.device_binding import Binding, Wrong, bindings, told
from diag.ranks.job import Job
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Severity
from diag.rules.hang_words import who
from diag.rules.job_logs import NO_NCCL, lines_of, subject_of
from diag.rules.thresholds import Limits

BIND = "Bind each process by its local rank: torch.cuda.set_device(int(os.environ['LOCAL_RANK']))."

LEVELS: Mapping[Wrong, Severity] = {"shared": "critical", "not there": "critical", "by global rank": "info"}


@job_rule("hang.binding", needs=("log_event",))
def binding(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks took a device that is not theirs.

    Asks      Is the device of each rank that of its local rank?
    Decides   By lines of NCCL (`rank R nranks N cudaDev D busId B`) and by exceptions. Several ranks of a communicator
              on one bus id of a host, or NCCL's `Duplicate GPU detected`: they share a device, which NCCL refuses.
              CUDA's `invalid device ordinal`: a rank asked for a device that its host does not have, as one that is
              bound by its rank in the job does on every host but the first. On a host without rank 0 each rank took
              the device of its number in the job: bound by it, if hosts are machines; the job may run well so. Clear:
              all ranks of the largest communicator say which device they took.
    Matters   Ranks that wait for one that failed at its device wait in the rendezvous or in their first collective.
    Do        Bind by local rank, or let the launcher show each process one device (CUDA_VISIBLE_DEVICES).
    Refute    Shared or not there: print torch.cuda.current_device() and device_count() on these ranks, and they differ
              from what the line says. By number in the job: the hosts are containers of one machine.
    """
    found = bindings(job.events)
    n_told, n_ranks = told(job.events)
    yield from (_finding(job, each) for each in found)
    if found:
        return
    if n_ranks and n_told == n_ranks:
        yield Clear(subject_of(job))
    else:
        because = f"{n_told} of {n_ranks} ranks say which device they took" if n_ranks else NO_NCCL
        yield CannotTell(subject_of(job), because)


def _finding(job: Job, each: Binding) -> Finding:
    line = each.event.text
    return Finding(
        title=_title(each),
        claim=f"{_why(each)} The line that shows it: {line}",
        subject=subject_of(job, each.ranks),
        level=LEVELS[each.wrong],
        confidence="low" if each.wrong == "by global rank" else "high",
        counterfactual="Each rank would have a device of its own.",
        evidence=[Evidence("line", line, "text", "of the log", lines_of(each.event.kind))],
        refute="The hosts are containers of one machine, whose devices all of them see."
        if each.wrong == "by global rank"
        else "torch.cuda.current_device() and device_count(), printed on these ranks, say otherwise.",
        next=[BIND],
    )


def _title(each: Binding) -> str:
    ranks = who(each.ranks) if each.ranks else "Ranks that are not named"
    on = f" of host {each.host}" if each.host else ""
    match each.wrong:
        case "shared":
            return f"{ranks}: more than one rank on one device{on}"
        case "not there":
            return f"{ranks}: a device that {'the host' if not each.host else f'host {each.host}'} does not have"
        case "by global rank":
            return f"{ranks}{on}: devices by rank in the job instead of local rank"


def _why(each: Binding) -> str:
    match each.wrong:
        case "shared":
            return "NCCL makes no communicator with two ranks on one device."
        case "not there":
            return "A rank that is bound by its rank in the job finds no such device on any host but the first."
        case "by global rank":
            return f"Each of {rank_list(each.ranks)} took the device of its own number, on a host without rank 0."
