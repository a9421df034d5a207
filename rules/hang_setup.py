"""Why a job stands still: how it was set up."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.rank_lists import ranks as rank_list
from diag.ranks.hang import Cause
from diag.ranks.job import Job
from diag.ranks.timeouts import slowest
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.hang_words import NO_RANKS, RECORDERS, finding_of, subject_source
from diag.rules.thresholds import Limits


@job_rule("hang.groups", needs=(*RECORDERS, "thread_stack"))
def groups(job: Job, limits: Limits) -> Iterator[Answer]:
    """Members of a group disagree on who is in it.

    Asks      Do all ranks that a group lists know that group, with the same ranks?
    Decides   A group of a name and description lists a rank that has no group of these ranks, and has one of that name
              and description with others. The same name alone says nothing: it may count the groups that one rank
              made. The list that most ranks have is right; with no majority all are named. Where stacks stand in
              new_group, which waits for all members, these ranks are listed: whose list is wrong no stack tells.
    Matters   Ranks wait in a group for members that wait in another one.
    Do        Let every rank call new_group for every group, in the same order and with the same list.
    Refute    The groups were made by parts of the job that have nothing to do with each other.
    """
    about = Subject(subject_source(job))
    found = [finding_of(job, fault) for fault in job.hang.faults if fault.cause is Cause.GROUPS]
    yield from found
    if found:
        return
    if not job.hang.dumped:
        yield CannotTell(about, NO_RANKS)
    elif not any(group.label.ranks for dump in job.dumps.by_rank.values() for group in dump.groups):
        yield CannotTell(about, "the dumps do not say which ranks a group has, as those of Gloo do not")
    else:
        yield Clear(about)


@job_rule("hang.init", needs=(*RECORDERS, "thread_stack", "heartbeat"))
def init(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks disagree on how many there are.

    Asks      Do all ranks take the job for one of the same size?
    Decides   By the number of ranks in each rank's default group, or that its heartbeat says it was told. The size that
              most ranks know is right; with no majority all are named. Where all say the same, and stacks stand in
              init_process_group, these ranks are listed.
    Matters   The rendezvous waits for ranks that never come, or leaves some out.
    Do        Compare WORLD_SIZE, RANK, MASTER_ADDR and the launcher's arguments.
    Refute    The dumps are of two jobs.
    """
    about = Subject(subject_source(job))
    found = [finding_of(job, fault) for fault in job.hang.faults if fault.cause is Cause.INIT]
    yield from found
    if found:
        return
    if job.dumps.world_sizes or any(beat.world_size for beat in job.heartbeats):
        yield Clear(about)
    else:
        yield CannotTell(about, "no dump or heartbeat says how many ranks the job has")


@job_rule("hang.timeout", needs=RECORDERS)
def timeout(job: Job, limits: Limits) -> Iterator[Answer]:
    """The time-out is shorter than what calls ordinarily take.

    Asks      Did calls that completed take so long that their time-out nearly ended them?
    Decides   time from call to completion of the slowest completed call / its time-out; fires at `share`. Only entries
              with a time of completion count, which NCCL's watchdog notes and Gloo does not.
    Matters   A rank that loads a checkpoint or compiles is late and not stuck; a short time-out kills the job for it.
    Do        Raise `timeout` of init_process_group or new_group, or let the late phase end before the next collective.
    Refute    Nothing but the failing call comes near the time-out in other runs.
    """
    about = Subject(subject_source(job))
    found = slowest(job.dumps)
    if found is None:
        yield CannotTell(about, "no call has both a time of completion and a time-out")
        return
    share = found.took_ns / found.timeout_ns
    if share < limits["share"]:
        yield Clear(about)
        return
    sql = f"SELECT created_ns, completed_ns, timeout_ns FROM recorder_entry WHERE id = {found.call.entry}"
    yield Finding(
        title=f"The time-out of {units.time(found.timeout_ns)} is close to what calls take",
        claim=f"{found.call} of {rank_list([found.call.rank])} took {units.time(found.took_ns)} and completed: "
        f"{units.share(share)} of its time-out.",
        subject=Subject(about.source, ranks=(found.call.rank,)),
        level="warning",
        counterfactual="A late rank would not end the job.",
        evidence=[
            Evidence("slowest call", found.took_ns, "ns", "completed - called", sql),
            Evidence("time-out", found.timeout_ns, "ns", "of its group", sql),
        ],
        refute="Nothing but this call comes near the time-out in other runs.",
        next=["Raise `timeout` of init_process_group or new_group, or end the late phase before the next collective."],
    )
