"""Rows of a report about the ranks of a job: each rank, and the collectives of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diag.ranks.job import Job
from diag.ranks.lateness import Lateness, lateness_of
from diag.ranks.rates import Rates, rates_of
from diag.ranks.side_by_side import SideBySide
from diag.rules import rank_subjects as ranks_of
from diag.store.case import Source


@dataclass(frozen=True)
class RankRow:
    """One rank whose timeline is at hand. Times are measures of unions within `window`, on its own clock."""

    source: int
    process: int
    rank: int
    rank_origin: str | None  # what told it
    world_size: int | None
    host: str | None
    clock_offset_ns: int  # of its source: added to its times it gives the axis of all
    clock_error_ns: int | None  # against the first rank; None of that itself, and where clocks were not compared
    clock_drift: float | None  # seconds that its clock gains in a second; None: not told from none
    window: tuple[int, int]
    n_steps: int
    step_ns: int | None  # median
    compute_ns: int | None  # sum over steps of the union of kernels that are no communication; None without GPU work
    communication_ns: int  # of the whole record
    exposed_ns: int  # communication that no kernel overlaps
    waiting_ns: int | None  # for other ranks, inside collectives; None where none could be matched
    last: int | None  # collectives in which it came last, beyond the clocks' errors; None where that is not told
    last_share: float | None  # of all that tell it


@dataclass(frozen=True)
class CollectiveRow:
    """All instances of one operation in one group, as far as at least two ranks recorded them."""

    group: str
    op: str
    count: int
    n_ranks: int  # of the group
    ranks: tuple[int, ...]  # that recorded it
    size_bytes: int | None  # median, as nccl-tests counts it
    latency_ns: int  # median over instances of the shortest duration over ranks
    waiting_ns: int  # median over instances of the mean over ranks of what they take beyond that
    bus_bytes_per_s: float | None  # median of k·M / latency
    last_rank: int | None  # that came last most often, and in which share of those that tell it
    last_share: float | None


def rank_rows(job: Job) -> list[RankRow]:
    """None for a job of one rank."""
    side = job.side_by_side
    if not side.is_job:
        return []
    late = lateness_of(side.arrivals) if side.clocks.reference is not None else None
    sources = {source.id: source for source in job.sources}
    return [_rank(side, late, at, sources[summary.source]) for at, summary in enumerate(side.summaries)]


def _rank(side: SideBySide, late: Lateness | None, at: int, source: Source) -> RankRow:
    summary = side.summaries[at]
    steps = summary.steps
    is_matched = any(at in group.members for group in side.matches.groups)
    last = int(late.counts(len(side.summaries))[at]) if late is not None else None
    return RankRow(
        source=summary.source,
        process=summary.pid,
        rank=summary.rank or 0,
        rank_origin=summary.rank_origin,
        world_size=summary.world_size,
        host=summary.host,
        clock_offset_ns=source.clock_offset_ns,
        clock_error_ns=source.clock_error_ns if source.joined_to is None else None,
        clock_drift=source.clock_drift,
        window=side.span_ns(at),
        n_steps=len(steps),
        step_ns=round(float(np.median(steps.duration_ns))) if len(steps) else None,
        compute_ns=int(steps.compute_ns.sum()) if summary.has_device else None,
        communication_ns=summary.communication_ns,
        exposed_ns=summary.exposed_ns,
        waiting_ns=ranks_of.within(side, at, side.waiting[at]).measure_ns if is_matched else None,
        last=last,
        last_share=last / len(late) if last is not None and late is not None and len(late) else None,
    )


def collective_rows(job: Job) -> list[CollectiveRow]:
    """Those that ranks spend most time in first."""
    side = job.side_by_side
    if not side.is_job:
        return []
    rates = sorted(rates_of(side.arrivals), key=lambda each: (-_total_ns(each), each.op))
    return [_collective(side, each) for each in rates]


def _total_ns(rates: Rates) -> float:
    return float(rates.arrivals.matched.duration_ns[:, rates.at].sum())


def _collective(side: SideBySide, rates: Rates) -> CollectiveRow:
    matched = rates.arrivals.matched
    told = rates.at[rates.arrivals.is_told[rates.at]]
    counts = np.bincount(rates.arrivals.last_ranks()[told], minlength=len(side.summaries))
    most = int(np.argmax(counts)) if len(told) else None
    return CollectiveRow(
        group=matched.group.label,
        op=rates.op,
        count=len(rates.at),
        n_ranks=matched.n_ranks,
        ranks=tuple(side.summaries[member].rank or 0 for member in matched.members.tolist()),
        size_bytes=_median(rates.size_bytes),
        latency_ns=round(float(np.median(rates.latency_ns))),
        waiting_ns=round(float(np.median(rates.arrivals.waiting_ns[:, rates.at].mean(axis=0)))),
        bus_bytes_per_s=_median_or_none(rates.bus_bytes_per_s),
        last_rank=None if most is None else side.summaries[most].rank,
        last_share=None if most is None else float(counts[most] / len(told)),
    )


def _median(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int | None:
    found = _median_or_none(values)
    return None if found is None else round(found)


def _median_or_none(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else None


def ranks_in_order(rows: Sequence[RankRow]) -> list[RankRow]:
    """Those that came last most often first."""
    return sorted(rows, key=lambda row: (-(row.last or 0), row.rank))
