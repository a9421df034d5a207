"""Collectives of a job that are so small that latency decides their time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.model.collective_fit import Fit, NoFit
from diag.ranks.comm_measurements import CommSeries, best_of
from diag.ranks.job import Job
from diag.ranks.rates import Rates, backend_of, rates_of, rates_of_one
from diag.ranks.side_by_side import SideBySide
from diag.rules import rank_subjects as ranks_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals

NO_SIZES = "the traces hold no sizes of collectives (PyTorch 2.1 and newer, or NCCL's NVTX payloads, have them)"
Index = NDArray[np.intp]


BY_JOB = "its sizes in the job"


@dataclass(frozen=True, eq=False)
class Judged:
    """Instances of an operation in one group, by a line T = α + k·M/B; None: by size alone."""

    rates: Rates
    line: Fit | None
    by: str  # what tells the line, or why there is none
    small_bytes: float

    @cached_property
    def at(self) -> Index:
        """Places of the small calls among the instances."""
        if self.line is None:
            return np.flatnonzero(self.rates.size_bytes < self.small_bytes)
        return np.flatnonzero(self.rates.moved_bytes < self.line.latency_ns * self.line.bus_bytes_per_s / 1e9)

    @property
    def cost_ns(self) -> NDArray[np.float64]:
        """What latency costs each small call."""
        latency_ns = self.rates.latency_ns[self.at]
        return latency_ns if self.line is None else np.minimum(latency_ns, self.line.latency_ns)


@job_rule("comm.small_messages", needs=("collective",))
def small_messages(job: Job, limits: Limits) -> Iterator[Answer]:
    """Many collectives are so small that they are all latency.

    Asks      Does the job send many messages so small that latency, and not the network, decides their time?
    Decides   Of each operation in each group, by a line T = α + k·M/B: that of a benchmark of the same operation and
              as many ranks (nccl-tests, collective probes), where one is among the inputs and shows a latency; else
              that through the latencies of the group's own sizes, where they span enough. A call is small when
              k·M < α·B, so that α is more than half of its time. Where there is no line, it is small below
              `small_bytes`, and its own latency stands for α. Fires when small calls are `calls` of all calls, and
              their α, less one call per step that would remain, is `share` of the window. Of one rank alone the
              latencies hold waiting for the others: then only a benchmark can tell.
    Matters   A hundred calls of a kilobyte cost a hundred latencies; one call of a hundred kilobytes costs one.
    Do        Larger buckets (DDP `bucket_cap_mb`, FSDP wrapping of larger blocks), coalesced calls
              (`torch.distributed._coalescing_manager`), fewer scalars reduced one by one (losses, norms).
    Refute    Merge two of the calls: if the pair takes as long as both did, latency was not what they cost.
    """
    side = _of_job_or_rank(job)
    if side is None:
        return
    subject = ranks_of.whole_job(side)
    rates = [rates for rates in _rates(side) if (rates.moved_bytes > 0).any()]
    if not rates:
        yield CannotTell(subject, NO_SIZES)
        return
    found = [_judged(each, job.comm_series, backend_of(side), limits["small_bytes"]) for each in rates]
    if not side.is_job:
        found = [each for each in found if each.line is not None]
    if not found:
        yield CannotTell(subject, ONE_RANK)
        return
    n_small, n_all = sum(len(each.at) for each in found), sum(len(each.rates.at) for each in found)
    n_kept = max(side.n_steps, 1) * sum(1 for each in found if len(each.at))
    alpha_ns = sum(float(each.cost_ns.sum()) for each in found)
    won_ns = round(alpha_ns * max(1 - n_kept / max(n_small, 1), 0))
    if n_small < limits["calls"] * n_all or won_ns / ranks_of.window_ns(side, 0) < limits["share"]:
        yield Clear(subject)
    else:
        yield _finding(side, found, won_ns)


ONE_RANK = (
    "one rank alone does not show what latency costs, as its times hold waiting for the others: add their traces, or "
    "nccl-tests of as many ranks"
)


def _of_job_or_rank(job: Job) -> SideBySide | None:
    """The ranks side by side, else the only one, which need not say its number."""
    side = job.side_by_side
    if side.is_job:
        return side
    recorded = [*side.summaries, *side.unnumbered]
    return SideBySide(recorded) if len(recorded) == 1 and len(recorded[0].calls) and job.comm_series else None


def _rates(side: SideBySide) -> list[Rates]:
    return rates_of(side.arrivals) if side.is_job else rates_of_one(side.summaries[0])


def _judged(rates: Rates, series: Sequence[CommSeries], backend: str, small_bytes: float) -> Judged:
    benchmark = best_of(series, rates.op, rates.arrivals.matched.n_ranks, backend)
    if benchmark is not None and isinstance(benchmark.fit, Fit) and benchmark.fit.is_latency_resolved:
        return Judged(rates, benchmark.fit, f"the benchmark of {benchmark.name}", small_bytes)
    own = rates.line
    if isinstance(own, Fit) and own.is_latency_resolved and len(rates.arrivals.matched.members) > 1:
        return Judged(rates, own, BY_JOB, small_bytes)
    return Judged(rates, None, own.because if isinstance(own, NoFit) else "they show no latency", small_bytes)


def _finding(side: SideBySide, found: Sequence[Judged], won_ns: int) -> Finding:
    n_small, n_all = sum(len(each.at) for each in found), sum(len(each.rates.at) for each in found)
    alpha_ns = sum(float(each.cost_ns.sum()) for each in found)
    extent = ranks_of.within(side, 0, _time_of([(each.rates, each.at) for each in found]))
    won_ns = min(won_ns, extent.measure_ns)
    most = max(found, key=lambda each: len(each.at))
    size = float(np.median(most.rates.size_bytes[most.at]))
    return Finding(
        title=f"{n_small:,} of {n_all:,} collectives are too small for the network",
        claim=f"{n_small:,} of {n_all:,} collectives ({units.share(n_small / n_all)}) are so small that latency "
        f"decides their time, {units.time(alpha_ns)} in all. Most are {most.rates.op} of "
        f"{most.rates.arrivals.matched.group.label}, {units.size(size)} in the median. {_line_in_words(most)}",
        subject=ranks_of.whole_job(side),
        share=won_ns / ranks_of.window_ns(side, 0),
        recoverable_ns=won_ns,
        confidence="medium",
        counterfactual=f"As one call per step and operation they would take {units.time(won_ns)} less at most.",
        evidence=[
            Evidence("small calls", n_small, "count", "k·M < α·B; without a line, below `small_bytes`"),
            Evidence("all calls", n_all, "count", "whose size and latency are known"),
            Evidence("latency of small calls", round(alpha_ns), "ns", "sum of min(α, latency)"),
            Evidence("median size", round(size), "bytes", f"of the small {most.rates.op}"),
            *_line_evidence(most),
        ],
        refute="Merge two of the calls: if the pair takes as long as both did, latency was not what they cost.",
        next=["Raise the bucket size (DistributedDataParallel(bucket_cap_mb=...)) and compare the step time."],
        extent=extent,
    )


def _time_of(chosen: Sequence[tuple[Rates, Index]]) -> Intervals:
    """The last part of these calls, as long as their latency, on the clock of the first rank; of groups that it is
    in."""
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for rates, at in chosen:
        row = np.flatnonzero(rates.arrivals.matched.members == 0)
        if len(row):
            end_ns = rates.arrivals.matched.end_ns[row[0], rates.at[at]]
            starts.append(end_ns - rates.latency_ns[at].astype(np.int64))
            ends.append(end_ns)
    return Intervals.union_of(np.concatenate(starts), np.concatenate(ends))


def _line_in_words(judged: Judged) -> str:
    line = judged.line
    if line is None:
        return f"No line of latency and bandwidth goes through them: {judged.by}."
    return (
        f"The line of {judged.by}: α = {units.time(line.latency_ns)} (± {units.time(line.latency_error_ns)}), "
        f"B = {units.quantity(line.bus_bytes_per_s, 'bytes/s')}."
    )


def _line_evidence(judged: Judged) -> Iterator[Evidence]:
    if judged.line is not None:
        formula = f"of T = α + k·M/B, least squares relative to T, by {judged.by}"
        yield Evidence("α", round(judged.line.latency_ns), "ns", formula)
        yield Evidence("B", judged.line.bus_bytes_per_s, "bytes/s", formula)
