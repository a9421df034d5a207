"""A replica that prefills and decodes by turns: how long requests take at a rate of arrivals, and the highest rate.

With λ arrivals per second, prompts take ρ = λ·E[t] of the time (t: a prefill); decoding has the rest, so that a step of
B sequences comes every step(B) / (1 − ρ). By Little's law B = λ·(n − 1)·TPOT, which is solved for B. A prompt waits for
those before it λ·E[t²] / (2·(1 − ρ)) on average (Pollaczek, Khinchine: arrivals by Poisson, one server, first come
first served). What a prompt waits for a decode step that is under way is left out, as are tails: these are means.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diag.model.card_budget import CardBudget
from diag.model.planned_requests import Requests
from diag.model.serving_capacity import mean_context_tokens
from diag.model.serving_roofline import CardRates, ServedModel, StepTime, decode, prefill

QUANTILES = 64
"""Prompts, evenly spaced by rank, that stand for all of them."""
HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Replica:
    """`most_sequences`: that may decode at once, as the KV pool or a limit of the engine allows."""

    model: ServedModel
    rates: CardRates
    budget: CardBudget
    requests: Requests
    most_sequences: int

    @cached_property
    def prefills_ns(self) -> np.ndarray:
        at = (np.arange(QUANTILES) + 0.5) / QUANTILES
        prompts = np.quantile(self.requests.prompt_tokens, at)
        return np.array([prefill(self.model, self.rates, float(tokens)).total_ns for tokens in prompts])

    @cached_property
    def mean_prefill(self) -> StepTime:
        return prefill(self.model, self.rates, float(self.requests.prompt_tokens.mean()))

    @property
    def prefill_ns(self) -> float:
        """Mean, over the prompts."""
        return float(self.prefills_ns.mean())

    @cached_property
    def context_tokens(self) -> float:
        return mean_context_tokens(self.requests)

    @property
    def output_tokens(self) -> float:
        return float(self.requests.output_tokens.mean())

    def step(self, sequences: float) -> StepTime:
        return decode(self.model, self.rates, sequences, self.context_tokens)


@dataclass(frozen=True)
class Operating:
    """Means at a rate."""

    requests_per_s: float
    prefill_share: float  # of the time: ρ
    decoding: float  # sequences at once
    ttft_ns: float
    tpot_ns: float
    e2e_ns: float

    @property
    def in_flight(self) -> float:
        """λ·E2E."""
        return self.requests_per_s * self.e2e_ns / 1e9


def operating(replica: Replica, requests_per_s: float) -> Operating | None:
    """None: more than the replica can do. The queue then grows without bound."""
    prefill_share = requests_per_s * replica.prefill_ns / 1e9
    if prefill_share >= 1 or replica.most_sequences < 1:
        return None
    decoding = _decoding(replica, requests_per_s, prefill_share)
    if decoding is None:
        return None
    tpot_ns = replica.step(decoding).total_ns / (1 - prefill_share)
    second_moment = float((replica.prefills_ns**2).mean())
    waits_ns = requests_per_s * second_moment / (2 * (1 - prefill_share)) / 1e9
    ttft_ns = waits_ns + replica.prefill_ns
    e2e_ns = ttft_ns + (replica.output_tokens - 1) * tpot_ns
    return Operating(requests_per_s, prefill_share, decoding, ttft_ns, tpot_ns, e2e_ns)


def _decoding(replica: Replica, requests_per_s: float, prefill_share: float) -> float | None:
    """B = λ·(n − 1)·step(B)/(1 − ρ), by halving; None where so many do not fit."""
    after_first = replica.output_tokens - 1

    def lacking(sequences: float) -> float:
        step_s = replica.step(sequences).total_ns / (1 - prefill_share) / 1e9
        return requests_per_s * after_first * step_s - sequences

    low, high = 0.0, float(replica.most_sequences)
    if lacking(high) > 0:
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if lacking(middle) > 0 else (low, middle)
    return high


@dataclass(frozen=True)
class Objectives:
    """Of the mean request. None: no limit."""

    ttft_ns: float | None = None
    tpot_ns: float | None = None

    def are_met(self, by: Operating) -> bool:
        pairs = ((self.ttft_ns, by.ttft_ns), (self.tpot_ns, by.tpot_ns))
        return all(limit is None or value <= limit for limit, value in pairs)


def largest_rate(replica: Replica, objectives: Objectives) -> Operating | None:
    """The highest rate that meets the objectives, by halving: both times grow with the rate. None: not even one."""
    low, high, best = 0.0, 1e9 / replica.prefill_ns, None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = operating(replica, middle)
        if found is not None and objectives.are_met(found):
            low, best = middle, found
        else:
            high = middle
    return best if best is not None and best.requests_per_s > 1e-9 else None


def prefill_per_decode(replica: Replica, sequences: float) -> float | None:
    """Replicas that only prefill, for each that only decodes so many at once: t / ((n − 1)·step(B) / B).

    Zhong et al. 2024 (DistServe, OSDI), section 4: both kinds then keep up with the same arrivals.
    None: outputs of one token have nothing to decode.
    """
    per_request_ns = (replica.output_tokens - 1) * replica.step(sequences).total_ns / sequences
    return replica.prefill_ns / per_request_ns if per_request_ns else None
