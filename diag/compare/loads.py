"""Loads on a server as a comparison needs them: how each is found again, its latencies and its rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from diag.compare.noise import Values
from diag.model.serving_metrics import Latency, latency_values
from diag.rules.document import LatencyOf, ServingRunOf
from diag.serving.run import ServingRun

COMPARED: Sequence[Latency] = ("ttft", "tpot", "itl", "e2e")

RATES: Mapping[str, str] = {
    "requests_per_s": "requests/s",
    "goodput_per_s": "goodput/s",
    "output_tokens_per_s": "output tokens/s",
    "input_tokens_per_s": "input tokens/s",
}
"""Fields of a report's run, with their names for people."""


@dataclass(frozen=True)
class Percentiles:
    """Of one latency, in ns; None where the file does not tell."""

    p50_ns: float | None
    p99_ns: float | None
    each_ns: Values | None = None  # None where only figures are known, as of a report


@dataclass(frozen=True, eq=False)
class Load:
    key: str  # the same for the same load on the other side
    offered: float  # a rate or what is in flight: larger is heavier
    latencies: Mapping[Latency, Percentiles]
    rates: Mapping[str, float]  # by the names of RATES
    settings: Mapping[str, str]  # of the engine
    mean_output_tokens: float | None
    requests: Lengths | None = None


@dataclass(frozen=True, eq=False)
class Lengths:
    """Of completed requests, of which both are known: (requests,) each."""

    output_tokens: NDArray[np.int64]
    e2e_ns: Values = field(repr=False)


def loads_of(runs: Sequence[ServingRunOf]) -> list[Load]:
    """As a report tells them. Loads that are offered alike are told apart by their order."""
    seen: Counter[str] = Counter()
    found = []
    for run in runs:
        key = _key(run)
        seen[key] += 1
        found.append(_load(run, key if seen[key] == 1 else f"{key} ({seen[key]})"))
    return found


def _key(run: ServingRunOf) -> str:
    if run.rate_per_s is not None:
        return f"{run.rate_per_s:g} requests/s"
    if run.concurrency is not None:
        return f"{run.concurrency:,} in flight"
    return "all at once" if run.arrival == "at_once" else run.name


def _load(run: ServingRunOf, key: str) -> Load:
    told = {each.name: each for each in run.latencies}
    rates = {title: rate for name, title in RATES.items() if (rate := getattr(run, name)) is not None}
    return Load(
        key=key,
        offered=run.rate_per_s or run.concurrency or 0.0,
        latencies={which: _percentiles(told[which]) for which in COMPARED if which in told},
        rates=rates,
        settings=run.settings,
        mean_output_tokens=run.mean_output_tokens,
    )


def _percentiles(of: LatencyOf) -> Percentiles:
    return Percentiles(of.p50_ns, of.p99_ns)


def with_requests(loads: Sequence[Load], runs: Sequence[ServingRun]) -> list[Load]:
    """The same with every value, of the runs that they were told of."""
    return [_with_requests(load, run) for load, run in zip(loads, runs, strict=True)]


def _with_requests(load: Load, run: ServingRun) -> Load:
    values = {which: latency_values(run.requests, which) for which in load.latencies}
    latencies = {
        which: replace(of, each_ns=values[which]) if len(values[which]) else of for which, of in load.latencies.items()
    }
    pairs = [(e.output_tokens, e.e2e_ns) for e in run.completed if e.output_tokens is not None and e.e2e_ns is not None]
    tokens, e2e_ns = zip(*pairs, strict=True) if pairs else ((), ())
    lengths = Lengths(np.array(tokens, np.int64), np.array(e2e_ns, np.float64)) if pairs else None
    return replace(load, latencies=latencies, requests=lengths)
