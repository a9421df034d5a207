"""Reader of the results that vLLM's `benchmark_serving.py` (now `vllm bench serve`) and SGLang's `bench_serving` write.

They have one ancestor and the same lists: an object, or one a line, with figures of a run and, where details were asked
for, a list for each property of its requests, in the order of sending. What the model answered is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.serving import documents as doc
from diag.ingest.serving.documents import Left, Object, scalar
from diag.ingest.serving.engine_args import conditions_of
from diag.ingest.serving.store import FoundRun, add_source
from diag.model.serving_log import EngineConditions, LoadConditions, Outcome
from diag.model.serving_metrics import ServedRequest
from diag.serving.run import StatedFigure
from diag.store.case import Case

KIND = "bench-serving"
WHAT = "result of a serving benchmark"

_SIGNS = tuple(
    f'"{name}"'.encode()
    for name in (
        "request_rate", "completed", "duration", "total_input_tokens", "total_output_tokens", "request_throughput",
        "output_throughput", "num_prompts", "backend", "model_id", "tokenizer_id", "burstiness", "max_concurrency",
    )
)  # fmt: skip
_ENOUGH = 5
"""Of the signs. What vLLM wrote with few options has seven before the first list."""


def looks_like_bench_serving(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and sum(sign in head for sign in _SIGNS) >= _ENOUGH


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id. Raises InputError."""
    left = Left()
    runs = [_found(document, file, left) for document in doc.objects(file.data, WHAT, left)]
    return add_source(case, file, runs, left.notes(), is_cut=int(left.is_cut))


def _found(document: Object, file: InputFile, left: Left) -> FoundRun:
    requests = _requests(document, file, left)
    load = _load(document, requests)
    server = doc.fields(document.get("server_info"))
    dataset, rate = doc.text(scalar(document.get("dataset_name"))), load.rate_per_s
    tag = doc.text(scalar(document.get("label"))) or doc.text(scalar(document.get("tag")))
    named = f"{dataset}, {rate:g} requests/s" if dataset and rate is not None else dataset
    return FoundRun(
        label=tag or named,
        backend=doc.text(scalar(document.get("backend"))) or doc.text(scalar(document.get("endpoint_type"))),
        model=doc.text(scalar(document.get("model_id"))) or doc.text(scalar(server.get("model_path"))),
        duration_ns=doc.duration_ns(scalar(document.get("duration"))),
        n_completed=doc.whole(scalar(document.get("completed"))),
        load=load,
        engine=_engine(server),
        requests=requests,
        figures=doc.bounded(_figures(document)),
    )


def _engine(server: Object) -> EngineConditions | None:
    return conditions_of({name: scalar(raw) for name, raw in server.items()}) if server else None


# ---- load ----------------------------------------------------------------------------------------------------------


def _load(document: Object, requests: Sequence[ServedRequest]) -> LoadConditions:
    rate = scalar(document.get("request_rate"))
    per_s = doc.number(rate)
    per_s = per_s if per_s is not None and per_s > 0 else None
    shape = doc.number(scalar(document.get("burstiness")))
    concurrency = doc.whole(scalar(document.get("max_concurrency")))
    is_unlimited = isinstance(rate, str) and rate.lower() in ("inf", "infinity")
    arrival: Any = None
    if "ramp_up_strategy" in document:
        per_s = None  # it was another at each moment
    elif is_unlimited:
        arrival = "at_once" if concurrency is None else "closed"
    elif per_s is not None:
        arrival = "poisson" if shape in (None, 1.0) else "gamma"
    return LoadConditions(
        arrival=arrival,
        rate_per_s=per_s,
        burstiness=shape**-0.5 if arrival == "gamma" and shape and shape > 0 else 1.0 if arrival == "poisson" else None,
        concurrency=concurrency,
        n_requests=doc.whole(scalar(document.get("num_prompts"))) or len(requests) or None,
        prompt_lengths=_lengths(document, "input"),
        output_lengths=_lengths(document, "output"),
        seed=doc.whole(scalar(document.get("seed"))),
    )


def _lengths(document: Object, which: str) -> str | None:
    """SGLang draws lengths evenly between a share of the longest and the longest."""
    dataset = doc.text(scalar(document.get("dataset_name")))
    longest = doc.whole(scalar(document.get(f"random_{which}_len")))
    share = doc.number(scalar(document.get("random_range_ratio")))
    if dataset is None or not dataset.startswith("random") or longest is None or share is None or not 0 <= share <= 1:
        return dataset
    return f"uniform {int(longest * share):,}-{longest:,}"


# ---- requests ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lists:
    """One property of all requests each; an empty list: not told."""

    input_lens: Sequence[int | None]
    output_lens: Sequence[int | None]
    ttfts: Sequence[float | None]
    itls: Sequence[Sequence[float] | None]
    start_times: Sequence[float | None]
    errors: Sequence[str | None]

    @property
    def lengths(self) -> set[int]:
        return {len(each) for each in vars(self).values() if len(each)}


_KINDS: Mapping[str, Any] = {
    "input_lens": list[int | None],
    "output_lens": list[int | None],
    "ttfts": list[float | None],
    "itls": list[list[float] | None],
    "start_times": list[float | None],
    "errors": list[str | None],
}


def _requests(document: Object, file: InputFile, left: Left) -> Sequence[ServedRequest]:
    lists = _Lists(**{name: _list(document.get(name), kind, name, file) for name, kind in _KINDS.items()})
    if len(lists.lengths) > 1:
        raise InputError(f"{file.path} tells of different numbers of requests in its lists. Copy it again, whole.")
    n_requests = next(iter(lists.lengths), 0)
    starts = [start for start in lists.start_times if start is not None]
    first = min(starts, default=0.0)
    found = (_request(lists, number, first) for number in range(n_requests))
    kept = [each for each in found if each is not None]
    left.add("Requests whose times or counts cannot be, left out", n_requests - len(kept))
    return kept


def _list(raw: msgspec.Raw | None, kind: Any, name: str, file: InputFile) -> Sequence[Any]:
    if raw is None or bytes(memoryview(raw)[:4]) == b"null":
        return ()
    found = doc.decoded(raw, kind)
    if found is None:
        raise InputError(f"{file.path} has {name} that are no list of them. It may have been edited: copy it again.")
    return found  # type: ignore[no-any-return]


def _request(lists: _Lists, number: int, first: float) -> ServedRequest | None:
    """None for one whose times or counts cannot be.

    A request without a token has a TTFT of 0 in these files, which is none.
    """
    error = lists.errors[number] if lists.errors else None
    prompt, output = _at(lists.input_lens, number), _at(lists.output_lens, number)
    ttft_ns = doc.duration_ns(_at(lists.ttfts, number)) or None
    gaps = doc.gaps_ns(_at(lists.itls, number) or ())
    start = _at(lists.start_times, number)
    sent_ns = None if start is None else doc.duration_ns(start - first)
    counts = [each for each in (prompt, output) if each is not None]
    if gaps is None or any(not 0 <= each <= doc.MOST_COUNTED for each in counts):
        return None
    if _at(lists.ttfts, number) not in (None, 0, 0.0) and ttft_ns is None:
        return None
    outcome: Outcome = "failed" if error else "completed"
    return ServedRequest(
        number=number,
        outcome=outcome,
        prompt_tokens=prompt,
        output_tokens=output,
        sent_ns=sent_ns,
        ttft_ns=ttft_ns,
        e2e_ns=None if ttft_ns is None else ttft_ns + int(gaps.sum()),
        itl_ns=gaps if ttft_ns is not None else gaps[:0],
        error=error or None,
    )


def _at(values: Sequence[Any], number: int) -> Any:
    return values[number] if values else None


# ---- figures -------------------------------------------------------------------------------------------------------

_LATENCY = re.compile(
    r"(?P<statistic>mean|median|std|min|max|p\d{1,3}(?:\.\d{1,6})?)_(?P<name>ttft|tpot|itl|e2el|e2e_latency)_ms"
)
_NAMES = {"e2el": "e2e", "e2e_latency": "e2e"}

_STATED: Mapping[str, tuple[str, str, float]] = {
    "request_throughput": ("request_rate", "value", 1),
    "request_goodput": ("goodput", "value", 1),
    "request_goodput:": ("goodput", "value", 1),
    "output_throughput": ("output_token_rate", "value", 1),
    "input_throughput": ("input_token_rate", "value", 1),
    "total_token_throughput": ("total_token_rate", "value", 1),
    "total_throughput": ("total_token_rate", "value", 1),
    "max_output_tokens_per_s": ("output_token_rate", "max", 1),
    "completed": ("completed", "value", 1),
    "failed": ("failed", "value", 1),
    "total_input_tokens": ("input_tokens", "total", 1),
    "total_output_tokens": ("output_tokens", "total", 1),
    "total_output_tokens_retokenized": ("output_tokens_retokenized", "total", 1),
    "concurrency": ("concurrency", "mean", 1),
    "max_concurrent_requests": ("concurrency", "max", 1),
    "accept_length": ("accepted_length", "mean", 1),
    "spec_decode_acceptance_length": ("accepted_length", "mean", 1),
    "spec_decode_acceptance_rate": ("acceptance_share", "value", 0.01),
    "spec_decode_num_drafts": ("drafts", "total", 1),
    "spec_decode_draft_tokens": ("draft_tokens", "total", 1),
    "spec_decode_accepted_tokens": ("accepted_tokens", "total", 1),
}


def _figures(document: Object) -> Iterator[StatedFigure]:
    for key, raw in document.items():
        if match := _LATENCY.fullmatch(key):
            statistic = "p50" if match["statistic"] == "median" else match["statistic"]
            yield from doc.figure(_NAMES.get(match["name"], match["name"]), statistic, scalar(raw), key, 1e6)
        elif key in _STATED:
            name, statistic, factor = _STATED[key]
            yield from doc.figure(name, statistic, scalar(raw), key, factor)
