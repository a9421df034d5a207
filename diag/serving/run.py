"""One load on a server: its requests, the steps of its engine, the figures that its file states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from diag.errors import InputError
from diag.model.serving_log import EngineConditions, LoadConditions
from diag.model.serving_metrics import Nanoseconds, ServedRequest, completed, measured, span_ns
from diag.store.case import IMPORT_AGAIN, Case


class EngineStep(msgspec.Struct, frozen=True):
    """A row of `engine_step`; its columns are commented there. A struct, for there are a hundred thousand in a log."""

    number: int
    start_ns: int
    end_ns: int
    prefill_tokens: int
    decode_tokens: int
    n_prefills: int
    n_decodes: int
    n_running: int
    n_waiting: int
    n_swapped: int
    used_blocks: int | None
    cached_blocks: int | None
    free_blocks: int | None
    used_tokens: int | None
    longest_prefill_tokens: int
    longest_prefill_name: str | None
    n_preempted: int
    swapped_in_blocks: int
    swapped_out_blocks: int
    recomputed_tokens: int
    padded_rows: int | None
    drafted_tokens: int
    accepted_tokens: int
    schedule_ns: int | None
    model_ns: int | None
    sample_ns: int | None
    output_ns: int | None

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class EngineSample:
    """What a server said of itself in a line of its log."""

    time_ns: int | None
    n_running: int | None
    n_waiting: int | None
    n_swapped: int | None
    kv_share: float | None
    prefix_hit_share: float | None
    prompt_tokens_per_s: float | None
    output_tokens_per_s: float | None


@dataclass(frozen=True)
class StatedFigure:
    name: str
    statistic: str
    value: float
    unit: str
    stated_as: str


@dataclass(frozen=True, eq=False)
class ServingRun:
    """`requests`, `steps`, `samples` and `figures` are loaded when first asked."""

    case: Case
    id: int
    source_id: int
    label: str | None
    backend: str | None
    model: str | None
    stated_duration_ns: int | None
    n_requests: int | None
    n_completed: int | None
    load: LoadConditions
    engine: EngineConditions | None
    nth: int = 1  # of the runs of its source that go by the same name

    @property
    def name(self) -> str:
        """For people, unique only within one source."""
        return self._said if self.nth == 1 else f"{self._said} ({self.nth})"

    @property
    def _said(self) -> str:
        rate = f"{self.load.rate_per_s:g} requests/s" if self.load.rate_per_s is not None else None
        flight = f"{self.load.concurrency:,} in flight" if self.load.concurrency is not None else None
        return self.label or rate or flight or self.backend or f"run {self.id}"

    @property
    def settings(self) -> EngineConditions:
        """Of its engine; what it does not say is None."""
        return self.engine or EngineConditions()

    @cached_property
    def requests(self) -> Sequence[ServedRequest]:
        """All, in the order of sending, warm-up included."""
        return [_request(row) for row in self._rows(_REQUESTS)]

    @cached_property
    def measured(self) -> Sequence[ServedRequest]:
        return measured(self.requests)

    @cached_property
    def completed(self) -> Sequence[ServedRequest]:
        return completed(self.requests)

    @cached_property
    def steps(self) -> Sequence[EngineStep]:
        return [EngineStep(**row) for row in self._rows(_STEPS)]

    @cached_property
    def samples(self) -> Sequence[EngineSample]:
        return [EngineSample(**row) for row in self._rows(_SAMPLES)]

    @cached_property
    def figures(self) -> Sequence[StatedFigure]:
        return [StatedFigure(**row) for row in self._rows(_FIGURES)]

    def stated(self, name: str, statistic: str) -> StatedFigure | None:
        """What the file states, under diag's own name; where it does so several times, the first."""
        return next((each for each in self.figures if (each.name, each.statistic) == (name, statistic)), None)

    @cached_property
    def duration_ns(self) -> int | None:
        """From the first measured request sent to the last ended; else what the file states."""
        return span_ns(self.requests) or self.stated_duration_ns

    @cached_property
    def is_cut(self) -> bool:
        """Whether its file ends before the run did."""
        return any(source.id == self.source_id and source.is_cut for source in self.case.sources)

    def _rows(self, sql: str) -> Iterator[dict[str, Any]]:
        return (dict(row) for row in self.case.rows(sql, (self.id,)))


def serving_runs(case: Case) -> Sequence[ServingRun]:
    """In the order of the sources, and of the runs in each. Raises InputError for conditions that no reader writes."""
    runs = [_run(case, dict(row)) for row in case.rows(_RUNS)]
    seen: Counter[tuple[int, str]] = Counter()
    for at, run in enumerate(runs):
        key = (run.source_id, run.name)
        seen[key] += 1
        runs[at] = replace(run, nth=seen[key])
    return runs


def _run(case: Case, row: Mapping[str, Any]) -> ServingRun:
    try:
        load = msgspec.json.decode(row["load"], type=LoadConditions)
        engine = None if row["engine"] is None else msgspec.json.decode(row["engine"], type=EngineConditions)
    except (msgspec.DecodeError, TypeError) as error:
        raise InputError(f"{case.path} holds no serving run that diag knows ({error}). {IMPORT_AGAIN}") from error
    names = ("id", "source_id", "label", "backend", "model", "stated_duration_ns", "n_requests", "n_completed")
    return ServingRun(case, **{name: row[name] for name in names}, load=load, engine=engine)


def _request(row: dict[str, Any]) -> ServedRequest:
    itl_ns, output_counts = _array(row.pop("itl_ns")), row.pop("output_counts")
    counts = None if output_counts is None else _array(output_counts)
    return ServedRequest(**row, itl_ns=itl_ns, output_counts=counts)


def _array(blob: bytes | None) -> Nanoseconds:
    """Raises InputError for a BLOB that is no array of 64-bit integers."""
    if blob is None:
        return np.empty(0, np.int64)
    if len(blob) % 8:
        raise InputError(f"The case holds damaged times of a request. {IMPORT_AGAIN}")
    return np.frombuffer(blob, "<i8").astype(np.int64)


_RUNS = """
    SELECT id, source_id, label, backend, model, duration_ns AS stated_duration_ns, n_requests, n_completed,
           load, engine
      FROM serving_run
     ORDER BY source_id, id
"""

_REQUESTS = """
    SELECT number, name, phase, outcome, prompt_tokens, output_tokens, cached_tokens, max_output_tokens,
           intended_ns, sent_ns, queued_ns, scheduled_ns, ended_ns, ttft_ns, e2e_ns, itl_ns, output_counts,
           finish_reason, error, n_preemptions, retry_of, priority, session
      FROM request
     WHERE run_id = ?
     ORDER BY number
"""

_STEPS = """
    SELECT number, start_ns, end_ns, prefill_tokens, decode_tokens, n_prefills, n_decodes, n_running, n_waiting,
           n_swapped, used_blocks, cached_blocks, free_blocks, used_tokens, longest_prefill_tokens,
           longest_prefill_name, n_preempted, swapped_in_blocks, swapped_out_blocks, recomputed_tokens, padded_rows,
           drafted_tokens, accepted_tokens, schedule_ns, model_ns, sample_ns, output_ns
      FROM engine_step
     WHERE run_id = ?
     ORDER BY number
"""

_SAMPLES = """
    SELECT time_ns, n_running, n_waiting, n_swapped, kv_share, prefix_hit_share, prompt_tokens_per_s,
           output_tokens_per_s
      FROM engine_sample
     WHERE run_id = ?
     ORDER BY id
"""

_FIGURES = "SELECT name, statistic, value, unit, stated_as FROM serving_figure WHERE run_id = ? ORDER BY id"
