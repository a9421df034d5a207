"""How fast collectives run in the job itself: many small ones, and slow large ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.model.collective_fit import Fit
from diag.ranks.job import Job
from diag.ranks.measured_lines import Line, measured_lines
from diag.ranks.rates import Rates, rates_of
from diag.ranks.side_by_side import SideBySide
from diag.rules import rank_subjects as ranks_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals

NO_SIZES = "the traces hold no sizes of collectives (PyTorch 2.1 and newer, or NCCL's NVTX payloads, have them)"
Index = NDArray[np.intp]


@job_rule("comm.small_messages", needs=("collective",))
def small_messages(job: Job, limits: Limits) -> Iterator[Answer]:
    """Many collectives are so small that they are all latency.

    Asks      Does the job send many messages so small that latency, and not the network, decides their time?
    Decides   Of each operation in each group, the line T = α + k·M/B through the latencies of its sizes, where they
              span enough; a call is small when k·M < α·B, so that α is more than half of its time. Where there is no
              line, it is small below `small_bytes`, and its own latency stands for α. Fires when small calls are
              `calls` of all calls, and their α, less one call per step that would remain, is `share` of the window.
    Matters   A hundred calls of a kilobyte cost a hundred latencies; one call of a hundred kilobytes costs one.
    Do        Larger buckets (DDP `bucket_cap_mb`, FSDP wrapping of larger blocks), coalesced calls
              (`torch.distributed._coalescing_manager`), fewer scalars reduced one by one (losses, norms).
    Refute    Merge two of the calls: if the pair takes as long as both did, latency was not what they cost.
    """
    side = job.side_by_side
    if not side.is_job:
        return
    subject = ranks_of.whole_job(side)
    rates = [rates for rates in rates_of(side.arrivals) if np.isfinite(rates.moved_bytes).any()]
    if not rates:
        yield CannotTell(subject, NO_SIZES)
        return
    found = [(each, *_small(each, limits["small_bytes"])) for each in rates]
    n_small, n_all = sum(len(at) for _, at, _ in found), sum(len(each.at) for each in rates)
    n_kept = max(side.n_steps, 1) * sum(1 for _, at, _ in found if len(at))
    alpha_ns = sum(float(cost.sum()) for _, _, cost in found)
    won_ns = round(alpha_ns * max(1 - n_kept / max(n_small, 1), 0))
    window_ns = ranks_of.window_ns(side, 0)
    share = won_ns / window_ns
    if n_small < limits["calls"] * n_all or share < limits["share"]:
        yield Clear(subject)
        return
    extent = ranks_of.within(side, 0, _time_of(side, [(each, at) for each, at, _ in found]))
    won_ns = min(won_ns, extent.measure_ns)
    most, at, _ = max(found, key=lambda item: len(item[1]))
    size = float(np.median(most.size_bytes[at]))
    yield Finding(
        title=f"{n_small:,} of {n_all:,} collectives are too small for the network",
        claim=f"{n_small:,} of {n_all:,} collectives ({units.share(n_small / n_all)}) are so small that latency "
        f"decides their time, {units.time(alpha_ns)} in all. Most are {most.op} of "
        f"{most.arrivals.matched.group.label}, {units.size(size)} in the median. {_line_in_words(most)}",
        subject=subject,
        share=won_ns / window_ns,
        recoverable_ns=won_ns,
        confidence="medium",
        counterfactual=f"As one call per step and operation they would take {units.time(won_ns)} less at most.",
        evidence=[
            Evidence("small calls", n_small, "count", "k·M < α·B; without a line, below `small_bytes`"),
            Evidence("all calls", n_all, "count", "matched, with their size"),
            Evidence("latency of small calls", round(alpha_ns), "ns", "sum of min(α, latency)"),
            Evidence("median size", round(size), "bytes", f"of the small {most.op}"),
            *_line_evidence(most),
        ],
        refute="Merge two of the calls: if the pair takes as long as both did, latency was not what they cost.",
        next=["Raise the bucket size (DistributedDataParallel(bucket_cap_mb=...)) and compare the step time."],
        extent=extent,
    )  # fmt: skip


def _small(rates: Rates, small_bytes: float) -> tuple[Index, NDArray[np.float64]]:
    """Places of the small calls among the instances of `rates`, and what latency costs each (ns)."""
    line = rates.line
    if isinstance(line, Fit) and line.is_latency_resolved:
        at = np.flatnonzero(rates.moved_bytes < line.latency_ns * line.bus_bytes_per_s / 1e9)
        return at, np.minimum(rates.latency_ns[at], line.latency_ns)
    at = np.flatnonzero(rates.size_bytes < small_bytes)
    return at, rates.latency_ns[at]


def _time_of(side: SideBySide, chosen: Sequence[tuple[Rates, Index]]) -> Intervals:
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


def _line_in_words(rates: Rates) -> str:
    line = rates.line
    if not isinstance(line, Fit):
        return f"No line of latency and bandwidth goes through them: {line.because}."
    return (
        f"The line through its sizes: α = {units.time(line.latency_ns)} (± {units.time(line.latency_error_ns)}), "
        f"B = {units.size(line.bus_bytes_per_s)}/s."
    )


def _line_evidence(rates: Rates) -> Iterator[Evidence]:
    line = rates.line
    if isinstance(line, Fit):
        yield Evidence("α", round(line.latency_ns), "ns", "of T = α + k·M/B, least squares relative to T")
        yield Evidence("B", line.bus_bytes_per_s, "bytes/s", "of T = α + k·M/B, bus bandwidth")


@dataclass(frozen=True, eq=False)
class Expected:
    """Instances of one size in one group, and the bus bandwidth that they could have."""

    rates: Rates
    at: Index
    bus_bytes_per_s: float
    by: str  # what tells it

    @property
    def reached(self) -> float:
        """Median bus bandwidth of the instances."""
        return float(np.median(self.rates.bus_bytes_per_s[self.at]))


@job_rule("comm.bandwidth_in_run", needs=("collective",))
def bandwidth_in_run(job: Job, limits: Limits) -> Iterator[Answer]:
    """Collectives are slower in the run than their links allow.

    Asks      Do large collectives reach, in the run, the bus bandwidth that their links give?
    Decides   Bus bandwidth is k·M / latency, the latency being the shortest duration over the ranks. It is held against
              the line T = α + k·M/B of a benchmark of the same operation and as many ranks, where one is among the
              inputs (nccl-tests); else against the fastest group of as many ranks at the same operation and size. Fires
              when a group's median is below `reached` of that, for sizes from `small_bytes` on. With neither, nothing
              can be told.
    Matters   A group whose ring crosses a slow or failing link makes every step wait.
    Do        See where the group's ranks lie (nvidia-smi topo -m), which transport NCCL chose (NCCL_DEBUG=INFO),
              whether a link runs at reduced width or errors are counted (nvidia-smi nvlink -e, ibstat).
    Refute    nccl-tests on the same nodes gives the same low rate: then it is the links, and nothing that the job does.
    """
    side = job.side_by_side
    if not side.is_job:
        return
    subject = ranks_of.whole_job(side)
    rates = [each for each in rates_of(side.arrivals) if (each.moved_bytes > 0).any()]
    if not rates:
        yield CannotTell(subject, NO_SIZES)
        return
    compared = list(_expected(rates, measured_lines(job.case), limits["small_bytes"]))
    if not compared:
        yield CannotTell(subject, NO_PEER)
        return
    slow = [each for each in compared if each.reached < limits["reached"] * each.bus_bytes_per_s]
    if not slow:
        yield Clear(subject)
    for each in slow:
        yield _slow(side, each)


NO_PEER = (
    "what the links give: no benchmark of as many ranks is among the inputs (nccl-tests), and no second group does the "
    "same collective at the same size"
)


def _expected(rates: Sequence[Rates], lines: Mapping[Line, Fit], small_bytes: float) -> Iterator[Expected]:
    """Of each size of each group, where something tells what it could reach."""
    alike: dict[tuple[str, int, float], list[tuple[Rates, Index]]] = {}
    for each in rates:
        for size in np.unique(each.size_bytes[each.size_bytes >= small_bytes]).tolist():
            at = np.flatnonzero(each.size_bytes == size)
            alike.setdefault((each.op, each.arrivals.matched.n_ranks, size), []).append((each, at))
    for (op, n_ranks, _), group in alike.items():
        line = lines.get((op, n_ranks))
        fastest = max(float(np.median(each.bus_bytes_per_s[at])) for each, at in group)
        for each, at in group:
            moved_bytes = float(each.moved_bytes[at][0])
            if line is not None:
                could = moved_bytes * 1e9 / line.predicted_ns(moved_bytes)
                yield Expected(each, at, could, f"the benchmark of {n_ranks} ranks")
            elif len(group) > 1:
                yield Expected(each, at, fastest, f"the fastest group of {n_ranks} ranks")


def _slow(side: SideBySide, slow: Expected) -> Finding:
    rates, at, matched = slow.rates, slow.at, slow.rates.arrivals.matched
    rank, could, label = int(matched.members[0]), slow.bus_bytes_per_s, matched.group.label
    lost_ns = np.maximum(rates.latency_ns[at] - rates.moved_bytes[at] * 1e9 / could, 0)
    end_ns = matched.end_ns[0, rates.at[at]]
    extent = ranks_of.within(side, rank, Intervals.union_of(end_ns - np.rint(lost_ns).astype(np.int64), end_ns))
    size = float(rates.size_bytes[at][0])
    return Finding(
        title=f"{rates.op} of {label} reaches {units.share(slow.reached / could)} of what its links could give",
        claim=f"{units.count(len(at), 'call')} of {rates.op} with {units.size(size)} in {label} reach "
        f"{units.size(slow.reached)}/s bus bandwidth in the median; {slow.by} reaches {units.size(could)}/s with as "
        f"much.{ranks_of.unseen(side)}",
        subject=ranks_of.subject_of(side, matched.members.tolist(), rank),
        share=extent.measure_ns / ranks_of.window_ns(side, rank),
        recoverable_ns=extent.measure_ns,
        confidence="medium",
        counterfactual=f"As fast as that, these calls would take {units.time(extent.measure_ns)} less at most.",
        evidence=[
            Evidence("bus bandwidth", slow.reached, "bytes/s", "median of k·M / latency"),
            Evidence("could reach", could, "bytes/s", f"of {slow.by}, same operation and size"),
            Evidence("calls", len(at), "count", f"{rates.op} of this size in this group"),
            Evidence("size", round(size), "bytes", "M, as nccl-tests counts it"),
        ],
        refute="nccl-tests on the same nodes gives the same low rate: then it is the links, and nothing that the job "
        "does.",
        next=["nvidia-smi topo -m on the hosts of these ranks; NCCL_DEBUG=INFO for the transports it chose"],
        extent=extent,
    )
