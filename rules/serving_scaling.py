"""Whether more cards make a server faster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.model.serving_metrics import Latency
from diag.rules.engine import run_subject, serving_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.serving_loads import for_each, run_rows, typical
from diag.rules.thresholds import Limits
from diag.serving.alike import same_requests
from diag.serving.run import ServingRun

LOAD_APART = 0.05
"""Rates per card that were meant to be the same are so up to rounding."""


@serving_rule("serving.scaling")
def more_cards_and_slower(runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """More cards, and slower.

    Asks      With more cards, and as much load in all or for each card, do requests take longer?
    Decides   Runs of one model and kind of request are compared with the one of fewest cards (tensor_parallel x
              replicas) that had the same load, in all or per card: requests/s, or requests in flight. Fires when the
              median E2E is `slower` times as long. With as much load in all it should have become shorter, per card
              stayed. Cannot tell when the number of cards was not captured, or only one number of them was run.
    Matters   Tensor parallelism adds two all-reduces to every layer: a small model, or one without NVLink between its
              cards, spends more in them than it saves. Replicas add a router, and split the prefix cache.
    Do        Compare TP=8 with two replicas of TP=4 (diag plan serving); keep tensor parallelism inside an NVLink
              domain; look at exposed communication in a timeline of decode (comm.exposed).
    Refute    Both sizes again, alone on their nodes, at loads below the knee of each, differ the other way.
    """
    return for_each(runs, lambda run: _judged(run, runs, limits))


NO_CARDS = "on how many cards it ran was not captured (tensor_parallel, replicas)"


def cards_of(run: ServingRun) -> int | None:
    """Of all replicas; None where neither was said. One that was not said is 1."""
    parallel, replicas = run.settings.tensor_parallel, run.settings.replicas
    return None if parallel is None and replicas is None else (parallel or 1) * (replicas or 1)


@dataclass(frozen=True)
class _Pair:
    run: ServingRun
    fewer: ServingRun
    slower: float
    e2e: Evidence
    e2e_before: Evidence


def _judged(run: ServingRun, runs: Sequence[ServingRun], limits: Limits) -> Answer | None:
    """None for the one of fewest cards among those that it can be compared with: the others answer for it."""
    subject, cards = run_subject(run), cards_of(run)
    if cards is None:
        return CannotTell(subject, NO_CARDS)
    counted = [(n, each) for each in runs if (n := cards_of(each)) is not None]
    others = [(n, each) for n, each in counted if n != cards and _is_comparable(run, each)]
    if not others:
        return CannotTell(subject, "no run on another number of cards had the same load, in all or per card")
    n_fewest, fewest = min(others, key=lambda pair: (pair[0], pair[1].id))
    if n_fewest > cards:
        return None
    pair = _pair(run, fewest)
    if pair is None:
        return CannotTell(subject, "how long its requests took is not known, or not of those on fewer cards")
    return _finding(pair) if pair.slower >= limits["slower"] else Clear(subject)


def _is_comparable(run: ServingRun, other: ServingRun) -> bool:
    if (run.backend, run.model) != (other.backend, other.model) or not same_requests(run, other):
        return False
    (kind, mine), (its_kind, its) = _load(run), _load(other)
    per_card = mine / (cards_of(run) or 1), its / (cards_of(other) or 1)
    return kind == its_kind and mine > 0 and (_close(mine, its) or _close(*per_card))


def _load(run: ServingRun) -> tuple[str, float]:
    """Of an open loop or of a closed one; 0 where neither was said."""
    if run.load.rate_per_s:
        return "requests/s", run.load.rate_per_s
    return "in flight", float(run.load.concurrency or 0)


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= LOAD_APART * max(a, b)


def _pair(run: ServingRun, fewer: ServingRun) -> _Pair | None:
    e2e, before = typical(run, "e2e"), typical(fewer, "e2e")
    if e2e is None or before is None or not before.value:
        return None
    return _Pair(run, fewer, float(e2e.value) / float(before.value), e2e, before)


def _finding(pair: _Pair) -> Finding:
    run, fewer = pair.run, pair.fewer
    cards, before = cards_of(run) or 1, cards_of(fewer) or 1
    whole = "as much load in all" if _close(_load(run)[1], _load(fewer)[1]) else "as much load per card"
    return Finding(
        title=f"{cards} cards are slower than {before}",
        claim=f"With {whole}, a request takes {units.time(float(pair.e2e.value))} on {_cards(run)} and "
        f"{units.time(float(pair.e2e_before.value))} on {_cards(fewer)}: {pair.slower:.2f} times as long.",
        subject=run_subject(run),
        level="warning",
        confidence="medium",
        counterfactual=f"On {_cards(fewer)} it took {units.share(1 / pair.slower)} of the time.",
        evidence=[
            Evidence("slower", pair.slower, "ratio", "typical E2E / that on fewer cards", run_rows(run, fewer)),
            Evidence("cards", cards, "count", "tensor_parallel x replicas", run_rows(run)),
            Evidence("fewer cards", before, "count", "tensor_parallel x replicas", run_rows(fewer)),
            *_figures(run, cards),
            *_figures(fewer, before),
        ],
        refute="Both sizes again, alone on their nodes, at loads below the knee of each, differ the other way.",
        next=[
            "Record both with nsys, and compare exposed communication in a decode step.",
            "Run as many replicas as there are cards, each with the fewest cards that hold the model.",
        ],
    )


def _cards(run: ServingRun) -> str:
    parallel, replicas = run.settings.tensor_parallel or 1, run.settings.replicas or 1
    named = units.count(parallel * replicas, "card")
    return f"{named} ({replicas} replicas of {parallel})" if replicas > 1 else named


_FIGURES: tuple[Latency, ...] = ("e2e", "ttft", "tpot")


def _figures(run: ServingRun, cards: int) -> Iterator[Evidence]:
    for which in _FIGURES:
        if (found := typical(run, which)) is not None:
            label = f"{found.label} on {units.count(cards, 'card')}"
            yield Evidence(label, found.value, "ns", found.formula, found.sql)
