"""Why a job stands still, by the flight recorders of its ranks: whose fault it is."""

from __future__ import annotations

from collections.abc import Iterator

from diag.ranks.hang import Cause
from diag.ranks.job import Job
from diag.rules.engine import job_rule
from diag.rules.finding import Answer
from diag.rules.hang_words import RECORDERS, answers
from diag.rules.thresholds import Limits

BLOCKED = (Cause.HOST, Cause.DEVICE, Cause.DEAD, Cause.RESTARTED, Cause.TRANSPORT, Cause.LATE)


@job_rule("hang.blocked", needs=RECORDERS)
def blocked(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks hold up the job.

    Asks      For which ranks do all the others wait?
    Decides   By the wait graph of the flight recorders (docs/hang-method.md). A rank is named when others entered a
              collective that it has not called, and it waits for nobody itself: its host is blocked. Or when it called
              a collective that no rank completes before all have entered it, and did not complete it while a peer did:
              its device or its watchdog stopped. Completions come from what the recorder retired and from the last
              completed number of each group; the recorded state alone proves nothing. A rank without a dump is a
              suspect and never named, unless a log or heartbeat says that it ended or was restarted; whom an absent
              dump might convict or free is undecided. A rank that is named was *restarted* where it is a new process
              and others are not (docs/hang-method.md says what proves that). Stacks, heartbeats and logs say what the
              host does, where there are any. Readings of NVML, where diag watch recorded them while the call was
              outstanding and a rank held its device alone, say what the device does if `agree` of them do: busy
              (`busy`) at less than `waits` of its power limit it waits in a collective, at `computes` or more it
              computes, and without any kernel and with nothing outstanding the host blocks. They name nobody.
    Matters   One rank stops all of them, and every other rank's watchdog reports a timeout of a rank that only waits.
    Do        Host blocked: look at its stack. Device stopped: look for Xid errors and replace the device.
    Refute    A second dump, a minute later, shows the call on these ranks.
    """
    yield from answers(job, BLOCKED, limits)


@job_rule("hang.mismatch", needs=(*RECORDERS, "log_event"))
def mismatch(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks call different collectives, or with different tensors.

    Asks      Do all members of a group call the same, in the same order, with tensors that fit?
    Decides   Calls are aligned by the sequence number of their group. Where members differ, the operation, or the
              number of elements or dtype of those collectives that need them equal (all-reduce, broadcast, reduce,
              reduce-scatter, all-gather), the side with most members is right: it must outnumber all others and all
              members without a dump. Two sides of equal size have no majority, and both are named. An all-to-all, a
              gather and a scatter may be uneven. The earliest place counts, for later ones follow from it. The root of
              a broadcast is not recorded. Where Gloo aborted a rank that was sent more than its tensor holds, its log
              tells that sizes differ, and not whose is wrong: nobody is named.
    Matters   NCCL does not check: the job hangs, or computes with what it never meant to add.
    Do        Find where the programs part: a condition on the rank, on data or after an error; an uneven last batch.
    Refute    The ranks are meant to differ there.
    """
    yield from answers(job, (Cause.CALL, Cause.TENSORS))


@job_rule("hang.cycle", needs=RECORDERS)
def cycle(job: Job, limits: Limits) -> Iterator[Answer]:
    """Ranks wait for each other in a circle.

    Asks      Is there a circle of ranks of which each waits for the next one?
    Decides   By the wait graph: a strongly connected component of several ranks that no edge leaves, as of two ranks
              that both receive before they send. Devices that wait for each other are a deadlock by themselves; hosts
              that have not called what the next one waits in are one as well.
    Matters   No time-out of NCCL is long enough for it.
    Do        Use batch_isend_irecv for both directions, or let one side send first.
    Refute    A second dump, a minute later, shows one of these calls completed.
    """
    yield from answers(job, (Cause.CYCLE,))


@job_rule("hang.unfinished", needs=RECORDERS)
def unfinished(job: Job, limits: Limits) -> Iterator[Answer]:
    """A collective was entered by all and finished by none.

    Asks      Is there a call that all its ranks entered, that nothing recorded holds up, and that does not complete?
    Decides   By the wait graph: a call at the head of the device of all its members. Which of them holds it the
              recorders cannot tell: a kernel before it that does not end, a device or link that failed, a different
              root, or it is only running. All are candidates and none is named. Readings of NVML (diag watch) tell
              stuck from slow as in hang.blocked.
    Matters   The ranks look alike; what differs is below the recorder.
    Do        Compare the devices: power, clocks, Xid errors, NVLink and InfiniBand counters; take stacks.
    Refute    A second dump, a minute later, shows it completed.
    """
    yield from answers(job, (Cause.UNFINISHED,), limits)
