"""How serving is judged: each metric defined once, for our own runs and for the files of others.

Of one request, on the client's clock unless it says engine:

    send delay   sent - intended      what the load generator itself was late; never hidden in another figure
    queue time   scheduled - queued   (engine) waiting for its first step
    TTFT         first output - sent  time to first token
    ITL          gaps between outputs that follow each other; an output may hold several tokens
    TPOT         (E2E - TTFT) / (n - 1), n output tokens: time per output token after the first; n ≥ 2
    E2E          last output - sent

so that E2E = TTFT + (n - 1) TPOT. These are the definitions of vLLM's `benchmark_serving.py` and NVIDIA's GenAI-Perf,
with one difference: requests that did not complete are counted apart and are in no mean.

Of a run, over the time from the first measured request that was sent to the last that ended: request rate, input and
output tokens per second of completed requests, and goodput, the rate of completed requests that met all objectives
(Zhong et al., DistServe, OSDI 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from diag.model.serving_log import Outcome, Phase

PERCENTILES = (50, 95, 99)

Nanoseconds = NDArray[np.int64]

_NONE: Nanoseconds = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class ServedRequest:
    """One request of a run, out of whatever file. None: not seen."""

    number: int  # in the order of sending
    name: str | None = None
    phase: Phase = "measured"
    outcome: Outcome = "completed"
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    max_output_tokens: int | None = None
    intended_ns: int | None = None
    sent_ns: int | None = None
    queued_ns: int | None = None
    scheduled_ns: int | None = None
    ended_ns: int | None = None
    ttft_ns: int | None = None
    e2e_ns: int | None = None
    itl_ns: Nanoseconds = field(default_factory=lambda: _NONE)  # (outputs - 1,)
    output_counts: Nanoseconds | None = None  # (outputs,): tokens of each; None: one each
    finish_reason: str | None = None
    error: str | None = None
    n_preemptions: int | None = None
    retry_of: str | None = None
    priority: int | None = None
    session: str | None = None

    @property
    def is_completed(self) -> bool:
        return self.outcome == "completed"

    @property
    def send_delay_ns(self) -> int | None:
        return _difference(self.sent_ns, self.intended_ns)

    @property
    def queue_ns(self) -> int | None:
        return _difference(self.scheduled_ns, self.queued_ns)

    @property
    def first_token_ns(self) -> int | None:
        return None if self.sent_ns is None or self.ttft_ns is None else self.sent_ns + self.ttft_ns

    @property
    def tpot_ns(self) -> float | None:
        """None with fewer than two output tokens: there is no time after the first."""
        if self.e2e_ns is None or self.ttft_ns is None or self.output_tokens is None or self.output_tokens < 2:
            return None
        return (self.e2e_ns - self.ttft_ns) / (self.output_tokens - 1)

    @property
    def stopped_early(self) -> bool | None:
        """Whether it put out fewer tokens than were asked for, as after an end-of-sequence token."""
        if self.max_output_tokens is None or self.output_tokens is None:
            return None
        return self.output_tokens < self.max_output_tokens


def _difference(later: int | None, earlier: int | None) -> int | None:
    return None if later is None or earlier is None else later - earlier


def measured(requests: Iterable[ServedRequest]) -> list[ServedRequest]:
    """Without warm-up."""
    return [each for each in requests if each.phase == "measured"]


def completed(requests: Iterable[ServedRequest]) -> list[ServedRequest]:
    """Those that latencies and token rates are about."""
    return [each for each in requests if each.phase == "measured" and each.is_completed]


# ---- distributions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Distribution:
    """Of `count` values, in their unit. Percentiles are linearly interpolated (NumPy's default)."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    largest: float

    def percentile(self, which: int) -> float:
        """Raises KeyError for one that is none of PERCENTILES."""
        return {50: self.p50, 95: self.p95, 99: self.p99}[which]


def distribution(values: Iterable[float | None] | NDArray[np.float64] | Nanoseconds) -> Distribution | None:
    """Of the values that are there; None without any."""
    array = values if isinstance(values, np.ndarray) else np.array([v for v in values if v is not None], np.float64)
    if not len(array):
        return None
    p50, p95, p99 = (float(p) for p in np.percentile(array, PERCENTILES))
    return Distribution(len(array), float(array.mean()), p50, p95, p99, float(array.max()))


Latency = Literal["send_delay", "queue", "ttft", "tpot", "itl", "e2e"]

LATENCIES: tuple[Latency, ...] = ("send_delay", "queue", "ttft", "tpot", "itl", "e2e")

LATENCY_NAMES: dict[Latency, str] = {
    "send_delay": "send delay",
    "queue": "queue time",
    "ttft": "TTFT",
    "tpot": "TPOT",
    "itl": "ITL",
    "e2e": "E2E",
}

_OF_REQUEST: dict[Latency, Callable[[ServedRequest], float | None]] = {
    "send_delay": lambda request: request.send_delay_ns,
    "queue": lambda request: request.queue_ns,
    "ttft": lambda request: request.ttft_ns,
    "tpot": lambda request: request.tpot_ns,
    "e2e": lambda request: request.e2e_ns,
}


def latency_values(requests: Sequence[ServedRequest], which: Latency) -> NDArray[np.float64]:
    """(values,) in ns, of completed, measured requests; for 'itl' one value for each gap of each request."""
    of = completed(requests)
    if which == "itl":
        gaps = [each.itl_ns for each in of if len(each.itl_ns)]
        return np.concatenate(gaps).astype(np.float64) if gaps else np.empty(0)
    return np.array([value for each in of if (value := _OF_REQUEST[which](each)) is not None], np.float64)


def latency(requests: Sequence[ServedRequest], which: Latency) -> Distribution | None:
    return distribution(latency_values(requests, which))


# ---- rates ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Objective:
    """A service level objective. None: no limit."""

    ttft_ns: float | None = None
    tpot_ns: float | None = None
    e2e_ns: float | None = None

    def is_met(self, request: ServedRequest) -> bool | None:
        """None where a limit is set for what was not seen. A single output token has no TPOT, and meets it; an answer
        without any token meets nothing.
        """
        if not request.is_completed or request.output_tokens == 0:
            return False
        tpot_ns = 0.0 if request.output_tokens == 1 else request.tpot_ns
        pairs = ((self.ttft_ns, request.ttft_ns), (self.tpot_ns, tpot_ns), (self.e2e_ns, request.e2e_ns))
        limits = [(limit, value) for limit, value in pairs if limit is not None]
        if any(value is not None and value > limit for limit, value in limits):
            return False
        return None if any(value is None for _, value in limits) else True


@dataclass(frozen=True)
class Counts:
    """Of measured requests. Each is counted once."""

    sent: int
    completed: int
    rejected: int
    failed: int
    cancelled: int
    expired: int

    @property
    def error_share(self) -> float:
        return (self.failed + self.expired) / self.sent if self.sent else 0.0

    @property
    def rejection_share(self) -> float:
        return self.rejected / self.sent if self.sent else 0.0


def counts(requests: Iterable[ServedRequest]) -> Counts:
    outcomes = [each.outcome for each in measured(requests)]
    return Counts(
        len(outcomes), *(outcomes.count(each) for each in ("completed", "rejected", "failed", "cancelled", "expired"))
    )


def span_ns(requests: Iterable[ServedRequest]) -> int | None:
    """From the first measured request that was sent to the last that ended; None where the file has no such times."""
    of = [each for each in measured(requests) if each.sent_ns is not None]
    ends = [end for each in of if (end := end_ns(each)) is not None]
    if not of or not ends:
        return None
    return max(ends) - min(each.sent_ns for each in of if each.sent_ns is not None)


def end_ns(request: ServedRequest) -> int | None:
    if request.ended_ns is not None:
        return request.ended_ns
    return None if request.sent_ns is None or request.e2e_ns is None else request.sent_ns + request.e2e_ns


@dataclass(frozen=True)
class Rates:
    """Over `over_ns`. Tokens of completed requests only; goodput is None without an objective or what it needs."""

    over_ns: int
    requests_per_s: float
    input_tokens_per_s: float | None
    output_tokens_per_s: float | None
    goodput_per_s: float | None = None


def rates(requests: Sequence[ServedRequest], over_ns: int, objective: Objective | None = None) -> Rates:
    """`over_ns` > 0: `span_ns`, or what the file states of its duration."""
    of, seconds = completed(requests), over_ns / 1e9
    met = [objective.is_met(each) for each in of] if objective else [None]
    return Rates(
        over_ns=over_ns,
        requests_per_s=len(of) / seconds,
        input_tokens_per_s=_total(each.prompt_tokens for each in of) / seconds if _all(of, "prompt_tokens") else None,
        output_tokens_per_s=_total(each.output_tokens for each in of) / seconds if _all(of, "output_tokens") else None,
        goodput_per_s=None if None in met else sum(map(bool, met)) / seconds,
    )


def _all(requests: Sequence[ServedRequest], name: str) -> bool:
    return all(getattr(each, name) is not None for each in requests)


def _total(values: Iterable[int | None]) -> int:
    return sum(value or 0 for value in values)


def prefix_hit_share(requests: Iterable[ServedRequest]) -> float | None:
    """Of the prompt tokens of completed requests those that the prefix cache held; None where that was not seen."""
    of = [each for each in completed(requests) if each.cached_tokens is not None and each.prompt_tokens]
    total = _total(each.prompt_tokens for each in of)
    return _total(each.cached_tokens for each in of) / total if total else None


def in_flight(requests: Iterable[ServedRequest], over_ns: int) -> float | None:
    """Mean number of requests between sent and ended: ∑(ended - sent) / over, by counting and not by Little's law."""
    spans = [end - each.sent_ns for each in measured(requests) if each.sent_ns is not None
             and (end := end_ns(each)) is not None]  # fmt: skip
    return sum(spans) / over_ns if spans and over_ns > 0 else None
