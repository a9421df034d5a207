"""Steps of an engine by hand: one after the other, with times and contents that a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from diag.model.serving_log import EngineConditions, RequestRecord, StepRecord
from tests.builders.serving_log import MS, LoggedRun, ServingLog, request

ENGINE = EngineConditions(
    batching="continuous", block_tokens=16, n_blocks=100, max_sequences=16, max_step_tokens=256, chunked_prefill=True
)

USUAL: Mapping[str, Any] = {
    "schedule_ns": MS // 4, "model_ns": 8 * MS, "sample_ns": MS // 4, "output_ns": MS // 4, "decode_tokens": 8,
    "n_decodes": 8, "n_running": 8, "used_blocks": 40, "cached_blocks": 0, "free_blocks": 60, "used_tokens": 600,
}  # fmt: skip
"""A decode step of eight sequences, of which the model takes most."""

PARTS = ("schedule_ns", "model_ns", "sample_ns", "output_ns")


def steps(
    n: int, fields_of: Callable[[int], Mapping[str, Any]] = lambda _: {}, between_ns: int = 0
) -> list[StepRecord]:
    """`fields_of` gives what is other than usual in a step; `rest_ns` is nobody's part of it, `pause_ns` follows it."""
    made, now = [], 0
    for number in range(n):
        fields = {**USUAL, **fields_of(number)}
        rest_ns, pause_ns = fields.pop("rest_ns", 0), fields.pop("pause_ns", 0)
        end = now + rest_ns + sum(fields[part] or 0 for part in PARTS)
        made.append(StepRecord(number=number, start_ns=now, end_ns=end, **fields))
        now = end + between_ns + pause_ns
    return made


def streams(of: Sequence[StepRecord], n: int = 8) -> list[RequestRecord]:
    """Requests that get a token out of every step with decodes, the first of them at the end of the first."""
    times = [step.end_ns for step in of if step.n_decodes]
    gaps = [after - before for before, after in pairwise(times)]
    return [request(number, 0, ttft_ns=times[0], n=len(times), itl_ns=gaps) for number in range(n)]


def log(
    of: Sequence[StepRecord], requests: Sequence[RequestRecord] | None = None, engine: EngineConditions | None = ENGINE
) -> ServingLog:
    return ServingLog([LoggedRun(streams(of) if requests is None else requests, of, engine=engine)])


def without(name: str, of: Sequence[StepRecord]) -> list[StepRecord]:
    """The same, where the engine did not say that."""
    return [StepRecord(**{key: value for key, value in _fields(step).items() if key != name}) for step in of]


def _fields(step: StepRecord) -> dict[str, Any]:
    return {name: getattr(step, name) for name in step.__struct_fields__}
