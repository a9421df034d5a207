"""What cards serve: requests in flight, how many fit, which layout keeps its objectives at the highest rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.model.card_use import CardUse
from diag.model.deployment import Objectives, Operating, Replica, largest_rate, operating, prefill_per_decode
from diag.model.plan import Answer, Column, Figure
from diag.model.planned_model import PlannedModel, unaccounted
from diag.model.planned_requests import Requests
from diag.model.serving_capacity import (
    Occupancy,
    concurrency_by_percentile,
    in_flight,
    simulate,
    slots_worth_drawing,
)
from diag.model.serving_roofline import CardRates, ServedModel, compute_bound_from


def little(requests_per_s: float, stay_ns: float) -> Answer:
    flying = in_flight(requests_per_s, stay_ns / 1e9)
    formula = f"λ·W = {requests_per_s:g} requests/s x {units.time(stay_ns)}"
    return Answer(
        f"Requests in flight at {requests_per_s:g} requests/s",
        [Figure("in flight", flying, "requests", formula)],
        ["Little's law: averages of a system that keeps up, whatever the distributions (--rate, --stay)."],
    )


@dataclass(frozen=True, eq=False)
class Load:
    """What is asked of the cards. `requests_per_s` None: as much as they can."""

    requests: Requests
    requests_per_s: float | None
    objectives: Objectives
    overflow_share: float  # of the moments in which the KV pool may be too small
    safety: float  # of what is possible, what is admitted
    price_per_hour: float | None  # of a card
    seed: int


@dataclass(frozen=True, eq=False)
class Layout:
    """`n_replicas` groups of `use.tp` cards. `best` None: it cannot keep the objectives at any rate."""

    use: CardUse
    n_replicas: int
    replica: Replica
    occupancy: Occupancy | None  # None: the model does not fit
    best: Operating | None
    wanted: Operating | None  # at the rate that is asked for; None: more than it can do, or none is asked

    @property
    def name(self) -> str:
        return f"{self.n_replicas} x TP {self.use.tp}"

    @property
    def rate_per_s(self) -> float:
        """Of all replicas, the most that meets the objectives."""
        return self.best.requests_per_s * self.n_replicas if self.best else 0.0

    @property
    def fits(self) -> bool:
        return self.occupancy is not None


def lay_out(model: PlannedModel, use: CardUse, rates: CardRates, n_replicas: int, load: Load) -> Layout:
    """Raises ValueError for a model of which only numbers are known."""
    if model.shape is None:
        raise ValueError("the shape of the model is not known")
    budget = use.budget(model)
    occupancy = None
    if budget.n_blocks:
        slots = slots_worth_drawing(load.requests, use.block_tokens, budget.n_blocks)
        occupancy = simulate(load.requests, use.block_tokens, slots, load.seed)
    fit = occupancy.largest_concurrency(budget.n_blocks, load.overflow_share) if occupancy else 0
    served = ServedModel(model.shape, model.parts, use.weights, use.other, use.kv, use.tp)
    replica = Replica(served, rates, budget, load.requests, min(fit, use.max_sequences))
    of_each = load.requests_per_s / n_replicas if load.requests_per_s is not None else None
    return Layout(
        use,
        n_replicas,
        replica,
        occupancy if fit else None,
        largest_rate(replica, load.objectives) if fit else None,
        operating(replica, of_each) if fit and of_each is not None else None,
    )


def best_of(layouts: Sequence[Layout]) -> Layout | None:
    """That with the highest rate; of equal ones the first. None: none keeps the objectives."""
    able = [each for each in layouts if each.best is not None]
    return max(able, key=lambda each: each.rate_per_s) if able else None


# ---- answers -------------------------------------------------------------------------------------------------------


def serving(model: PlannedModel, layouts: Sequence[Layout], load: Load, assumptions: Sequence[str]) -> list[Answer]:
    """The layouts side by side, and what follows for the best of them, or else for the first that fits."""
    chosen = best_of(layouts) or next((each for each in layouts if each.fits), None)
    compared = _compared(model, layouts, load, assumptions)
    return [compared] if chosen is None else [compared, _concurrency(chosen, load), _times(chosen, load)]


def _compared(model: PlannedModel, layouts: Sequence[Layout], load: Load, assumptions: Sequence[str]) -> Answer:
    n_cards = layouts[0].use.tp * layouts[0].n_replicas
    table = [
        Column("requests/s", "requests/s", [_or_none(each, each.rate_per_s) for each in layouts]),
        Column("TTFT", "ns", [at.ttft_ns if (at := _at(each, load)) else _why_not(each, load) for each in layouts]),
        Column("TPOT", "ns", [at.tpot_ns if (at := _at(each, load)) else _why_not(each, load) for each in layouts]),
        Column("fit at once", "sequences", [each.replica.most_sequences * each.n_replicas for each in layouts]),
        Column("KV tokens", "tokens", [each.replica.budget.kv_tokens * each.n_replicas for each in layouts]),
        Column("layout", "text", [each.name for each in layouts]),
    ]
    if load.price_per_hour is not None:
        cost = [_cost(each, load, n_cards) for each in layouts]
        table.insert(1, Column("per 1,000", "$", ["-" if value is None else value for value in cost]))
    return Answer(
        f"{model.name} on {units.count(n_cards, 'card')}: {_objective_words(load.objectives)}",
        [],
        [
            model.origin,
            load.requests.words,
            *(unaccounted(model.shape) if model.shape else ()),
            *assumptions,
            "Rates are those at which the mean request still meets the objectives; tails are what --safety is for.",
            f"TTFT and TPOT are at {_rate_words(load)}.",
        ],
        table,
        _decision(layouts, load, n_cards),
    )


def _at(layout: Layout, load: Load) -> Operating | None:
    return layout.best if load.requests_per_s is None else layout.wanted


def _rate_words(load: Load) -> str:
    return "that rate" if load.requests_per_s is None else f"the {load.requests_per_s:g} requests/s that are asked for"


def _or_none(layout: Layout, value: float) -> float | str:
    if layout.best:
        return value
    return "misses it" if layout.fits else "no room"


def _why_not(layout: Layout, load: Load) -> str:
    if not layout.fits:
        return "no room"
    return "misses it" if load.requests_per_s is None else "overloaded"


def _cost(layout: Layout, load: Load, n_cards: int) -> float | None:
    """Of 1,000 requests at the admitted rate."""
    if load.price_per_hour is None or layout.best is None:
        return None
    return 1000 * n_cards * load.price_per_hour / (layout.rate_per_s * load.safety * 3600)


def _objective_words(objectives: Objectives) -> str:
    limits = ((objectives.ttft_ns, "TTFT"), (objectives.tpot_ns, "TPOT"))
    said = [f"{name} up to {units.time(limit)}" for limit, name in limits if limit is not None]
    return " and ".join(said) if said else "no objective"


def _decision(layouts: Sequence[Layout], load: Load, n_cards: int) -> str:
    if not any(each.fits for each in layouts):
        return "Does not fit: no layout leaves room for the KV cache of one request. See: diag plan memory"
    best = best_of(layouts)
    if best is None:
        return "No layout keeps the objectives, not even for one request at a time: relax them, or take faster cards."
    admitted = best.rate_per_s * load.safety
    said = f"Take {best.name}: {admitted:.3g} requests/s with a safety factor of {load.safety:g}{_near(best, layouts)}"
    if load.requests_per_s is None:
        return f"{said}."
    if load.requests_per_s <= admitted:
        return f"{said}, and {load.requests_per_s:g} are asked for."
    times = -(-load.requests_per_s // admitted)
    return f"{said}, but {load.requests_per_s:g} are asked for: {times:.0f} times as many cards, {times * n_cards:.0f}."


CLOSE = 0.1
"""Layouts that differ by less do so within what the shares of the peaks are off: measure them."""


def _near(best: Layout, layouts: Sequence[Layout]) -> str:
    near = [each for each in layouts if each is not best and each.rate_per_s >= (1 - CLOSE) * best.rate_per_s]
    if not near:
        return ""
    names = " and ".join(f"{each.name} within {units.share(1 - each.rate_per_s / best.rate_per_s)}" for each in near)
    return f" ({names}: too close to tell on paper)"


def _concurrency(layout: Layout, load: Load) -> Answer:
    """How many sequences a pool holds, by simulation and by what percentiles would say."""
    budget, replica = layout.replica.budget, layout.replica
    block = layout.use.block_tokens
    assert layout.occupancy is not None
    fit = layout.occupancy.largest_concurrency(budget.n_blocks, load.overflow_share)
    figures = [
        Figure("blocks", budget.n_blocks, "count", f"of {block} tokens, for one replica"),
        Figure("largest concurrency", fit, "sequences", _overflow_words(layout.occupancy, fit, budget.n_blocks)),
        *_by_percentiles(layout.occupancy, load, block, budget.n_blocks),
        Figure("mean context", round(replica.context_tokens), "tokens", "of a running sequence, at a random step"),
        Figure(
            "admit at once",
            int(replica.most_sequences * load.safety),
            "sequences",
            f"{load.safety:g} x min({fit:,}, --max-sequences {layout.use.max_sequences:,})",
        ),
    ]
    if layout.best is not None and load.objectives.ttft_ns is not None:
        spare_ns = max(0.0, load.objectives.ttft_ns - replica.prefill_ns)
        waiting = int(load.safety * layout.best.requests_per_s * spare_ns / 1e9)
        formula = f"{load.safety:g} x rate x (TTFT objective - prefill): later ones come too late"
        figures.append(Figure("let wait at most", waiting, "requests", formula))
    return Answer(
        f"How many at once: a replica of TP {layout.use.tp}",
        figures,
        [
            f"{units.count(layout.occupancy.held_blocks.shape[0], 'random moment')} are drawn (--seed {load.seed}): a "
            "slot is at a long output by its share of the steps, and anywhere in it.",
            f"The pool may be too small in {units.share(load.overflow_share)} of the moments (--overflow); then "
            "something is preempted.",
        ],
    )


def _overflow_words(occupancy: Occupancy, slots: int, n_blocks: int) -> str:
    if slots >= occupancy.most_slots:
        return "by simulation: all that were drawn"
    return f"by simulation: {units.share(occupancy.overflow_share(slots, n_blocks))} of the moments lack blocks"


def _by_percentiles(occupancy: Occupancy, load: Load, block: int, n_blocks: int) -> Iterator[Figure]:
    for percentile in (50, 99):
        slots = concurrency_by_percentile(load.requests, block, n_blocks, percentile)
        share = occupancy.overflow_share(min(slots, occupancy.most_slots), n_blocks)
        said = f"every one as long as P{percentile}: {units.share(share)} of the moments lack blocks"
        yield Figure(f"by P{percentile} it would be", slots, "sequences", said)


def _times(layout: Layout, load: Load) -> Answer:
    replica = layout.replica
    at = layout.wanted or layout.best
    sequences = max(1.0, at.decoding if at else float(replica.most_sequences))
    step, prompt = replica.step(sequences), replica.mean_prefill
    ridge = compute_bound_from(replica.model, replica.rates)
    figures = [
        Figure(
            "prefill, mean prompt",
            prompt.total_ns,
            "ns",
            f"{prompt.bound}-bound: {_terms(prompt.compute_ns, prompt.memory_ns, prompt.communication_ns)}",
        ),
        Figure(
            "decode step",
            step.total_ns,
            "ns",
            f"{step.bound}-bound: {_terms(step.compute_ns, step.memory_ns, step.communication_ns)}",
        ),
        Figure("of it: weights", step.weights_ns, "ns", "bytes read / bandwidth, once for all sequences"),
        Figure(
            "of it: KV cache", step.kv_ns, "ns", f"{sequences:.3g} sequences of {replica.context_tokens:,.0f} tokens"
        ),
        Figure("compute-bound from", round(ridge), "sequences", "F·w/(2·B), the ridge point, KV aside"),
        *(_at_rate(at, layout, load) if at else ()),
        *_split(replica),
    ]
    return Answer(f"How fast: {layout.name}", figures, ["By Little's law and one queue for prompts: means, not tails."])


def _split(replica: Replica) -> Iterator[Figure]:
    """How many of each, if prefill and decode had replicas of their own."""
    n = replica.most_sequences
    if (ratio := prefill_per_decode(replica, n)) is not None:
        formula = f"replicas of each, if split: t / ((n-1)·step(B)/B), B = {n:,}"
        yield Figure("prefill : decode", ratio, "ratio", formula)


def _terms(compute_ns: float, memory_ns: float, communication_ns: float) -> str:
    together = f"max({units.time(compute_ns)} arithmetic, {units.time(memory_ns)} memory)"
    return together + (f" + {units.time(communication_ns)} sums" if communication_ns else "")


def _at_rate(at: Operating, layout: Layout, load: Load) -> Iterator[Figure]:
    asked = "asked for" if layout.wanted else "the most that meets the objectives"
    rate = at.requests_per_s * layout.n_replicas
    yield Figure("rate", rate, "requests/s", f"{asked}, over {units.count(layout.n_replicas, 'replica')}")
    yield Figure(
        "TTFT", at.ttft_ns, "ns", f"prefill + wait, with {units.share(at.prefill_share)} of the time in prefill"
    )
    yield Figure("TPOT", at.tpot_ns, "ns", "step / (1 - share in prefill)")
    yield Figure("E2E", at.e2e_ns, "ns", "TTFT + (n-1)·TPOT")
    yield Figure("in flight", at.in_flight * layout.n_replicas, "requests", "λ·W, W = E2E")
    yield Figure("output", rate * layout.replica.output_tokens, "tokens/s", "rate x mean output")
    if load.price_per_hour is not None:
        cards = layout.use.tp * layout.n_replicas
        of_tokens = 1e6 * cards * load.price_per_hour / (rate * layout.replica.output_tokens * 3600)
        yield Figure(
            "cost of 1 M output tokens", of_tokens, "$", f"{cards} cards x {load.price_per_hour:g} $/h / output"
        )
