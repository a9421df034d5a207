"""Communication that nothing hides, over the ranks of a job: how much of it is waiting, how much is transfer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.ranks.job import Job
from diag.rules import rank_subjects as ranks_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits


@job_rule("comm.exposed", needs=("collective", "kernel", "annotation"))
def exposed(job: Job, limits: Limits) -> Iterator[Answer]:
    """Exposed communication of a job, parted into waiting and transfer.

    Asks      Of the communication that no kernel hides, how much do ranks wait for each other, and how much does the
              network take?
    Decides   exposed = communication - other kernels, per rank (as `overlap.communication` has it for a device). Of
              each matched collective the shortest duration over the ranks is transfer, and comes last; what a rank
              takes beyond it is waiting, and comes first. Fires when the mean over ranks of exposed transfer is `share`
              of the window. Waiting is what `ranks.straggler` and `ranks.skew` speak of.
    Matters   Only transfer gets shorter with a faster network or less to send; waiting does not.
    Do        Start it earlier and overlap it (DDP's buckets, FSDP's prefetch), send less (bf16, accumulation), place
              groups that talk most on the fastest links.
    Refute    Run the same step without communication (`no_sync()`): if it takes as long, it was hidden.
    """
    side = job.side_by_side
    if not side.is_job:
        return
    subject = ranks_of.whole_job(side)
    if not side.matches.groups:
        yield CannotTell(
            subject, "which calls of the ranks are one collective, so waiting cannot be told from transfer"
        )
        return
    windows = [ranks_of.window_ns(side, rank) for rank in range(len(side.summaries))]
    parts = [
        (ranks_of.within(side, rank, summary.exposed & waiting), ranks_of.within(side, rank, summary.exposed - waiting))
        for rank, (summary, waiting) in enumerate(zip(side.summaries, side.waiting, strict=True))
    ]
    waiting_ns = np.array([waits.measure_ns for waits, _ in parts])
    transfer_ns = np.array([moves.measure_ns for _, moves in parts])
    share = float(np.mean(transfer_ns / windows))
    if share < limits["share"]:
        yield Clear(subject)
        return
    usual = int(np.argsort(transfer_ns, kind="stable")[(len(transfer_ns) - 1) // 2])
    won_ns = int(transfer_ns[usual])
    waits = float(np.mean(waiting_ns / windows))
    per_step = f" In a step that is {units.time(won_ns / side.n_steps)}." if side.n_steps else ""
    yield Finding(
        title=f"{units.share(share)} of the time the network is waited for, {units.share(waits)} other ranks",
        claim=f"In the mean over {units.count(len(parts), 'rank')}, communication that nothing hides takes "
        f"{units.share(share + waits)} of the window: {units.share(share)} transfer, {units.share(waits)} waiting for "
        f"other ranks.{per_step}{ranks_of.unseen(side)}",
        subject=ranks_of.subject_of(side, range(len(parts)), usual),
        share=share,
        recoverable_ns=won_ns,
        confidence="medium",
        counterfactual=f"Hidden or free, transfer would give back {units.time(won_ns)} at most (median rank).",
        evidence=[
            Evidence("exposed transfer", won_ns, "ns", "exposed communication - waiting, of the median rank"),
            Evidence("exposed waiting", int(np.median(waiting_ns)), "ns", "exposed communication and waiting, median"),
            Evidence("matched collectives", side.matches.n_instances, "count", "recorded by at least two ranks"),
        ],
        refute="Run the same step without communication (`no_sync()`): if it takes as long, it was hidden.",
        next=["See which collectives take longest: the table `collectives` of diag report --format json"],
        extent=parts[usual][1],
    )
