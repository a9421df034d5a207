"""Requests that the prefix cache should make faster, and that are slower."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.model.serving_metrics import ServedRequest, end_ns, prefix_hit_share
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.serving_loads import for_each, request_rows, run_rows, typical
from diag.rules.thresholds import Limits
from diag.serving.alike import same_requests
from diag.serving.run import ServingRun

FEWEST = 5
"""Of each kind in a bucket, and buckets hold what can be compared."""
BY_CHANCE = 3.0
"""Standard deviations of the mean of the logarithms: with hits as fast as misses, one run in a thousand exceeds it."""


@serving_rule("serving.prefix_slower")
def slower_with_hits(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """Prompts that the prefix cache holds are answered later.

    Asks      Is TTFT longer with prefix hits than without, at equal prompt length and load?
    Decides   Within a run: a hit has `hit` of its prompt in the cache and more, a miss a tenth and less. Both are
              compared in buckets of prompt length and of requests in flight when it was sent (powers of two), with five
              of each. slower = the ratio of their median TTFT, as the geometric mean of the buckets; fires at `slower`
              if the difference of the logarithms is three standard errors. Between runs: of two with the same load and
              requests, of the same model, the one with more hits (by `more` of the tokens) fires when its median TTFT
              is `slower` times the other's.
    Matters   A hit saves prefill and nothing else. If it is slower, what the cache costs exceeds that: requests with
              one prefix go to one busy replica, blocks come from the host or another node, look-up takes long.
    Do        Weigh the cache against the load when routing; compare fetching blocks with computing them again
              (diag plan transfer); give the cache less room if it makes running requests be preempted.
    Refute    With the cache switched off, the same prompts at the same load are slower still.
    """
    return for_each(runs, lambda run: _judged(run, runs, limits))


def _judged(run: ServingRun, runs: Sequence[ServingRun], limits: Limits) -> Answer:
    subject, share = run_subject(run), prefix_hit_share(run.requests)
    if share is None:
        return CannotTell(subject, "how much of each prompt the prefix cache held is not known")
    within = _within(run, limits["hit"])
    if within is not None and within.ratio >= limits["slower"] and within.deviates >= BY_CHANCE:
        return _finding_within(run, within, share)
    others = [each for each in runs if _has_fewer_hits(each, run, share, limits["more"])]
    slower = [each for each in others if _times_slower(run, each) >= limits["slower"]]
    if slower:
        return _finding_between(run, min(slower, key=lambda each: prefix_hit_share(each.requests) or 0.0), share)
    if within is not None or others or share == 0:
        return Clear(subject)
    return CannotTell(
        subject,
        f"nothing to compare with: the cache held {units.share(share)} of the prompts, and in no bucket of prompt "
        f"length and load are there {FEWEST} hits and {FEWEST} misses, nor is there another run like it with fewer",
    )


# ---- within a run --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Within:
    """Hits against misses in buckets alike."""

    n_hits: int
    n_misses: int
    n_buckets: int
    ratio: float  # of the median TTFT, hits over misses
    deviates: float  # by how many standard errors the logarithms differ
    hits_ns: float
    misses_ns: float


def _within(run: ServingRun, hit: float) -> _Within | None:
    buckets: dict[tuple[int, int], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for request, in_flight in _with_load(run.completed):
        share = (request.cached_tokens or 0) / (request.prompt_tokens or 1)
        if request.ttft_ns and (share >= hit or share <= 0.1):
            key = ((request.prompt_tokens or 1).bit_length(), in_flight.bit_length())
            buckets[key][share <= 0.1].append(request.ttft_ns)
    full = [(np.array(hits), np.array(misses)) for hits, misses in buckets.values() if min(
        len(hits), len(misses)) >= FEWEST]  # fmt: skip
    if not full:
        return None
    weights = np.array([min(len(hits), len(misses)) for hits, misses in full], np.float64)
    medians = np.array([np.log(np.median(hits) / np.median(misses)) for hits, misses in full])
    means = np.array([np.log(hits).mean() - np.log(misses).mean() for hits, misses in full])
    variances = np.array([sum(np.log(each).var(ddof=1) / len(each) for each in pair) for pair in full])
    weights /= weights.sum()
    error = float(np.sqrt(weights**2 @ variances))
    gap = float(weights @ means)
    hits, misses = (np.concatenate(each) for each in zip(*full, strict=True))
    return _Within(
        n_hits=len(hits),
        n_misses=len(misses),
        n_buckets=len(full),
        ratio=float(np.exp(weights @ medians)),
        deviates=gap / error if error else float("inf") if gap > 0 else 0.0,
        hits_ns=float(np.median(hits)),
        misses_ns=float(np.median(misses)),
    )


def _with_load(requests: Sequence[ServedRequest]) -> Iterator[tuple[ServedRequest, int]]:
    """Each with the number of others in flight when it was sent."""
    timed = [
        (each.sent_ns, end, each)
        for each in requests
        if each.sent_ns is not None and (end := end_ns(each)) is not None
        if each.prompt_tokens and each.cached_tokens is not None
    ]
    sent, ended = np.sort([t[0] for t in timed]), np.sort([t[1] for t in timed])
    for at, _, request in timed:
        yield request, int(np.searchsorted(sent, at) - np.searchsorted(ended, at, side="right"))


def _finding_within(run: ServingRun, it: _Within, share: float) -> Finding:
    sql = request_rows(run, "prompt_tokens", "cached_tokens", "sent_ns", "ttft_ns")
    return Finding(
        title=f"Prefix hits take {it.ratio:.2f} times as long as misses",
        claim=f"At equal prompt length and load the first token of {units.count(it.n_hits, 'hit')} takes "
        f"{it.ratio:.2f} times as long as that of {units.count(it.n_misses, 'miss')} (medians of all of them "
        f"{units.time(it.hits_ns)} and {units.time(it.misses_ns)}). The cache held {units.share(share)} of the "
        "prompts.",
        subject=run_subject(run),
        level="warning",
        counterfactual="If hits were no slower than misses, their TTFT would be that of misses or less.",
        evidence=[
            Evidence("slower", it.ratio, "ratio", "geometric mean over buckets: median TTFT of hits / of misses", sql),
            Evidence("TTFT of hits", round(it.hits_ns), "ns", "median in buckets with both", sql),
            Evidence("TTFT of misses", round(it.misses_ns), "ns", "median in buckets with both", sql),
            Evidence("hits", it.n_hits, "count", "in buckets with both", sql),
            Evidence("misses", it.n_misses, "count", "in buckets with both", sql),
            Evidence("buckets", it.n_buckets, "count", "prompt length x in flight, powers of two", sql),
            Evidence("standard errors", min(it.deviates, 1e6), "ratio", "difference of mean log TTFT / its error", sql),
            Evidence("prefix hits", share, "share", "cached / prompt tokens of completed requests", sql),
        ],
        refute=_REFUTE,
        next=_NEXT,
    )


_REFUTE = "With the cache switched off, the same prompts at the same load are slower still."
_NEXT = (
    "Run the same load with the prefix cache switched off.",
    "See where hits are served from: which replica, and whether blocks are fetched from the host or another node.",
)


# ---- between runs --------------------------------------------------------------------------------------------------


def _has_fewer_hits(other: ServingRun, run: ServingRun, share: float, more: float) -> bool:
    """Whether it is the same load on the same model, with fewer hits."""
    held = prefix_hit_share(other.requests)
    if other is run or held is None or share - held < more or other.model != run.model:
        return False
    same_load = all(
        getattr(other.load, name) == getattr(run.load, name) for name in ("arrival", "rate_per_s", "concurrency")
    )
    return same_load and same_requests(other, run)


def _times_slower(run: ServingRun, other: ServingRun) -> float:
    mine, its = typical(run, "ttft"), typical(other, "ttft")
    return float(mine.value) / float(its.value) if mine is not None and its is not None and its.value else 0.0


def _finding_between(run: ServingRun, other: ServingRun, share: float) -> Finding:
    held, times = prefix_hit_share(other.requests) or 0.0, _times_slower(run, other)
    sql = request_rows(run, "prompt_tokens", "cached_tokens", "ttft_ns")
    evidence = [
        Evidence("slower", times, "ratio", "median TTFT / that of the run with fewer hits", run_rows(run, other)),
        Evidence("prefix hits", share, "share", "cached / prompt tokens of completed requests", sql),
        Evidence("prefix hits there", held, "share", "the same, of the run with fewer hits", request_rows(
            other, "prompt_tokens", "cached_tokens", "ttft_ns")),
    ]  # fmt: skip
    evidence += [each for each in (typical(run, "ttft"),) if each is not None]
    return Finding(
        title=f"With more prefix hits TTFT is {times:.2f} times as long",
        claim=f"The cache held {units.share(share)} of the prompts, and {units.share(held)} in {other.name}, under the "
        f"same load: the median TTFT is {times:.2f} times as long with more hits.",
        subject=run_subject(run),
        level="warning",
        confidence="medium",
        counterfactual=f"As in {other.name} TTFT would take {units.share(1 / times)} of its time.",
        evidence=evidence,
        refute=_REFUTE,
        next=_NEXT,
    )
