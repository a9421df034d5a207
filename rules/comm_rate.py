"""Large collectives of a job that are slower than the same ones of a benchmark or of another group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.ranks.comm_measurements import CommSeries, best_of
from diag.ranks.host_links import HostLinks, printed_link
from diag.ranks.job import Job
from diag.ranks.rates import Rates, backend_of, rates_of
from diag.ranks.side_by_side import SideBySide
from diag.rules import rank_subjects as ranks_of
from diag.rules.comm_series_facts import LARGE_BYTES
from diag.rules.comm_small import NO_SIZES
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals

Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Expected:
    """Instances of one size in one group, and the bus bandwidth that they could have."""

    rates: Rates
    at: Index
    bus_bytes_per_s: float
    by: str  # what tells it
    least: float  # share of it that is no finding

    @property
    def reached(self) -> float:
        """Median bus bandwidth of the instances."""
        return float(np.median(self.rates.bus_bytes_per_s[self.at]))


@job_rule("comm.bandwidth_in_run", needs=("collective",))
def bandwidth_in_run(job: Job, limits: Limits) -> Iterator[Answer]:
    """Collectives are slower in the run than their links allow.

    Asks      Do large collectives reach, in the run, the bus bandwidth that their links give?
    Decides   Bus bandwidth is k·M / latency, the latency being the shortest duration over the ranks. It is held against
              the times of a benchmark of the same operation, backend and number of ranks, where one is among the inputs
              (nccl-tests, collective probes; of several the fastest) and measured sizes on both sides of it; else
              against the fastest group of as many ranks on as many hosts at the same operation and size. Fires when a
              group's median is below `reached` of that, for sizes from `small_bytes` on. A group within one host is
              also held against what its links are printed to carry in one direction, where its topology
              (nvidia-smi topo -m) is among the inputs and the GPUs' name is known: below `link` of it, from 16 MiB on.
              With none of these, nothing can be told. Whether the benchmark itself reaches what its links carry is what
              `comm.bandwidth` asks.
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
    compared = [*_alike(side, rates, job.comm_series, limits), *_printed(side, rates, job.host_links, limits)]
    if not compared:
        yield CannotTell(subject, NO_PEER)
        return
    slow: dict[tuple[int, int], Expected] = {}  # once for each place, by the first that tells
    for each in compared:
        if each.reached < each.least * each.bus_bytes_per_s:
            slow.setdefault((id(each.rates), int(each.at[0])), each)
    if not slow:
        yield Clear(subject)
    for each in slow.values():
        yield _slow(side, each)


NO_PEER = (
    "what the links give: no benchmark of as many ranks and such sizes is among the inputs (nccl-tests), and no second "
    "group does the same collective at the same size on as many hosts"
)


def _sizes(rates: Rates, small_bytes: float) -> Iterator[tuple[float, Index]]:
    """Each large size of a group with the places of its instances."""
    for size in np.unique(rates.size_bytes[rates.size_bytes >= small_bytes]).tolist():
        yield size, np.flatnonzero(rates.size_bytes == size)


def _n_hosts(side: SideBySide, rates: Rates) -> int | None:
    """That the group lies on; None where a member was not recorded, or does not say its host."""
    matched = rates.arrivals.matched
    hosts = {side.summaries[member].host for member in matched.members.tolist()}
    return None if None in hosts or len(matched.members) < matched.n_ranks else len(hosts)


def _printed(
    side: SideBySide, rates: Sequence[Rates], hosts: Sequence[HostLinks], limits: Limits
) -> Iterator[Expected]:
    """Of groups within one host, what their links are printed to carry."""
    for each in rates:
        matched = each.arrivals.matched
        names = {side.summaries[member].device_name for member in matched.members.tolist()}
        name = names.pop() if len(names) == 1 else None
        link = printed_link(name, matched.n_ranks, _n_hosts(side, each), hosts)
        if link is not None:
            for _, at in _sizes(each, LARGE_BYTES):
                yield Expected(each, at, link.bytes_per_s, f"{link.name}, as printed,", limits["link"])


def _alike(
    side: SideBySide, rates: Sequence[Rates], series: Sequence[CommSeries], limits: Limits
) -> Iterator[Expected]:
    """Of each size of each group, what a benchmark or the fastest group like it reaches."""
    alike: dict[tuple[str, int, int | None, float], list[tuple[Rates, Index]]] = {}
    for each in rates:
        key = each.op, each.arrivals.matched.n_ranks, _n_hosts(side, each)
        for size, at in _sizes(each, limits["small_bytes"]):
            alike.setdefault((*key, size), []).append((each, at))
    for (op, n_ranks, _, size), group in alike.items():
        benchmark = best_of(series, op, n_ranks, backend_of(side))
        took_ns = benchmark.time_ns_of(size) if benchmark is not None else None
        fastest = max(float(np.median(each.bus_bytes_per_s[at])) for each, at in group)
        for each, at in group:
            if took_ns is not None:
                could = float(each.moved_bytes[at][0]) * 1e9 / took_ns
                yield Expected(each, at, could, f"the benchmark of {n_ranks} ranks", limits["reached"])
            elif len(group) > 1:
                yield Expected(each, at, fastest, f"the fastest group of {n_ranks} ranks", limits["reached"])


def _slow(side: SideBySide, slow: Expected) -> Finding:
    rates, at, matched = slow.rates, slow.at, slow.rates.arrivals.matched
    rank, could, label = int(matched.members[0]), slow.bus_bytes_per_s, matched.group.label
    lost_ns = np.maximum(rates.latency_ns[at] - rates.moved_bytes[at] * 1e9 / could, 0)
    end_ns = matched.end_ns[0, rates.at[at]]
    extent = ranks_of.within(side, rank, Intervals.union_of(end_ns - np.rint(lost_ns).astype(np.int64), end_ns))
    size = float(rates.size_bytes[at][0])
    return Finding(
        title=f"{rates.op} of {label} reaches {units.share(slow.reached / could)} of {slow.by.removesuffix(',')}",
        claim=f"{units.count(len(at), 'call')} of {rates.op} with {units.size(size)} in {label} reach "
        f"{units.size(slow.reached)}/s bus bandwidth in the median; {slow.by} "
        f"has {units.size(could)}/s.{ranks_of.unseen(side)}",
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
