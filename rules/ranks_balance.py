"""Work that lies unevenly on the ranks: compute, the speed of their devices, the tokens of their experts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.ranks.balance import Imbalance, Receipts, Speed, imbalance_of, receipts_of, speed_of
from diag.ranks.job import Job
from diag.ranks.rank_power import usual_of
from diag.ranks.side_by_side import SideBySide
from diag.rules import rank_subjects as ranks_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals

MOST_LISTED = 16
"""Ranks whose own figures are listed."""
NO_DEVICE = "compute per rank: a rank has no GPU work in its trace (torch.profiler with ProfilerActivity.CUDA)"


@job_rule("ranks.imbalance", needs=("kernel", "operator", "annotation"))
def imbalance(job: Job, limits: Limits) -> Iterator[Answer]:
    """Some ranks have more to compute than others.

    Asks      Do all ranks compute for as long in each step?
    Decides   Compute is the union of kernels that are no communication, on each rank in each step; steps are known by
              their place. ratio = Σ largest / Σ mean over the steps. Fires when Σ (largest - mean) is `share` of the
              window. Without steps the totals of the kernels stand for one step.
    Matters   In a synchronous job every step lasts as long as that of the rank with most work.
    Do        Give all ranks the same: sort or pack sequences by length, place layers by their time and not their
              number, spread experts, drop or pad the last batch.
    Refute    Swap the inputs of two ranks: if the load stays where it was, it is the model's placement, not the data.
    """
    side = job.side_by_side
    if not side.is_job:
        return
    subject = ranks_of.whole_job(side)
    if not all(summary.has_device for summary in side.summaries):
        yield CannotTell(subject, NO_DEVICE)
        return
    found = imbalance_of(side)
    window_ns = ranks_of.window_ns(side, found.busiest[0])
    won_ns = min(round(found.beyond_mean_ns), window_ns)
    if won_ns / window_ns < limits["share"]:
        yield Clear(subject)
    else:
        yield _uneven_compute(side, found, won_ns, window_ns)


def _uneven_compute(side: SideBySide, found: Imbalance, won_ns: int, window_ns: int) -> Finding:
    """`window_ns`: of the busiest rank."""
    busiest, in_steps = found.busiest
    n_steps = found.compute_ns.shape[1]
    per_rank = found.compute_ns.mean(axis=1)
    lightest = int(np.argmin(per_rank))
    return Finding(
        title=f"Compute is uneven: the busiest rank has {found.ratio:.2f} times the mean",
        claim=f"Over {units.count(n_steps, 'step')} the rank with most to do computes {found.ratio:.2f} times as long "
        f"as the mean of {units.count(len(side.summaries), 'rank')}. {ranks_of.names(side, [busiest]).capitalize()} is "
        f"that rank in {in_steps:,} of them ({units.share(in_steps / n_steps)}), with {units.time(per_rank[busiest])} "
        f"a step; {ranks_of.names(side, [lightest])} has {units.time(per_rank[lightest])}.{ranks_of.unseen(side)}",
        subject=ranks_of.subject_of(side, range(len(side.summaries)), busiest),
        share=won_ns / window_ns,
        recoverable_ns=won_ns,
        confidence="medium",
        counterfactual=f"Were the same work spread evenly, the steps would take {units.time(won_ns)} less at most.",
        evidence=[
            Evidence("largest over mean", f"{found.ratio:.2f}", "text", "Σ largest / Σ mean compute, over steps"),
            Evidence("beyond the mean", round(found.beyond_mean_ns), "ns", "Σ (largest - mean) over steps"),
            Evidence("busiest rank's steps", in_steps, "count", "steps in which it computes longest"),
            *(
                Evidence(
                    f"compute of {summary.label}", round(per_rank[at]), "ns", "mean over steps of |union of kernels|"
                )
                for at, summary in list(enumerate(side.summaries))[:MOST_LISTED]
            ),
        ],
        refute="Swap the inputs of two ranks: if the load stays where it was, it is the placement, not the data.",
        next=["Log the number of tokens or samples of each rank and step, and compare it with these times."],
        extent=Intervals.single(*side.span_ns(busiest)),
    )


@job_rule("ranks.slow_device", needs=("kernel", "annotation"))
def slow_device(job: Job, limits: Limits) -> Iterator[Answer]:
    """The same kernels take longer on one rank.

    Asks      Is the device of a rank slower than those of the others at the same work?
    Decides   Of kernels that every rank launched equally often, five times at least, each rank's median is held against
              the median rank's. ratio = Σ own / Σ median rank, weighted by launches. Fires for a rank whose ratio is
              `ratio` or more, with kernels that are slower there making up `slower_share` of the time: a slow device is
              slow at nearly everything, other data at some things only.
    Matters   A device that is hot, capped or shared slows every rank that waits for it.
    Do        Read its clocks and their reasons (nvidia-smi -q -d CLOCK,PERFORMANCE), temperature and power; look for
              other processes on it; swap it.
    Refute    Run one fixed kernel on each device alone (diag calibrate): if it is as fast there, it is the work.
    """
    side = job.side_by_side
    if not side.is_job:
        return
    subject = ranks_of.whole_job(side)
    if not all(summary.has_device for summary in side.summaries):
        yield CannotTell(subject, NO_DEVICE)
        return
    speed = speed_of(side.summaries)
    if speed is None:
        yield CannotTell(subject, "the ranks launched no kernel equally often, so there is nothing to compare")
        return
    is_slow = (speed.ratio >= limits["ratio"]) & (speed.slower_share >= limits["slower_share"])
    if not is_slow.any():
        yield Clear(subject)
    for rank in np.flatnonzero(is_slow).tolist():
        yield _slow(job, speed, rank)


def _slow(job: Job, speed: Speed, rank: int) -> Finding:
    side = job.side_by_side
    window_ns = ranks_of.window_ns(side, rank)
    lost_ns = min(round(speed.lost_ns(rank)), window_ns)
    ratio = float(speed.ratio[rank])
    return Finding(
        title=f"The device of {ranks_of.names(side, [rank])} takes {ratio:.2f} times as long for the same kernels",
        claim=f"Of {units.count(speed.n_kernels, 'kernel')} that all ranks launched equally often, those of "
        f"{ranks_of.names(side, [rank])} take {ratio:.2f} times as long as on the median rank; "
        f"{units.share(float(speed.slower_share[rank]))} of the time is in kernels that are slower there. "
        f"{' '.join(filter(None, (_clocks(side, rank), _power(job, side.summaries[rank].rank))))}",
        subject=ranks_of.subject_of(side, [rank]),
        share=lost_ns / window_ns,
        recoverable_ns=lost_ns,
        confidence="medium",
        counterfactual=f"As fast as the median device, it would need {units.time(lost_ns)} less at most.",
        evidence=[
            Evidence("ratio", f"{ratio:.2f}", "text", "Σ launches x own median / Σ launches x median rank's median"),
            Evidence("in slower kernels", float(speed.slower_share[rank]), "share", "of the time in shared kernels"),
            Evidence("kernels compared", speed.n_kernels, "count", "names that every rank launched equally often"),
            Evidence("lost", lost_ns, "ns", "own time in them x (1 - 1 / ratio)"),
        ],
        refute="Run one fixed kernel on each device alone (diag calibrate): if it is as fast there, it is the work.",
        next=["nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER on that host, while the job runs"],
        extent=Intervals.single(*side.span_ns(rank)),
    )


def _clocks(side: SideBySide, rank: int) -> str:
    own = side.summaries[rank].sm_clock_hz
    others = [s.sm_clock_hz for at, s in enumerate(side.summaries) if at != rank and s.sm_clock_hz is not None]
    if own is None or not others:
        return "Its clock was not sampled (nsys --gpu-metrics-devices=all would)."
    usual = float(np.median(others))
    slower = "which explains it" if usual / own > 1.02 else "which does not explain it"
    return f"Its clock was {own / 1e6:,.0f} MHz while busy, that of the others {usual / 1e6:,.0f} MHz, {slower}."


def _power(job: Job, rank: int | None) -> str:
    """Where its device was watched; else empty."""
    powers = job.powers
    if rank is None or rank not in powers or len(powers) < 2:
        return ""
    own, (capped, _) = powers[rank], usual_of(powers, rank)
    return (
        f"Power held its clocks down in {units.share(own.capped)} of the readings of its watch, at a limit of "
        f"{units.quantity(own.limit_w, 'W')}, those of the others in {units.share(capped)}."
    )


@job_rule("ranks.experts", needs=("collective",))
def experts(job: Job, limits: Limits) -> Iterator[Answer]:
    """All-to-alls bring some ranks much more than others.

    Asks      Do the all-to-alls of a group, as of expert parallelism, give every rank as much?
    Decides   Of each all-to-all whose sizes the traces hold, the bytes that each rank received. Fires when the mean
              over instances of largest / mean is `ratio`, weighted by bytes.
    Matters   The rank whose experts get most tokens computes longest, and its link carries most: all wait for both.
    Do        A load-balancing loss, a capacity factor, other placement or copies of hot experts.
    Refute    Route tokens at random: if the sizes stay uneven, it is the placement and not the router.
    """
    side = job.side_by_side
    if not side.is_job:
        return
    subject = ranks_of.whole_job(side)
    found, n_unknown = receipts_of(side.matches.groups)
    if not found:
        yield CannotTell(subject, f"how much {n_unknown:,} all-to-alls gave each rank") if n_unknown else Clear(subject)
        return
    worst = max(found, key=_weighted_ratio)
    ratio = _weighted_ratio(worst)
    if ratio < limits["ratio"]:
        yield Clear(subject)
        return
    yield _uneven_receipts(side, worst, ratio)


def _weighted_ratio(receipts: Receipts) -> float:
    weights = receipts.received_bytes.sum(axis=0)
    return float((receipts.ratio * weights).sum() / weights.sum()) if weights.sum() else 1.0


def _uneven_receipts(side: SideBySide, receipts: Receipts, ratio: float) -> Finding:
    group, at = receipts.matched, receipts.instances
    duration_ns = group.duration_ns[:, at].min(axis=0)
    excess_ns = duration_ns * (1 - 1 / np.maximum(receipts.ratio, 1))
    total = receipts.received_bytes.sum(axis=1)
    most, row = int(group.members[np.argmax(total)]), int(np.argmax(total))
    starts_ns = group.end_ns[row, at] - np.rint(excess_ns).astype(np.int64)
    extent = ranks_of.within(side, most, Intervals.union_of(starts_ns, group.end_ns[row, at]))
    window_ns = ranks_of.window_ns(side, most)
    return Finding(
        title=f"All-to-alls of {group.group.label} bring one rank {ratio:.2f} times the mean",
        claim=f"In {units.count(len(at), 'all-to-all')} the rank that received most got {ratio:.2f} times the mean. "
        f"{ranks_of.names(side, [most]).capitalize()} received most in all: {units.size(float(total.max()))} against a "
        f"mean of {units.size(float(total.mean()))}.{ranks_of.unseen(side)}",
        subject=ranks_of.subject_of(side, group.members.tolist(), most),
        share=extent.measure_ns / window_ns,
        recoverable_ns=extent.measure_ns,
        confidence="medium",
        counterfactual=f"Were the sizes equal, the exchanges would take {units.time(extent.measure_ns)} less at most; "
        "what the experts then compute less is not in it.",
        evidence=[
            Evidence("largest over mean", f"{ratio:.2f}", "text", "mean over instances of largest / mean, by bytes"),
            Evidence("all-to-alls", len(at), "count", "matched, with their sizes"),
            Evidence("most received", int(total.max()), "bytes", "sum over instances, of one rank"),
            Evidence("mean received", int(total.mean()), "bytes", "mean over ranks of that sum"),
        ],
        refute="Route tokens at random: if the sizes stay uneven, it is the placement and not the router.",
        next=["Log the tokens of each expert and step, and compare them with these sizes."],
        extent=extent,
    )  # fmt: skip
