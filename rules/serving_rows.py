"""Serving runs, as a report has them: plain data, for every renderer and the stored case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import msgspec

from diag.model.serving_log import EngineConditions
from diag.model.serving_metrics import (
    LATENCIES,
    LATENCY_NAMES,
    Distribution,
    Latency,
    Objective,
    Rates,
    counts,
    in_flight,
    latency,
    rates,
)
from diag.rules.thresholds import SMALLEST, Limits
from diag.serving.alike import tokens_of
from diag.serving.buckets import Bucket, by_prompt_length, early_stops
from diag.serving.checks import checks
from diag.serving.engine_figures import KvFigures, StepFigures, engine_figures
from diag.serving.run import ServingRun


@dataclass(frozen=True)
class LatencyRow:
    """Of completed requests; of ITL, of the gaps between their outputs. None: not known."""

    name: str  # 'ttft', a key of LATENCY_NAMES
    count: int | None
    mean_ns: float | None
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None
    max_ns: float | None
    is_stated: bool  # by the file, which does not hold what it is worked out from

    @property
    def title(self) -> str:
        return next(title for name, title in LATENCY_NAMES.items() if name == self.name)


@dataclass(frozen=True)
class PromptBucketRow:
    """Completed requests whose prompts had `least_tokens` to `most_tokens`."""

    least_tokens: int
    most_tokens: int
    count: int
    ttft_p50_ns: float | None
    ttft_p99_ns: float | None
    tpot_p50_ns: float | None
    tpot_p99_ns: float | None
    e2e_p50_ns: float | None
    e2e_p99_ns: float | None


@dataclass(frozen=True)
class StatedRow:
    name: str  # of `diag.model.serving_figures`
    statistic: str
    value: float
    unit: str
    stated_as: str


@dataclass(frozen=True)
class CheckRow:
    """Two figures that must agree."""

    name: str
    found: float
    expected: float
    unit: str
    formula: str
    deviation: float
    tolerance: float
    why: str
    holds: bool


@dataclass(frozen=True)
class ObjectiveRow:
    """What goodput is about; None: no limit."""

    ttft_ns: float | None
    tpot_ns: float | None


@dataclass(frozen=True)
class ServingRunRow:
    """One load on a server. None: not known. Requests that did not complete are counted, and are in no other figure."""

    source: int
    name: str
    backend: str | None
    model: str | None
    arrival: str | None
    rate_per_s: float | None  # as intended
    burstiness: float | None
    concurrency: int | None
    prompt_lengths: str | None
    output_lengths: str | None
    shared_prefix_share: float | None
    settings: Mapping[str, str]  # of the engine, as far as it says
    has_requests: bool  # the file holds them, one by one
    sent: int | None
    completed: int | None
    rejected: int | None
    failed: int | None
    cancelled: int | None
    expired: int | None
    warm_up: int
    mean_prompt_tokens: float | None  # of completed requests
    mean_output_tokens: float | None
    stopped_early: int | None  # completed requests with fewer output tokens than were asked for
    duration_ns: int | None
    requests_per_s: float | None
    input_tokens_per_s: float | None
    output_tokens_per_s: float | None
    goodput_per_s: float | None
    objective: ObjectiveRow | None
    in_flight: float | None  # on average
    latencies: Sequence[LatencyRow]
    by_prompt: Sequence[PromptBucketRow]  # ascending; empty where prompts are alike or few
    kv_cache: KvFigures | None
    engine_steps: StepFigures | None
    most_waiting: int | None  # in the queue of the engine
    checks: Sequence[CheckRow]
    stated: Sequence[StatedRow]  # by a file that does not hold the requests; empty where it does


def serving_run_rows(runs: Sequence[ServingRun], goodput: Limits) -> list[ServingRunRow]:
    """`goodput`: thresholds of the rule `serving.goodput`."""
    return [_row(run, objective_of(goodput)) for run in runs]


def objective_of(goodput: Limits) -> Objective | None:
    """From thresholds `ttft_ms` and `tpot_ms`, where 0, which is read as a tiny one, is no limit; None without any."""
    limits = {name: goodput.get(f"{name}_ms", 0.0) for name in ("ttft", "tpot")}
    ttft_ns, tpot_ns = (ms * 1e6 if ms > SMALLEST else None for ms in limits.values())
    return None if ttft_ns is None and tpot_ns is None else Objective(ttft_ns, tpot_ns)


def _row(run: ServingRun, objective: Objective | None) -> ServingRunRow:
    load, counted, early = run.load, counts(run.requests), early_stops(run.requests)
    has_requests, engine, rate = bool(run.measured), engine_figures(run), _rates(run, objective)
    return ServingRunRow(
        source=run.source_id,
        name=run.name,
        backend=run.backend,
        model=run.model,
        arrival=load.arrival,
        rate_per_s=load.rate_per_s,
        burstiness=load.burstiness,
        concurrency=load.concurrency,
        prompt_lengths=load.prompt_lengths,
        output_lengths=load.output_lengths,
        shared_prefix_share=load.shared_prefix_share,
        settings=_settings(run.engine),
        has_requests=has_requests,
        sent=counted.sent if has_requests else run.n_requests,
        completed=counted.completed if has_requests else run.n_completed,
        rejected=counted.rejected if has_requests else None,
        failed=counted.failed if has_requests else None,
        cancelled=counted.cancelled if has_requests else None,
        expired=counted.expired if has_requests else None,
        warm_up=len(run.requests) - len(run.measured),
        mean_prompt_tokens=tokens_of(run, "prompt_tokens"),
        mean_output_tokens=tokens_of(run, "output_tokens"),
        stopped_early=early.stopped if early else None,
        duration_ns=run.duration_ns,
        requests_per_s=rate.requests_per_s if rate else _stated_rate(run, "request_rate", run.n_completed),
        input_tokens_per_s=rate.input_tokens_per_s if rate else _stated_token_rate(run, "input"),
        output_tokens_per_s=rate.output_tokens_per_s if rate else _stated_token_rate(run, "output"),
        goodput_per_s=rate.goodput_per_s if rate and objective else None,
        objective=ObjectiveRow(objective.ttft_ns, objective.tpot_ns) if objective else None,
        in_flight=_in_flight(run),
        latencies=[row for which in LATENCIES if (row := _latency(run, which)) is not None],
        by_prompt=[_bucket(bucket) for bucket in by_prompt_length(run.requests)],
        kv_cache=engine.kv if engine else None,
        engine_steps=engine.steps if engine else None,
        most_waiting=engine.most_waiting if engine else None,
        checks=[
            CheckRow(
                c.name, float(c.found), float(c.expected), c.unit, c.formula, c.deviation, c.tolerance, c.why, c.holds
            )
            for c in checks(run)
        ],
        stated=[] if has_requests else [StatedRow(**asdict(figure)) for figure in run.figures],
    )


def _settings(engine: EngineConditions | None) -> dict[str, str]:
    """What is known, in words."""
    if engine is None:
        return {}
    told = msgspec.structs.asdict(engine)
    other = told.pop("other")
    return {name: str(value) for name, value in told.items() if value is not None} | dict(other)


def _rates(run: ServingRun, objective: Objective | None) -> Rates | None:
    """Over the requests of the file, or what it counts; None where it holds neither, or no duration."""
    return rates(run.requests, run.duration_ns, objective) if run.duration_ns and run.measured else None


def _in_flight(run: ServingRun) -> float | None:
    counted = in_flight(run.requests, run.duration_ns) if run.duration_ns else None
    return counted if counted is not None else _stated(run, "concurrency", "mean")


def _stated_token_rate(run: ServingRun, side: str) -> float | None:
    return _stated_rate(run, f"{side}_token_rate", _stated(run, f"{side}_tokens", "total"))


def _stated_rate(run: ServingRun, name: str, total: float | None) -> float | None:
    """As stated, else what is stated in total over the duration."""
    stated = _stated(run, name, "value")
    if stated is not None or total is None or not run.duration_ns:
        return stated
    return total / (run.duration_ns / 1e9)


def _stated(run: ServingRun, name: str, statistic: str) -> float | None:
    figure = run.stated(name, statistic)
    return None if figure is None else figure.value


def _latency(run: ServingRun, which: Latency) -> LatencyRow | None:
    """Of the requests, else what the file states."""
    of = latency(run.requests, which)
    if of is not None:
        return LatencyRow(which, of.count, of.mean, of.p50, of.p95, of.p99, of.largest, is_stated=False)
    mean, p50, p95, p99, largest = (_stated(run, which, each) for each in ("mean", "p50", "p95", "p99", "max"))
    row = LatencyRow(which, None, mean, p50, p95, p99, largest, is_stated=True)
    return None if mean is p50 is p95 is p99 is largest is None else row


def _bucket(bucket: Bucket) -> PromptBucketRow:
    ttft, tpot, e2e = (latency(bucket.requests, which) for which in _OF_BUCKETS)
    return PromptBucketRow(
        bucket.least,
        bucket.most,
        len(bucket.requests),
        *(value for of in (ttft, tpot, e2e) for value in _middle_and_tail(of)),
    )


_OF_BUCKETS: Sequence[Latency] = ("ttft", "tpot", "e2e")


def _middle_and_tail(of: Distribution | None) -> tuple[float | None, float | None]:
    return (None, None) if of is None else (of.p50, of.p99)
