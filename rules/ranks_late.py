"""Ranks that wait for each other in collectives: for one that always comes late, or for now this and now that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.ranks.job import Job
from diag.ranks.lateness import Lateness, excess_before, is_beyond_chance, lateness_of, on_clock, phases
from diag.ranks.side_by_side import SideBySide
from diag.ranks.summary import NONE
from diag.rules import rank_subjects as ranks_of
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals

NEEDS = ("collective", "kernel", "annotation")
CHANCE = 3.0
"""Standard deviations of a binomial count that no chance explains."""
TOLD = "collectives whose last start is behind by more than the clocks' errors"


@dataclass(frozen=True, eq=False)
class Steady:
    """Those that came last in most collectives."""

    ranks: Sequence[int]  # indices of summaries; several of one host
    host: str | None
    count: int
    extent: Intervals  # by which the rank was behind the last but one, on the clock of the first of them


def untold(side: SideBySide) -> str | None:
    """Why nobody can say who came last; None when somebody can."""
    if side.clocks.reference is None:
        return f"who is late: the clocks of the ranks cannot be compared ({side.clocks.why_not})"
    if not any(each.matched.synchronises.any() and np.isfinite(each.error_ns).all() for each in side.arrivals):
        return "who is late: no group has all its clocks on one axis"
    return None


def steady(side: SideBySide, late: Lateness, limits: Limits) -> Steady | None:
    """The rank that came last in most of the instances that tell it, else the host whose ranks did."""
    n_ranks = len(side.summaries)
    counts = late.counts(n_ranks)
    first = int(np.argmax(counts))
    if _stands_out(int(counts[first]), len(late), 1 / n_ranks, limits["instances"]):
        return Steady([first], None, int(counts[first]), _behind(side, late, [first]))
    hosts: dict[str, list[int]] = {}
    for at, summary in enumerate(side.summaries):
        if summary.host is not None:
            hosts.setdefault(summary.host, []).append(at)
    for host, members in hosts.items() if len(hosts) > 1 else ():
        count = int(counts[members].sum())
        if len(members) > 1 and _stands_out(count, len(late), len(members) / n_ranks, limits["instances"]):
            return Steady(members, host, count, _behind(side, late, members))
    return None


def _stands_out(count: int, of: int, chance: float, share: float) -> bool:
    """`share` is of the way from chance to always: of two ranks, each is last in half of the instances anyway."""
    least = chance + share * (1 - chance)
    return of > 0 and count >= least * of and is_beyond_chance(count, of, chance, CHANCE)


def _behind(side: SideBySide, late: Lateness, members: Sequence[int]) -> Intervals:
    """Of one rank, from the start of the last but one to its own; of several, from the median of the others."""
    of = np.isin(late.rank, members)
    from_ns = late.second_ns if len(members) == 1 else late.usual_ns
    return ranks_of.within(side, members[0], on_clock(side.clocks, members[0], from_ns[of], late.last_ns[of]))


@job_rule("ranks.straggler", needs=NEEDS)
def straggler(job: Job, limits: Limits) -> Iterator[Answer]:
    """The ranks wait for one that comes late again and again.

    Asks      Is it always the same rank, or the same host, that the others wait for in collectives, and why?
    Decides   On the common axis of the clocks, the rank whose start of a collective is last is *late* by its start less
              the median start of the others; only collectives that synchronise count (all-reduce, all-gather,
              reduce-scatter, all-to-all, barrier), and only where that is more than the errors of the clocks. Fires
              when one rank came last so often that it is `instances` of the way from chance to always (0.6: in 80 % of
              those that tell it with two ranks, 61 % with forty), and more often than chance explains (three standard
              deviations of a binomial count), and what it was behind the last but one, as a union, is `share` of its
              window. Failing that, the same of the ranks of one host together. Why: what it did since the
              collective before (kernels, or the causes of its idle time), beyond the median of the others.
    Matters   Every other rank waits as long: one slow rank of a thousand slows a thousand.
    Do        Look at that rank: its data, its host (other processes, pinning, disks), its device (clocks, heat), or the
              share of the model that it holds.
    Refute    Give its work to another rank, or its process to another host: if another rank is late then, it was the
              work; if the same machine is, the machine.
    """
    side = job.side_by_side
    if not side.is_job:
        return
    subject = ranks_of.whole_job(side)
    if because := untold(side):
        yield CannotTell(subject, because)
        return
    late = lateness_of(side.arrivals)
    found = steady(side, late, limits)
    if found is None:
        yield Clear(subject)
        return
    window_ns = ranks_of.window_ns(side, found.ranks[0])
    share = found.extent.measure_ns / window_ns
    if share < limits["share"]:
        yield Clear(subject)
        return
    yield _straggler(job, late, found, share)


def _straggler(job: Job, late: Lateness, found: Steady, share: float) -> Finding:
    side = job.side_by_side
    who = f"host {found.host!r}" if found.host is not None else ranks_of.names(side, found.ranks)
    of = np.isin(late.rank, found.ranks)
    excess = excess_before(side, late, np.array(found.ranks))
    cause = max(excess, key=lambda part: excess[part])
    doing = ranks_of.in_words(side, found.ranks[0], cause)
    median_ns = float(np.median(late.late_by_ns[of]))
    seconds_ns = found.extent.measure_ns
    story = list(ranks_of.what_it_did(side.summaries[found.ranks[0]]))
    return Finding(
        title=f"The ranks wait for {who}, which spends more time {doing}",
        claim=f"{who[:1].upper() + who[1:]} came last in {found.count:,} of {len(late):,} collectives whose last rank "
        f"is told ({units.share(found.count / len(late))}; {late.n_synchronising:,} synchronise), by "
        f"{units.time(median_ns)} in the median. Without that they would have begun {units.time(seconds_ns)} earlier "
        f"in all. Before them it spent {units.time(excess[cause])} more {doing} than the "
        f"others' median. {' '.join(story)}" + ranks_of.unseen(side),
        subject=ranks_of.subject_of(side, found.ranks),
        share=share,
        recoverable_ns=seconds_ns,
        confidence="medium" if ranks_of.missing(side) else "high",
        counterfactual=f"Were it as early as the rank before it, the job would take {units.time(seconds_ns)} "
        f"({units.share(share)}) less at most.",
        evidence=[
            Evidence("came last", found.count, "count", "of those told, in which it started last"),
            Evidence("told", len(late), "count", TOLD),
            Evidence("synchronising collectives", late.n_synchronising, "count", "matched across ranks"),
            Evidence("late by", round(median_ns), "ns", "median of (its start - median start of the others)"),
            Evidence("behind the next", seconds_ns, "ns", "union of (start of the one before it, its start)"),
            *(
                Evidence(f"more before: {part.replace('_', ' ')}", round(ns), "ns", "sum of (own - others' median)")
                for part, ns in excess.items()
            ),
            *_clock_evidence(side),
            *_phase_evidence(side, late, of),
        ],
        refute="Give its work to another rank, or its process to another host: if another rank is late then, it was "
        "the work; if the same machine is, the machine.",
        next=[
            f"Compare the trace of {ranks_of.names(side, found.ranks)} with that of one that waits: diag compare A B"
        ],
        extent=found.extent,
    )


@job_rule("ranks.skew", needs=NEEDS)
def skew(job: Job, limits: Limits) -> Iterator[Answer]:
    """The ranks wait for each other, now for this one and now for that.

    Asks      How long do ranks wait in collectives for others, where no single rank or host is to blame?
    Decides   Of each collective that synchronises, the shortest duration over the ranks is its latency, what a rank
              takes beyond it is waiting. Fires when the mean over ranks of the union of waiting is `share` of the
              window and `ranks.straggler` finds no steady one. A place in the step is named when it holds `phase_share`
              of all lateness.
    Matters   Each collective costs what the slowest rank of that moment costs: random delays of many ranks add up to
              their maximum, not to their mean.
    Do        Fewer synchronisations per step (larger buckets, gradient accumulation), work of equal size (sort or pack
              sequences by length), quiet hosts (no other jobs, pinned threads, garbage collection in step on all
              ranks).
    Refute    Run with equal inputs on all ranks: if the waiting stays, it is the machines and not the data.
    """
    side = job.side_by_side
    if not side.is_job:
        return
    subject = ranks_of.whole_job(side)
    if because := untold(side):
        yield CannotTell(subject, because)
        return
    late = lateness_of(side.arrivals)
    shares = [
        ranks_of.within(side, rank, when).measure_ns / ranks_of.window_ns(side, rank)
        for rank, when in enumerate(side.waiting)
    ]
    share = float(np.mean(shares))
    extent = ranks_of.within(side, 0, on_clock(side.clocks, 0, late.usual_ns, late.last_ns))
    if share < limits["share"] or steady(side, late, limits) is not None:
        yield Clear(subject)
        return
    counts = late.counts(len(side.summaries))
    most = int(np.argmax(counts))
    places = list(_named_phases(side, late, limits["phase_share"]))
    yield Finding(
        title=f"Ranks wait for each other {units.share(share)} of the time, for no steady straggler",
        claim=f"In the mean over {units.count(len(side.summaries), 'rank')} {units.share(share)} of the window is "
        f"waiting for others inside collectives ({units.share(min(shares))} to {units.share(max(shares))}). The last "
        f"rank is told for {len(late):,} of {late.n_synchronising:,}; the one that came last most often did so in "
        f"{int(counts[most]):,} ({ranks_of.names(side, [most])}). {' '.join(places)}{ranks_of.unseen(side)}",
        subject=subject,
        share=share,
        recoverable_ns=extent.measure_ns,
        confidence="medium",
        counterfactual=f"Had the last rank always come when the median one did, the job would take "
        f"{units.time(extent.measure_ns)} less at most.",
        evidence=[
            Evidence("waiting", share, "share", "mean over ranks of |union of (duration - latency)| / window"),
            Evidence("beyond the median start", extent.measure_ns, "ns", "union of (median start, last start)"),
            Evidence("told", len(late), "count", TOLD),
            *_clock_evidence(side),
            *_phase_evidence(side, late, np.ones(len(late), bool)),
        ],
        refute="Run with equal inputs on all ranks: if the waiting stays, it is the machines and not the data.",
        next=["Look at the ranks side by side: diag tui with the files of all ranks, key 8."],
        extent=extent,
    )


def _clock_evidence(side: SideBySide) -> Iterator[Evidence]:
    known = side.clocks.error_ns[side.clocks.is_known]
    formula = "2 robust standard deviations of the common ends + half a tick; the largest"
    yield Evidence("clock error", round(float(known.max())), "ns", formula)


def _phase_evidence(
    side: SideBySide, late: Lateness, of: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Iterator[Evidence]:
    chosen = late.select(of)
    for (group, op, place), ns in list(phases(side, chosen).items())[:3]:
        yield Evidence(f"late in {_place(side, group, op, place)}", round(ns), "ns", "sum of (last - median start)")


def _named_phases(side: SideBySide, late: Lateness, least: float) -> Iterator[str]:
    found = phases(side, late)
    total = sum(found.values())
    for (group, op, place), ns in found.items():
        if len(found) > 1 and ns >= least * total:
            yield f"{units.share(ns / total)} of the lateness is in {_place(side, group, op, place)}."


def _place(side: SideBySide, group: int, op: str, place: int) -> str:
    where = f"{op} of {side.arrivals[group].matched.group.label}"
    return where if place == NONE else f"collective {place + 1} of each step, {where}"
