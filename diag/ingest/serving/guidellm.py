"""Reader of guidellm's report (0.2 and newer, as JSON): a benchmark for each rate, with statistics and requests.

Times are seconds since 1970 as a float, which has a quarter of a microsecond. Its "inter token latency" is diag's TPOT;
its "time per output token" is E2E over all tokens, the first included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.serving import documents as doc
from diag.ingest.serving.documents import Left, Object, at, scalar
from diag.ingest.serving.store import FoundRun, add_source
from diag.model.serving_log import LoadConditions, Outcome
from diag.model.serving_metrics import ServedRequest
from diag.serving.run import StatedFigure
from diag.store.case import Case

KIND = "guidellm"

_SIGNS = (b'"guidellm_version"', b'"generative_benchmark"', b'"time_to_first_token_ms"', b'"request_totals"')


def looks_like_guidellm(head: bytes) -> bool:
    is_report = b'"benchmarks"' in head and any(sign in head for sign in _SIGNS)
    return head.lstrip()[:1] == b"{" and (is_report or b'"guidellm_version"' in head)


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id. Raises InputError."""
    report = doc.one_object(file.data, "report of guidellm")
    benchmarks = doc.decoded(report.get("benchmarks"), list[dict[str, msgspec.Raw]])
    if not benchmarks:
        raise InputError(f"{file.path} holds no benchmark of guidellm. Was the run interrupted at once?")
    doc.check_runs(len(benchmarks), file.path)
    left = Left()
    runs = [_run(benchmark, report, left) for benchmark in benchmarks]
    version = doc.text(scalar(at(report, "metadata", "guidellm_version")))
    return add_source(
        case,
        file,
        runs,
        left.notes(),
        tool="guidellm",
        tool_version=version and version[:40],
        time_resolution_ns=1000,
    )


def _run(benchmark: Object, report: Object, left: Left) -> FoundRun:
    found = sorted(_requests(benchmark, left), key=lambda each: (each.sent_ns is None, each.sent_ns or 0))
    start = min((each.sent_ns for each in found if each.sent_ns is not None), default=None)
    requests = [_since(each, number, start or 0) for number, each in enumerate(found)]
    metrics = doc.fields(benchmark.get("metrics"))
    load = _load(benchmark, len(requests))
    model = scalar(at(report, "args", "model")) or scalar(at(benchmark, "worker", "backend_model"))
    return FoundRun(
        label=_label(benchmark),
        model=doc.text(model),
        started_unix_ns=start,
        duration_ns=doc.duration_ns(scalar(benchmark.get("duration"))),
        n_completed=doc.whole(scalar(at(metrics, "request_totals", "successful"))),
        load=load,
        requests=requests,
        figures=doc.bounded(_figures(metrics)),
    )


# ---- load ----------------------------------------------------------------------------------------------------------

_ARRIVALS: Mapping[str, Any] = {
    "poisson": "poisson", "constant": "constant", "synchronous": "closed", "concurrent": "closed",
    "throughput": "at_once", "replay": "trace",
}  # fmt: skip


def _strategy(benchmark: Object) -> Object:
    """Where it stands differs between versions."""
    for place in (("config", "strategy"), ("args", "strategy"), ("scheduler", "strategy")):
        if found := doc.fields(at(benchmark, *place)):
            return found
    return {}


def _label(benchmark: Object) -> str | None:
    strategy = _strategy(benchmark)
    kind = doc.text(scalar(strategy.get("type_")))
    size = doc.number(scalar(strategy.get("rate"))) or doc.number(scalar(strategy.get("streams")))
    return kind if size is None or kind is None else f"{kind} {size:g}"


def _load(benchmark: Object, n_requests: int) -> LoadConditions:
    strategy = _strategy(benchmark)
    kind = str(scalar(strategy.get("type_")))
    arrival = _ARRIVALS.get(kind)
    rate = doc.number(scalar(strategy.get("rate")))
    streams = doc.whole(scalar(strategy.get("streams")))
    concurrency = 1 if kind == "synchronous" else streams or doc.whole(scalar(strategy.get("max_concurrency")))
    return LoadConditions(
        arrival=arrival,
        rate_per_s=rate if rate is not None and rate > 0 and arrival in ("poisson", "constant") else None,
        burstiness={"poisson": 1.0, "constant": 0.0}.get(kind),
        concurrency=concurrency,
        n_requests=n_requests or None,
    )


# ---- requests ------------------------------------------------------------------------------------------------------

_OUTCOMES: Mapping[str, Outcome] = {"successful": "completed", "errored": "failed", "incomplete": "cancelled"}


def _requests(benchmark: Object, left: Left) -> Iterator[ServedRequest]:
    """With moments since 1970: the earliest is not known yet. Versions differ in where times stand."""
    groups = doc.fields(benchmark.get("requests"))
    for name, outcome in _OUTCOMES.items():
        for request in doc.decoded(groups.get(name), list[dict[str, msgspec.Raw]]) or ():
            found = _request(request, outcome)
            if found is None:
                left.add("Requests whose times or counts cannot be, left out")
            else:
                yield found


def _request(request: Object, outcome: Outcome) -> ServedRequest | None:
    timings = doc.fields(at(request, "info", "timings")) or doc.fields(at(request, "scheduler_info", "request_timings"))

    def moment(*names: str) -> int | None:
        values = (scalar(place.get(name)) for name in names for place in (timings, request))
        return next((time for value in values if (time := doc.time_ns(value)) is not None), None)

    sent = moment("request_start", "start_time")
    first = moment("first_token_iteration", "first_iteration", "first_token_time")
    last = moment("last_token_iteration", "last_iteration", "last_token_time")
    end = moment("request_end", "end_time")
    times = [time for time in (sent, first, last, end) if time is not None]
    if times != sorted(times):
        return None
    error = scalar(at(request, "info", "error")) or scalar(request.get("error"))
    return ServedRequest(
        number=0,
        name=doc.text(scalar(request.get("request_id"))),
        outcome=outcome,
        prompt_tokens=_tokens(request, "prompt_tokens", "input_metrics"),
        output_tokens=_tokens(request, "output_tokens", "output_metrics"),
        intended_ns=moment("targeted_start"),
        sent_ns=sent,
        ended_ns=end,
        ttft_ns=None if first is None or sent is None else first - sent,
        e2e_ns=None if last is None or sent is None else last - sent,
        error=doc.text(error),
    )


def _tokens(request: Object, name: str, newer: str) -> int | None:
    found = doc.whole(scalar(request.get(name)))
    return found if found is not None else doc.whole(scalar(at(request, newer, "text_tokens")))


def _since(request: ServedRequest, number: int, start: int) -> ServedRequest:
    def later(time: int | None) -> int | None:
        return None if time is None else time - start

    intended = later(request.intended_ns)
    return replace(
        request,
        number=number,
        intended_ns=intended if intended is not None and intended <= (later(request.sent_ns) or 0) else None,
        sent_ns=later(request.sent_ns),
        ended_ns=later(request.ended_ns),
    )


# ---- figures -------------------------------------------------------------------------------------------------------

_NAMES: Mapping[str, tuple[str, float]] = {
    "time_to_first_token_ms": ("ttft", 1e6),
    "inter_token_latency_ms": ("tpot", 1e6),
    "time_per_output_token_ms": ("e2e_per_token", 1e6),
    "request_latency": ("e2e", 1e9),
    "requests_per_second": ("request_rate", 1),
    "request_concurrency": ("concurrency", 1),
    "output_tokens_per_second": ("output_token_rate", 1),
    "prompt_tokens_per_second": ("input_token_rate", 1),
    "tokens_per_second": ("total_token_rate", 1),
    "prompt_token_count": ("prompt_tokens", 1),
    "output_token_count": ("generated_tokens", 1),
}

_PERCENTILE = re.compile(r"p(\d{2})(\d?)")
_RATES: Sequence[str] = ("request_rate", "output_token_rate", "input_token_rate", "total_token_rate")


def _figures(metrics: Object) -> Iterator[StatedFigure]:
    """Of requests that completed. Percentiles of rates are of moments, and are left out."""
    for key, (name, factor) in _NAMES.items():
        block = doc.fields(at(metrics, key, "successful"))
        yield from doc.figure(name, "value" if name in _RATES else "mean", scalar(block.get("mean")), key, factor)
        if name in _RATES:
            continue
        for statistic, said in (("min", "min"), ("max", "max"), ("std", "std_dev"), ("p50", "median")):
            yield from doc.figure(name, statistic, scalar(block.get(said)), key, factor)
        for statistic, raw in doc.fields(block.get("percentiles")).items():
            if statistic != "p50" and (match := _PERCENTILE.fullmatch(statistic)):
                called = f"p{int(match[1])}" if not match[2] else f"p{int(match[1])}.{match[2]}"
                yield from doc.figure(name, called, scalar(raw), key, factor)
    for name, group in (("completed", "successful"), ("failed", "errored"), ("cancelled", "incomplete")):
        total = scalar(at(metrics, "request_totals", group))
        yield from doc.figure(name, "value", total, f"request_totals.{group}")
