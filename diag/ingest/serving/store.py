"""Where a serving run that any reader found becomes rows of the case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
import numpy as np

from diag.ingest.input_file import InputFile
from diag.model.serving_log import EngineConditions, LoadConditions, StepRecord
from diag.model.serving_metrics import Nanoseconds, ServedRequest
from diag.serving.run import EngineSample, StatedFigure
from diag.store.case import Case

LONGEST_TEXT = 300
"""Of names, conditions and errors."""


@dataclass(frozen=True, eq=False)
class FoundRun:
    """One load, as its file tells it."""

    label: str | None = None
    backend: str | None = None
    model: str | None = None
    started_unix_ns: int | None = None
    duration_ns: int | None = None  # as stated
    n_completed: int | None = None  # as stated
    load: LoadConditions = field(default_factory=LoadConditions)
    engine: EngineConditions | None = None
    requests: Sequence[ServedRequest] = ()
    steps: Sequence[StepRecord] = ()
    samples: Sequence[EngineSample] = ()
    figures: Sequence[StatedFigure] = ()


def add_source(
    case: Case, file: InputFile, runs: Sequence[FoundRun], notes: Iterable[str] = (), **told: str | int | None
) -> int:
    """A file with its runs, inside the caller's transaction; `told`: further columns of `source`. Returns its id."""
    source_id = case.add_source(
        kind=file.kind,
        path=str(file.path),
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        **{"time_resolution_ns": 1, **told},
    )
    for run in runs:
        add_run(case, source_id, run)
    case.finish_source(source_id, captured(runs), notes)
    return source_id


def add_run(case: Case, source_id: int, run: FoundRun) -> None:
    """Inside the caller's transaction."""
    run_id = case.insert_returning_id("serving_run", _run(source_id, run))
    add_requests(case, run_id, run.requests)
    add_steps(case, run_id, run.steps)
    case.insert("engine_sample", [{"run_id": run_id, **asdict(each)} for each in run.samples])
    case.insert("serving_figure", [{"run_id": run_id, **asdict(each)} for each in run.figures])


def add_requests(case: Case, run_id: int, requests: Iterable[ServedRequest]) -> None:
    case.insert("request", (_request(run_id, each) for each in requests))


def add_steps(case: Case, run_id: int, steps: Iterable[StepRecord]) -> None:
    case.insert("engine_step", (_step(run_id, each) for each in steps))


def captured(runs: Sequence[FoundRun]) -> dict[str, int | None]:
    """Capabilities of a source that holds these runs; a fact without a row was not captured."""
    counted = {
        "serving_run": len(runs),
        "request": sum(len(run.requests) for run in runs),
        "engine_step": sum(len(run.steps) for run in runs),
        "engine_sample": sum(len(run.samples) for run in runs),
        "serving_figure": sum(len(run.figures) for run in runs),
    }
    return {fact: count or None for fact, count in counted.items()}


def shortened(text: str | None) -> str | None:
    return None if text is None else text[:LONGEST_TEXT]


def _run(source_id: int, run: FoundRun) -> Mapping[str, Any]:
    load = run.load
    return {
        "source_id": source_id,
        "label": shortened(run.label),
        "backend": shortened(run.backend),
        "model": shortened(run.model),
        "started_unix_ns": run.started_unix_ns,
        "duration_ns": run.duration_ns,
        "n_requests": load.n_requests,
        "n_completed": run.n_completed,
        "arrival": load.arrival,
        "rate_per_s": load.rate_per_s,
        "burstiness": load.burstiness,
        "concurrency": load.concurrency,
        "prompt_lengths": shortened(load.prompt_lengths),
        "output_lengths": shortened(load.output_lengths),
        "shared_prefix_share": load.shared_prefix_share,
        "load": msgspec.json.encode(load).decode(),
        "engine": None if run.engine is None else msgspec.json.encode(run.engine).decode(),
    }


_PLAIN = (
    "number", "phase", "outcome", "prompt_tokens", "output_tokens", "cached_tokens", "max_output_tokens",
    "intended_ns", "sent_ns", "queued_ns", "scheduled_ns", "ended_ns", "ttft_ns", "e2e_ns", "n_preemptions", "priority",
)  # fmt: skip
_TEXTS = ("name", "finish_reason", "error", "retry_of", "session")


def _request(run_id: int, of: ServedRequest) -> Mapping[str, Any]:
    return {
        "run_id": run_id,
        **{name: getattr(of, name) for name in _PLAIN},
        **{name: shortened(getattr(of, name)) for name in _TEXTS},
        "itl_ns": _blob(of.itl_ns) if len(of.itl_ns) else None,
        "output_counts": None if of.output_counts is None else _blob(of.output_counts),
    }


def _blob(values: Nanoseconds) -> bytes:
    return np.asarray(values, "<i8").tobytes()


def _step(run_id: int, of: StepRecord) -> Mapping[str, Any]:
    row = msgspec.structs.asdict(of)
    preempted = row.pop("preempted")
    longest = row.pop("longest_prefill_request")
    return {
        "run_id": run_id,
        **row,
        "longest_prefill_name": shortened(longest),
        "n_preempted": len(preempted),
        "preempted": msgspec.json.encode(preempted).decode() if preempted else None,
    }
