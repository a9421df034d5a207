"""Readers of what NVIDIA's GenAI-Perf and AIPerf sum up, and of AIPerf's records, one request a line.

Both tools call TPOT "inter token latency": (request latency - TTFT) / (output tokens - 1) of one request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from diag.errors import InputError
from diag.ingest.input_file import LONGEST_NS, InputFile, instant
from diag.ingest.serving import documents as doc
from diag.ingest.serving.documents import Left, Object, at, scalar
from diag.ingest.serving.store import FoundRun, add_source
from diag.model.serving_figures import UNITS
from diag.model.serving_log import LoadConditions, Outcome
from diag.model.serving_metrics import Nanoseconds, ServedRequest
from diag.serving.run import StatedFigure
from diag.store.case import Case

SUMMARY = "aiperf"
RECORDS = "aiperf-records"

_METRICS = (b'"request_throughput"', b'"request_latency"', b'"time_to_first_token"', b'"output_token_throughput"')


def looks_like_summary(head: bytes) -> bool:
    """Of either tool: both write one object with an object of statistics for each metric."""
    is_object = head.lstrip()[:1] == b"{"
    return is_object and b'"unit"' in head and b'"avg"' in head and any(metric in head for metric in _METRICS)


def looks_like_records(head: bytes) -> bool:
    signs = (b'"metadata"', b'"metrics"', b'"request_start_ns"')
    return head.lstrip()[:1] == b"{" and all(sign in head for sign in signs)


# ---- the summary ---------------------------------------------------------------------------------------------------

_NAMES: Mapping[str, str] = {
    "time_to_first_token": "ttft",
    "ttft": "ttft",
    "inter_token_latency": "tpot",
    "inter_chunk_latency": "itl",
    "request_latency": "e2e",
    "request_throughput": "request_rate",
    "output_token_throughput": "output_token_rate",
    "input_token_throughput": "input_token_rate",
    "total_token_throughput": "total_token_rate",
    "goodput": "goodput",
    "request_goodput": "goodput",
    "request_count": "completed",
    "error_request_count": "failed",
    "input_sequence_length": "prompt_tokens",
    "output_sequence_length": "generated_tokens",
    "total_isl": "input_tokens",
    "total_osl": "output_tokens",
    "benchmark_duration": "duration",
}

_FACTORS: Mapping[str, float] = {
    "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9, "seconds": 1e9, "tokens": 1, "requests": 1, "tokens/sec": 1,
    "requests/sec": 1,
}  # fmt: skip
"""From the units of the file to those of the figures."""

_TIMES = frozenset({"ns", "us", "ms", "s", "sec", "seconds"})

_STATISTIC = re.compile(r"avg|min|max|std|p\d{1,2}(?:\.\d{1,3})?")


def read_summary(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id. Raises InputError."""
    document = doc.one_object(file.data, "summary of GenAI-Perf or AIPerf")
    version = doc.text(scalar(document.get("aiperf_version")))
    run = _summed_up(document)
    if not run.figures:
        raise InputError(f"{file.path} states no metric that diag knows. Pass the records of the run instead.")
    return add_source(
        case,
        file,
        [run],
        tool="AIPerf" if version else None,
        tool_version=version and version[:40],
        schema_version=doc.text(scalar(document.get("schema_version"))),
    )


def _summed_up(document: Object) -> FoundRun:
    metrics = doc.fields(document.get("records")) or document
    figures = doc.bounded(_figures(metrics))

    def stated(name: str) -> float | None:
        return next((each.value for each in figures if (each.name, each.statistic) == (name, "value")), None)

    return FoundRun(
        model=_model(document),
        duration_ns=doc.duration_ns(stated("duration"), 1),
        n_completed=doc.whole(stated("completed")),
        load=_load(document),
        figures=figures,
    )


def _figures(metrics: Object) -> Iterator[StatedFigure]:
    for key, raw in metrics.items():
        name = _NAMES.get(key)
        if name is None:
            continue
        block = doc.fields(raw)
        unit = str(scalar(block.get("unit")))
        if unit not in _FACTORS or (unit in _TIMES) != (UNITS[name] == "ns"):
            continue
        is_distribution = any(statistic in block for statistic in ("p50", "min", "max"))
        for statistic, value in block.items():
            if _STATISTIC.fullmatch(statistic):
                called = statistic if statistic != "avg" else "mean" if is_distribution else "value"
                yield from doc.figure(name, called, scalar(value), key, _FACTORS[unit])


def _model(document: Object) -> str | None:
    for place in (("model",), ("model_names",), ("endpoint", "model_names"), ("endpoint", "model")):
        raw = at(document, "input_config", *place)
        names = doc.decoded(raw, list[str]) if raw is not None else None
        if found := (names[0] if names else doc.text(scalar(raw))):
            return found
    return None


def _load(document: Object) -> LoadConditions:
    def said(name: str) -> float | None:
        places = ((name,), ("loadgen", name), ("perf_analyzer", "stimulus", name))
        values = (doc.number(scalar(at(document, "input_config", *place))) for place in places)
        return next((value for value in values if value is not None and value > 0), None)

    rate, concurrency = said("request_rate"), doc.whole(said("concurrency"))
    mode = scalar(at(document, "input_config", "loadgen", "arrival_pattern")) or scalar(
        at(document, "input_config", "loadgen", "request_rate_mode")
    )
    arrival: Any = None
    if rate is not None:
        arrival = mode if mode in ("poisson", "gamma", "constant") else None
    elif concurrency is not None:
        arrival = "closed"
    return LoadConditions(arrival=arrival, rate_per_s=rate, concurrency=concurrency)


# ---- the records ---------------------------------------------------------------------------------------------------


class _Metadata(msgspec.Struct):
    request_start_ns: int
    request_end_ns: int | None = None
    x_request_id: str | None = None
    conversation_id: str | None = None
    benchmark_phase: str | None = None
    was_cancelled: bool | None = None


class _Error(msgspec.Struct):
    code: int | None = None
    type: str | None = None
    message: str | None = None


class _Record(msgspec.Struct):
    metadata: _Metadata
    metrics: dict[str, msgspec.Raw] = {}
    error: _Error | None = None


MOST_RECORDS = 5_000_000


def read_records(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id. Raises InputError."""
    left = Left()
    records = sorted(_records(file, left), key=lambda record: record.metadata.request_start_ns)
    if not records:
        raise InputError(f"{file.path} holds no whole record of AIPerf. Was the run interrupted at once?")
    start = records[0].metadata.request_start_ns
    made = (_served(record, number, start) for number, record in enumerate(records))
    requests = [each for each in made if each is not None]
    left.add("Records whose times or counts cannot be, left out", len(records) - len(requests))
    run = FoundRun(started_unix_ns=start, requests=requests)
    return add_source(case, file, [run], left.notes(), tool="AIPerf", is_cut=int(left.is_cut))


def _records(file: InputFile, left: Left) -> Iterator[_Record]:
    decoder = msgspec.json.Decoder(_Record)
    data = doc.read_bytes(file.data, "records of AIPerf")
    lines = data.split(b"\n")
    if len(lines) > MOST_RECORDS:
        raise InputError(f"{file.path} has more than {MOST_RECORDS:,} records. Split it.")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if number == len(lines) - 1:
                left.is_cut = True
            else:
                left.add("Lines that are no record of AIPerf, left out")
            continue
        if instant(record.metadata.request_start_ns) is None:
            left.add("Records whose times or counts cannot be, left out")
        else:
            yield record


def _served(record: _Record, number: int, start: int) -> ServedRequest | None:
    meta, metrics = record.metadata, record.metrics
    ttft_ns = _latency(metrics, "time_to_first_token") or _latency(metrics, "ttft")
    e2e_ns = _latency(metrics, "request_latency")
    sent_ns = meta.request_start_ns - start
    if ttft_ns is not None and e2e_ns is not None and ttft_ns > e2e_ns:
        return None
    if meta.request_end_ns is not None and not 0 <= meta.request_end_ns - meta.request_start_ns <= LONGEST_NS:
        return None
    return ServedRequest(
        number=number,
        name=meta.x_request_id,
        phase="engine_warmup" if meta.benchmark_phase == "warmup" else "measured",
        outcome=_outcome(record),
        prompt_tokens=_count(metrics, "input_sequence_length"),
        output_tokens=_count(metrics, "output_sequence_length"),
        sent_ns=sent_ns,
        ended_ns=None if meta.request_end_ns is None else meta.request_end_ns - start,
        ttft_ns=ttft_ns,
        e2e_ns=e2e_ns,
        itl_ns=_chunks(metrics),
        error=None if record.error is None else record.error.message or record.error.type,
        session=meta.conversation_id,
    )


_REFUSED = (429, 503)
"""Too many requests, and service unavailable: the server did no work for it."""


def _outcome(record: _Record) -> Outcome:
    if record.metadata.was_cancelled:
        return "cancelled"
    if record.error is None:
        return "completed"
    return "rejected" if record.error.code in _REFUSED else "failed"


def _latency(metrics: Object, name: str) -> int | None:
    block = doc.fields(metrics.get(name))
    unit = str(scalar(block.get("unit", msgspec.Raw(b'"ms"'))))
    return doc.duration_ns(scalar(block.get("value")), _FACTORS[unit]) if unit in _TIMES else None


def _count(metrics: Object, name: str) -> int | None:
    return doc.whole(scalar(doc.fields(metrics.get(name)).get("value")))


def _chunks(metrics: Object) -> Nanoseconds:
    """Times between responses, of which each may hold several tokens."""
    block = doc.fields(metrics.get("inter_chunk_latency"))
    values = doc.decoded(block.get("value"), list[float])
    gaps = doc.gaps_ns(values, 1e6) if values and scalar(block.get("unit")) == "ms" else None
    return np.empty(0, np.int64) if gaps is None else gaps
