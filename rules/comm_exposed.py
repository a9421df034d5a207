"""Communication that nothing hides, over the ranks of a job: how much of it is waiting, how much is transfer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.ranks.job import Job
from diag.ranks.side_by_side import SideBySide
from diag.rules import rank_subjects as ranks_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals

Times = NDArray[np.int64]


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
    found = _parted(side)
    yield _finding(side, found) if found.transfer_share >= limits["share"] else Clear(subject)


@dataclass(frozen=True)
class _Parted:
    """Exposed communication of each rank, parted."""

    window_ns: Times
    waiting: Sequence[Intervals]
    transfer: Sequence[Intervals]

    @property
    def waiting_ns(self) -> Times:
        return np.array([each.measure_ns for each in self.waiting])

    @property
    def transfer_ns(self) -> Times:
        return np.array([each.measure_ns for each in self.transfer])

    @property
    def waiting_share(self) -> float:
        return float(np.mean(self.waiting_ns / self.window_ns))

    @property
    def transfer_share(self) -> float:
        return float(np.mean(self.transfer_ns / self.window_ns))


def _parted(side: SideBySide) -> _Parted:
    ranks = list(enumerate(zip(side.summaries, side.waiting, strict=True)))
    return _Parted(
        window_ns=np.array([ranks_of.window_ns(side, rank) for rank, _ in ranks]),
        waiting=[ranks_of.within(side, rank, summary.exposed & waiting) for rank, (summary, waiting) in ranks],
        transfer=[ranks_of.within(side, rank, summary.exposed - waiting) for rank, (summary, waiting) in ranks],
    )


def _finding(side: SideBySide, found: _Parted) -> Finding:
    share, waits, transfer_ns = found.transfer_share, found.waiting_share, found.transfer_ns
    n_ranks = len(transfer_ns)
    median_rank = int(np.argsort(transfer_ns, kind="stable")[(n_ranks - 1) // 2])
    won_ns, waiting_ns = int(transfer_ns[median_rank]), int(np.median(found.waiting_ns))
    per_step = f" In a step that is {units.time(won_ns / side.n_steps)}." if side.n_steps else ""
    return Finding(
        title=f"{units.share(share)} of the time the network is waited for, {units.share(waits)} other ranks",
        claim=f"In the mean over {units.count(n_ranks, 'rank')}, communication that nothing hides takes "
        f"{units.share(share + waits)} of the window: {units.share(share)} transfer, {units.share(waits)} waiting for "
        f"other ranks.{per_step}{ranks_of.unseen(side)}",
        subject=ranks_of.subject_of(side, range(n_ranks), median_rank),
        share=share,
        recoverable_ns=won_ns,
        confidence="medium",
        counterfactual=f"Hidden or free, transfer would give back {units.time(won_ns)} at most (median rank).",
        evidence=[
            Evidence("exposed transfer", won_ns, "ns", "exposed communication - waiting, of the median rank"),
            Evidence("exposed waiting", waiting_ns, "ns", "exposed communication and waiting, median"),
            Evidence("matched collectives", side.matches.n_instances, "count", "recorded by at least two ranks"),
        ],
        refute="Run the same step without communication (`no_sync()`): if it takes as long, it was hidden.",
        next=["See which collectives take longest: the table `collectives` of diag report --format json"],
        extent=found.transfer[median_rank],
    )
