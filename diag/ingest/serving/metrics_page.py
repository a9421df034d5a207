"""Reader of the Prometheus pages of vLLM and SGLang (`/metrics`): what a server counted since it started.

A histogram tells between which bounds a percentile lies, and no more. A page of several models or engines is one run
for each. What two pages of a server differ by is what happened between them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import msgspec

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.serving import documents as doc
from diag.ingest.serving.documents import Left
from diag.ingest.serving.engine_args import conditions_of
from diag.ingest.serving.metrics_names import COUNTED, FINISHED, HISTOGRAMS, SERVERS, STATES
from diag.ingest.serving.store import FoundRun, add_source
from diag.model.serving_log import EngineConditions
from diag.model.serving_metrics import PERCENTILES
from diag.serving.run import EngineSample, StatedFigure
from diag.store.case import Case

KIND = "metrics-page"

MOST_BYTES = 64 << 20
LONGEST_LINE = 8 << 10
MOST_LINES = 200_000
"""A page of 64 engines has some 20,000."""

_LINE = re.compile(rb"^(?:# (?:HELP|TYPE) )?(?:vllm|sglang):[a-z_]{1,100}(?:\{| )", re.MULTILINE)

SINCE_START = "Counters and histograms of a page count from the start of the server."


def looks_like_metrics_page(head: bytes) -> bool:
    return head.lstrip()[:1] != b"{" and _LINE.search(head) is not None


Who = tuple[str, str | None, str | None]
"""Server, model, engine."""


@dataclass(frozen=True)
class Sample:
    name: str
    labels: Mapping[str, str]
    value: float


@dataclass
class _Engine:
    samples: list[Sample] = field(default_factory=list)
    settings: Mapping[str, str] = field(default_factory=dict)


def read(file: InputFile, case: Case) -> int:
    """Adds a page to the case, inside the caller's transaction, and returns the source's id. Raises InputError."""
    left = Left()
    engines = _engines(file, left)
    in_order = sorted(engines.items(), key=lambda each: [part or "" for part in each[0]])
    runs = [_run(who, engine, file, len(engines)) for who, engine in in_order]
    if not any(run.figures for run in runs):
        raise InputError(f"{file.path} states no metric of vLLM or SGLang that diag knows. Save the page again, whole.")
    servers = {run.backend for run in runs}
    tool = SERVERS.get(str(servers.pop())) if len(servers) == 1 else None
    return add_source(case, file, runs, [SINCE_START, *left.notes()], tool=tool)


def _engines(file: InputFile, left: Left) -> Mapping[Who, _Engine]:
    engines: dict[Who, _Engine] = defaultdict(_Engine)
    everywhere: dict[str, Mapping[str, str]] = {}
    for sample in _samples(file, left):
        server, _, name = sample.name.partition(":")
        labels = sample.labels
        if name == "cache_config_info":
            everywhere[labels.get("engine", "")] = labels
        elif not _is_part(labels):
            who = (server, labels.get("model_name"), labels.get("engine", labels.get("dp_rank")))
            if who in engines or len(engines) < doc.MOST_RUNS:
                engines[who].samples.append(Sample(name, labels, sample.value))
    for (_, _, engine), found in engines.items():
        found.settings = everywhere.get(engine or "", everywhere.get("", {}))
    return engines


def _is_part(labels: Mapping[str, str]) -> bool:
    """Of a figure that is there as a whole, too: SGLang has one for each rank and each priority."""
    return labels.get("tp_rank", "0") != "0" or labels.get("pp_rank", "0") != "0" or bool(labels.get("priority"))


def _samples(file: InputFile, left: Left) -> Iterator[Sample]:
    from prometheus_client.parser import text_string_to_metric_families  # takes 0.1 s, of every report if it came first

    if file.data.stat().st_size > MOST_BYTES:
        raise InputError(f"{file.path} is larger than a page of metrics can be ({MOST_BYTES >> 20} MiB).")
    lines = [line for line in file.data.read_bytes().split(b"\n") if line.startswith((b"vllm:", b"sglang:"))]
    if len(lines) > MOST_LINES:
        raise InputError(f"{file.path} has more than {MOST_LINES:,} samples: that is no single page. Save one.")
    for line in lines:
        try:
            if len(line) > LONGEST_LINE:
                raise ValueError("longer than any sample")
            (family,) = text_string_to_metric_families(line.decode())
            (sample,) = family.samples
        except (ValueError, IndexError, KeyError):
            left.add("Lines that are no sample, left out")
            continue
        value = doc.number(sample.value)
        if value is None:
            left.add("Samples that are no number, left out")
        else:
            yield Sample(sample.name, sample.labels, value)


# ---- one engine ----------------------------------------------------------------------------------------------------


def _run(who: Who, engine: _Engine, file: InputFile, n_engines: int) -> FoundRun:
    server, model, number = who
    figures = doc.bounded(_figures(engine.samples))
    created = [sample.value for sample in engine.samples if sample.name.endswith("_created")]
    name = PurePath(str(file.path)).stem
    return FoundRun(
        label=name if n_engines == 1 or number is None else f"{name}, engine {number}",
        backend=server,
        model=model,
        started_unix_ns=doc.time_ns(min(created, default=None)),
        n_completed=doc.whole(_value(figures, "completed")),
        engine=_conditions(engine.settings),
        samples=[_state(figures)] if _value(figures, "running") is not None else [],
        figures=figures,
    )


def _value(figures: Sequence[StatedFigure], name: str) -> float | None:
    statistics = ("value", "total")
    return next((each.value for each in figures if each.name == name and each.statistic in statistics), None)


def _conditions(settings: Mapping[str, str]) -> EngineConditions | None:
    if not settings:
        return None
    return msgspec.structs.replace(conditions_of(settings), n_blocks=doc.whole(settings.get("num_gpu_blocks")))


def _state(figures: Sequence[StatedFigure]) -> EngineSample:
    def share(name: str) -> float | None:
        value = _value(figures, name)
        return value if value is not None and 0 <= value <= 1 else None

    return EngineSample(
        time_ns=None,
        n_running=doc.whole(_value(figures, "running")),
        n_waiting=doc.whole(_value(figures, "waiting")),
        n_swapped=doc.whole(_value(figures, "swapped")),
        kv_share=share("kv_share"),
        prefix_hit_share=share("prefix_hit_share"),
        prompt_tokens_per_s=_value(figures, "input_token_rate"),
        output_tokens_per_s=_value(figures, "output_token_rate"),
    )


# ---- figures -------------------------------------------------------------------------------------------------------


def _figures(samples: Sequence[Sample]) -> Iterator[StatedFigure]:
    plain: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    histograms: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        name = sample.name.removesuffix("_total")
        base, _, part = sample.name.rpartition("_")
        if base in HISTOGRAMS and part in ("bucket", "sum", "count"):
            histograms[base].append(sample)
        elif name in COUNTED:
            plain[COUNTED[name], "total", sample.name] += sample.value
        elif name in STATES:
            plain[STATES[name], "value", sample.name] += sample.value
        elif name == "request_success" and (called := FINISHED.get(sample.labels.get("finished_reason", "stop"))):
            plain[called, "total", sample.name] += sample.value
        elif name == "spec_decode_num_accepted_tokens_per_pos" and (position := sample.labels.get("position", "")):
            plain["accepted_tokens", f"position {position[:8]}", sample.name] += sample.value
    for (name, statistic, stated_as), value in plain.items():
        yield from doc.figure(name, statistic, value, stated_as)
    for base, parts in histograms.items():
        yield from _histogram(base, parts)


def _histogram(base: str, parts: Sequence[Sample]) -> Iterator[StatedFigure]:
    """Its mean, and bounds of percentiles: (from, to], the last bucket has no upper one."""
    name, factor = HISTOGRAMS[base]
    total = sum(part.value for part in parts if part.name.endswith("_sum"))
    count = sum(part.value for part in parts if part.name.endswith("_count"))
    if not 0 < count <= doc.MOST_COUNTED:
        return
    yield StatedFigure(name, "count", count, "count", base)
    yield from doc.figure(name, "mean", total / count, base, factor)
    cumulative: defaultdict[float, float] = defaultdict(float)
    for part in parts:
        bound = _bound(part.labels.get("le"))
        if part.name.endswith("_bucket") and bound is not None:
            cumulative[bound] += part.value
    bounds = sorted(cumulative)
    for percentile in PERCENTILES:
        reached = next((at for at, bound in enumerate(bounds) if cumulative[bound] >= count * percentile / 100), None)
        if reached is not None:
            lower = bounds[reached - 1] if reached else 0.0
            yield from doc.figure(name, f"p{percentile}_from", lower, base, factor)
            yield from doc.figure(name, f"p{percentile}_to", bounds[reached], base, factor)


def _bound(le: str | None) -> float | None:
    return float("inf") if le in ("+Inf", "inf") else doc.number(le)
