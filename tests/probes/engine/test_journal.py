"""What the engine writes down: all that it knows, and nothing that contradicts itself."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from diag.model.serving_log import EngineConditions, Record, RequestRecord, StepRecord
from diag.probes import nvtx_ranges
from diag.probes.engine.answers import AnswerRunner
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.engine import Engine
from diag.probes.engine.journal import engine_conditions, request_record
from diag.probes.engine.sequence import Request, SamplingParams, SequenceGroup
from diag.probes.engine.simulation import StepCost
from tests.probes.engine.engines import made, request

COST = StepCost(step_ns=1000, prefill_token_ns=10, decode_row_ns=5, context_token_ns=1, sample_row_ns=2)
PRESSURE = EngineConfig(
    block_tokens=4, n_blocks=8, n_host_blocks=8, max_sequences=4, max_step_tokens=16, preemption="swap",
    graph_buckets=(4,),
)  # fmt: skip


def test_a_step_and_a_request_field_by_field() -> None:
    one = made(EngineConfig(block_tokens=4, n_blocks=8, max_step_tokens=6, prefix_cache="hash"), cost=COST)
    one.clock.advance(50)
    one.engine.add(request("a", 9, 3, priority=2))
    one.engine.drain()
    first, second, third, _ = one.log.steps
    assert first == StepRecord(
        number=0, start_ns=50, end_ns=1110, prefill_tokens=6, n_prefills=1, n_running=1, used_blocks=2, cached_blocks=0,
        free_blocks=6, used_tokens=6, longest_prefill_tokens=6, longest_prefill_request="a", schedule_ns=0,
        model_ns=1060, sample_ns=0, output_ns=0,
    )  # fmt: skip
    assert (second.prefill_tokens, second.used_blocks, second.used_tokens, second.sample_ns) == (3, 3, 9, 2)
    assert second.model_ns == 1000 + 3 * 10 + 6
    assert (third.decode_tokens, third.n_decodes, third.longest_prefill_request) == (1, 1, None)
    last = one.log.steps[-1]
    assert (last.used_blocks, last.cached_blocks, last.free_blocks) == (0, 2, 6)
    ends = [step.end_ns for step in one.log.steps]
    assert one.log.requests["a"] == RequestRecord(
        id="a", outcome="completed", prompt_tokens=9, output_tokens=3, cached_tokens=0, max_output_tokens=3,
        queued_ns=50, scheduled_ns=50, token_ns=tuple(ends[1:]), ended_ns=ends[-1], finish_reason="length",
        n_preemptions=0, priority=2,
    )  # fmt: skip


def test_the_log_adds_up() -> None:
    one = made(PRESSURE, cost=COST)
    for index in range(6):
        one.engine.add(request(f"r{index}", 7 + index, 8))
    while one.engine.has_work:
        one.step()
    steps, requests = one.log.steps, one.log.requests.values()
    assert [step.number for step in steps] == list(range(len(steps)))
    for step in steps:
        assert (step.used_blocks or 0) + (step.cached_blocks or 0) + (step.free_blocks or 0) == 8
        parts = (step.schedule_ns or 0) + (step.model_ns or 0) + (step.sample_ns or 0) + (step.output_ns or 0)
        assert parts <= step.end_ns - step.start_ns
    n_preempted = sum(len(step.preempted) for step in steps)
    assert n_preempted == sum(each.n_preemptions or 0 for each in requests) > 0
    assert {name for step in steps for name in step.preempted} <= one.log.requests.keys()
    assert sum(step.swapped_out_blocks for step in steps) == sum(step.swapped_in_blocks for step in steps) > 0
    assert any(step.n_swapped for step in steps)
    assert {step.padded_rows for step in steps} == {None, 4}
    prompts = sum((each.prompt_tokens or 0) - (each.cached_tokens or 0) for each in requests)
    assert sum(step.prefill_tokens - step.recomputed_tokens for step in steps) == prompts
    n_tokens = sum(step.decode_tokens + step.accepted_tokens for step in steps)
    assert n_tokens == sum((each.output_tokens or 0) - 1 for each in requests), (
        "the first of each comes with its prompt"
    )
    for each in requests:
        assert each.queued_ns is not None
        assert each.scheduled_ns is not None
        assert each.ended_ns is not None
        assert each.queued_ns <= each.scheduled_ns < each.token_ns[0] <= each.token_ns[-1] <= each.ended_ns


def test_a_runner_that_says_nothing_of_time_has_all_of_it_as_the_models() -> None:
    times = iter(range(0, 100_000, 100))
    records: list[StepRecord | RequestRecord] = []
    config = EngineConfig()
    engine = Engine(config, AnswerRunner(config), clock=lambda: next(times), sink=records.append)
    engine.add(request("a", 4, 1))
    engine.drain()
    (step,) = [each for each in records if isinstance(each, StepRecord)]
    assert (step.schedule_ns, step.model_ns, step.sample_ns) == (100, 100, 0)
    assert step.output_ns is not None
    assert step.output_ns > 0


def test_records_are_lines_of_the_log() -> None:
    one = made(PRESSURE)
    one.engine.add(Request("a", (1, 2, 3), SamplingParams(max_tokens=4, n=2)))
    one.engine.drain()
    for record in (*one.log.steps, *one.log.requests.values()):
        line = msgspec.json.encode(record)
        assert msgspec.json.encode(msgspec.json.decode(line, type=Record)) == line


def test_a_request_that_has_not_ended_has_no_record() -> None:
    with pytest.raises(ValueError, match="'a' has not ended"):
        request_record(SequenceGroup(request("a", 1, 1), 0, 0, 1))


def test_conditions_say_what_the_engine_was_set_to() -> None:
    assert engine_conditions(PRESSURE) == EngineConditions(
        batching="continuous", block_tokens=4, n_blocks=8, max_sequences=4, max_step_tokens=16, chunked_prefill=True,
        prefix_cache="hash", preemption="swap",
        other={"n_host_blocks": "8", "max_context": "1048576", "graph_buckets": "4"},
    )  # fmt: skip


@pytest.fixture
def nvtx_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []

    def start_range(name: str, payload: int) -> str:
        calls.append(("start", name, payload))
        return f"{name} {payload}"

    fake = SimpleNamespace(
        push_range=lambda name, payload: calls.append(("push", name, payload)),
        pop_range=lambda: calls.append(("pop",)),
        start_range=start_range,
        end_range=lambda which: calls.append(("end", which)),
    )
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    nvtx_ranges._nvtx.cache_clear()
    return calls


def test_each_step_and_each_request_is_a_range(nvtx_calls: list[tuple[Any, ...]], request: Any) -> None:
    request.addfinalizer(nvtx_ranges._nvtx.cache_clear)
    one = made(EngineConfig())
    one.engine.add(Request("a", (1, 2), SamplingParams(max_tokens=2)))
    one.engine.drain()
    assert nvtx_calls == [
        ("start", "request", 0),
        ("push", "engine step", 0),
        ("pop",),
        ("push", "engine step", 1),
        ("pop",),
        ("end", "request 0"),
    ]


def test_without_nvtx_nothing_is_missed(monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    monkeypatch.setitem(sys.modules, "nvtx", None)
    nvtx_ranges._nvtx.cache_clear()
    request.addfinalizer(nvtx_ranges._nvtx.cache_clear)
    one = made(EngineConfig())
    one.engine.add(Request("a", (1, 2), SamplingParams(max_tokens=2)))
    one.engine.drain()
    assert one.log.requests["a"].outcome == "completed"
