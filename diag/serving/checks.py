"""Figures of a serving run that must agree, as each was found in another way. Where they do not, some are wrong.

Little's law              requests in flight = rate x mean time in the system (Little, Operations Research 9(3), 1961)
E2E = TTFT + (n - 1) TPOT by the definitions of `diag.model.serving_metrics`
conservation              tokens that arrived are those stated, engine steps compute what requests needed, each
                          request ends once, and a mean that a file states is that of its requests
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model.serving_metrics import LATENCY_NAMES, Latency, ServedRequest, end_ns, in_flight, latency, span_ns
from diag.serving.run import ServingRun


@dataclass(frozen=True)
class Check:
    """One figure, and the bounds between which another way of counting puts it; mostly both are the same."""

    name: str
    found: float
    least: float
    most: float
    unit: str  # of `diag.model.units`
    formula: str
    tolerance: float  # share of the larger figure
    why: str  # so much is tolerated

    @property
    def expected(self) -> float:
        """The figure within the bounds that is nearest to what was found."""
        return min(max(self.found, self.least), self.most)

    @property
    def deviation(self) -> float:
        """Share of the larger of both; 0 within the bounds."""
        larger = max(abs(self.found), abs(self.expected))
        return abs(self.found - self.expected) / larger if larger else 0.0

    @property
    def holds(self) -> bool:
        return self.deviation <= self.tolerance


EXACT = "both are counted"
STREAM = (
    "a stream closes a little after its last token, and a stated duration covers more than the requests; own choice"
)
CLOSED = "some clients read E2E when the stream closes, a little after the last token; own choice"
MEANS = "a mean of products is the product of means only where TPOT does not depend on the length; own choice"
SEVERAL = "an output holds one token or more, and some clients count tokens again with another tokenizer; own choice"
DRAFTS = "a sequence that ends inside accepted drafts drops the rest of them; own choice"
STATED = "files round what they state, and clients read their clock and count tokens at other moments; own choice"


def checks(run: ServingRun) -> list[Check]:
    """Those that the run has the figures for."""
    return [check for of in _CHECKS for check in of(run)]


def _equal(
    name: str, found: float, expected: float, unit: str, formula: str, tolerance: float = 0.0, why: str = EXACT
) -> Check:
    return Check(name, float(found), float(expected), float(expected), unit, formula, tolerance, why)


# ---- Little's law --------------------------------------------------------------------------------------------------


def littles_law(run: ServingRun) -> Iterator[Check]:
    """Between requests' own times and their E2E. Rejected requests count with the time that their refusal took."""
    times = [time for each in run.measured if (time := _time_ns(each)) is not None]
    over_ns = span_ns(run.requests)
    counted = None if not over_ns else in_flight(run.requests, over_ns)
    if counted is None or not over_ns or not times:
        return
    rate_per_ns = len(times) / (run.stated_duration_ns or over_ns)
    expected, formula = rate_per_ns * float(np.mean(times)), "∑(ended - sent) / time = requests / duration x mean time"
    yield _equal("Little's law", counted, expected, "requests", formula, 0.10, STREAM)


def _time_ns(request: ServedRequest) -> int | None:
    ended_ns = end_ns(request)
    if request.sent_ns is None or ended_ns is None:
        return None
    return request.e2e_ns if request.is_completed and request.e2e_ns is not None else ended_ns - request.sent_ns


def stated_littles_law(run: ServingRun) -> Iterator[Check]:
    """Between figures that a file states of requests that it does not hold."""
    of = run.stated("concurrency", "mean"), run.stated("request_rate", "value"), run.stated("e2e", "mean")
    if of[0] is not None and of[1] is not None and of[2] is not None:
        flight, rate, e2e = (figure.value for figure in of if figure is not None)
        formula = "stated requests in flight = stated rate x stated mean E2E"
        yield _equal("Little's law", flight, rate * e2e / 1e9, "requests", formula, 0.10, STREAM)


# ---- latencies -----------------------------------------------------------------------------------------------------


def end_to_end(run: ServingRun) -> Iterator[Check]:
    """Of requests whose outputs were timed one by one."""
    of = [each for each in run.completed if len(each.itl_ns) and each.ttft_ns is not None and each.e2e_ns is not None]
    if of:
        found = float(np.mean([each.e2e_ns for each in of if each.e2e_ns is not None]))
        expected = float(np.mean([(each.ttft_ns or 0) + int(each.itl_ns.sum()) for each in of]))
        yield _equal("E2E", found, expected, "ns", "mean E2E = mean (TTFT + sum of ITL)", 0.05, CLOSED)


def stated_end_to_end(run: ServingRun) -> Iterator[Check]:
    """Of means that a file states of requests that it does not hold."""
    e2e, ttft, tpot = (run.stated(name, "mean") for name in ("e2e", "ttft", "tpot"))
    tokens = run.stated("output_tokens", "total")
    if run.requests or e2e is None or ttft is None or tpot is None or tokens is None or not run.n_completed:
        return
    expected = ttft.value + max(tokens.value / run.n_completed - 1, 0) * tpot.value
    yield _equal("E2E", e2e.value, expected, "ns", "stated E2E = TTFT + (mean tokens - 1) x TPOT", 0.25, MEANS)


def stated_means(run: ServingRun) -> Iterator[Check]:
    """Of what a file states of requests that it holds."""
    of: Sequence[Latency] = ("ttft", "tpot", "itl", "e2e")
    for which in of:
        stated, counted = run.stated(which, "mean"), latency(run.requests, which)
        if stated is not None and counted is not None:
            formula = f"mean over completed requests = {stated.stated_as}, as the file states it"
            yield _equal(f"mean {LATENCY_NAMES[which]}", counted.mean, stated.value, "ns", formula, 0.02, STATED)


# ---- conservation --------------------------------------------------------------------------------------------------


def output_tokens(run: ServingRun) -> Iterator[Check]:
    """Where a file counts the tokens of each output, those that came and those that are stated are the same."""
    known = [each for each in run.completed if each.output_tokens is not None]
    counted = [each for each in known if each.output_counts is not None]
    timed = [each for each in known if each.output_counts is None and len(each.itl_ns)]
    if counted:
        found = sum(int(each.output_counts.sum()) for each in counted if each.output_counts is not None)
        formula = "∑ tokens of each output = ∑ output tokens of completed requests"
        yield _equal("output tokens", found, _sum(each.output_tokens for each in counted), "tokens", formula)
    if timed:
        found, most = sum(len(each.itl_ns) + 1 for each in timed), _sum(each.output_tokens for each in timed)
        formula = "outputs that arrived ≤ ∑ output tokens of completed requests"
        yield Check("outputs", found, 0, most, "count", formula, 0.01, SEVERAL)


def stated_tokens(run: ServingRun) -> Iterator[Check]:
    for name, attribute in (("output_tokens", "output_tokens"), ("input_tokens", "prompt_tokens")):
        stated, values = run.stated(name, "total"), [getattr(each, attribute) for each in run.completed]
        if stated is not None and values and None not in values:
            formula = f"∑ {attribute} of completed requests = {stated.stated_as}, as the file states it"
            yield _equal(name.replace("_", " "), sum(values), stated.value, "tokens", formula, 0.02, STATED)


def step_tokens(run: ServingRun) -> Iterator[Check]:
    """What the steps of an engine computed is what its requests needed, and what was lost and computed again.

    The last token of a request is put out and never computed. Drafts are counted apart; each that was accepted saves a
    token of decode. What a request that did not complete needed lies between nothing and all of it.
    """
    if not run.steps or any(_needed(each) is None for each in run.requests if each.is_completed):
        return
    again = sum(step.recomputed_tokens for step in run.steps)
    least = again + sum(_needed(each) or 0 for each in run.requests if each.is_completed)
    most = least + sum(_needed(each) or 0 for each in run.requests if each.outcome not in ("completed", "rejected"))
    yield Check(
        name="tokens of engine steps",
        found=sum(step.prefill_tokens + step.decode_tokens + step.accepted_tokens for step in run.steps),
        least=least,
        most=most,
        unit="tokens",
        formula="∑(prefill + decode + accepted drafts) = ∑(prompt - cached + output - 1) + recomputed",
        tolerance=0.01 if any(step.drafted_tokens for step in run.steps) else 0.0,
        why=DRAFTS if any(step.drafted_tokens for step in run.steps) else EXACT,
    )


def _needed(request: ServedRequest) -> int | None:
    if request.prompt_tokens is None or request.output_tokens is None:
        return None
    return request.prompt_tokens - (request.cached_tokens or 0) + max(request.output_tokens - 1, 0)


def requests(run: ServingRun) -> Iterator[Check]:
    """Each request that was meant to be sent is in the file once, unless the file is cut; a retry is one more."""
    if not run.requests:
        return
    if run.n_completed is not None:
        formula = "requests of the file that completed = those that it states"
        yield _equal("completed requests", len(run.completed), run.n_completed, "count", formula)
    if run.load.n_requests is not None and not run.is_cut:
        first = [each for each in run.measured if each.retry_of is None]
        formula = "completed + rejected + failed + cancelled + expired, without retries = requests to be sent"
        yield _equal("requests", len(first), run.load.n_requests, "count", formula)


def _sum(values: Iterable[int | None]) -> int:
    return sum(value or 0 for value in values)


_CHECKS: Sequence[Callable[[ServingRun], Iterator[Check]]] = (
    littles_law,
    stated_littles_law,
    end_to_end,
    stated_end_to_end,
    stated_means,
    output_tokens,
    stated_tokens,
    step_tokens,
    requests,
)
