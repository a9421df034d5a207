"""The mini-engine under load in this process: with answers that are known, and with runners that fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from diag.errors import UsageError
from diag.model.serving_log import RequestRecord, StepRecord
from diag.model.serving_metrics import span_ns
from diag.model.token_lengths import Constant, Uniform
from diag.probes.engine.answers import VOCABULARY, AnswerRunner
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.engine import Engine
from diag.probes.engine.journal import Sink
from diag.probes.engine.plan import Runner, StepOutput, StepPlan
from diag.probes.serve import engine_settings
from diag.probes.serve.arrivals import ClosedLoop, OpenLoop
from diag.probes.serve.in_process import MOST_ERRORS, InProcessClient
from diag.probes.serve.load import Limits, Load
from diag.probes.serve.running import in_order, in_thread, new_clock
from diag.probes.serve.workload import Workload

CONFIG = EngineConfig(n_blocks=64, block_tokens=4, max_sequences=4, max_step_tokens=32)
LOAD = Workload(
    loop=ClosedLoop(4), n_requests=16, prompt_lengths=Uniform(3, 20), output_lengths=Constant(5), vocabulary=VOCABULARY
)


class Run:
    """What came of a load on an engine. No thread is left."""

    def __init__(
        self,
        workload: Workload = LOAD,
        config: EngineConfig = CONFIG,
        runner: Callable[[EngineConfig], Runner] = AnswerRunner,
        limits: Limits | None = None,
        stop_when: Callable[[Run], bool] = lambda _: False,
    ) -> None:
        self.records: list[RequestRecord] = []
        self.steps: list[StepRecord] = []
        clock = new_clock()

        def make(sink: Sink) -> Engine:
            self.engine = Engine(config, runner(config), clock=clock, sink=sink, vocabulary=VOCABULARY)
            return self.engine

        client = InProcessClient(make, self.steps.append)
        load = Load(workload, client, self.records.append, clock, limits or Limits())

        def look() -> None:
            if stop_when(self):
                raise KeyboardInterrupt

        threads = threading.active_count()
        try:
            in_thread(load.run(), look, load.stop)
        finally:
            assert threading.active_count() == threads
            assert not self.engine.has_work
            assert self.engine.memory.pool.n_used == 0

    def outcomes(self) -> Sequence[str]:
        return [record.outcome for record in sorted(self.records, key=lambda record: int(record.id))]


@pytest.mark.parametrize("loop", [ClosedLoop(4), OpenLoop("at_once"), OpenLoop("poisson", 2000.0)])
def test_times_of_the_client_and_of_the_engine_are_on_one_clock(loop: ClosedLoop | OpenLoop) -> None:
    run = Run(replace(LOAD, loop=loop))
    assert run.outcomes() == ["completed"] * 16
    for record in run.records:
        times = [record.intended_ns, record.sent_ns, record.queued_ns, record.scheduled_ns, *record.token_ns,
                 record.ended_ns]  # fmt: skip
        assert None not in times
        assert times == sorted(times, key=lambda time: time or 0)
        assert (record.output_tokens, record.finish_reason) == (5, "length")
    assert span_ns(in_order(run.records))


def test_tokens_of_steps_and_of_requests_are_the_same() -> None:
    """No prefix is shared and nobody is preempted: each token of a prompt is computed once."""
    run = Run()
    assert sum(step.prefill_tokens for step in run.steps) == sum(record.prompt_tokens or 0 for record in run.records)
    n_tokens = sum(record.output_tokens or 0 for record in run.records)
    assert sum(step.decode_tokens for step in run.steps) == n_tokens - len(run.records), "the first is of prefill"


def test_a_shared_prefix_is_found_in_the_cache_once_that_is_warm() -> None:
    shared = replace(LOAD, loop=ClosedLoop(1), prompt_lengths=Constant(16), shared_prefix_share=0.5)
    cold = {record.id: record.cached_tokens for record in Run(shared).records}
    assert cold["0"] == 0
    assert cold["1"] == 8
    warm = {record.id: record.cached_tokens for record in Run(replace(shared, n_requests=2, warms_cache=True)).records
            if record.phase == "measured"}  # fmt: skip
    assert (warm["0"] or 0) >= 4, "all but the last block of what they share"


def test_what_the_engine_refuses_is_rejected_with_its_reason() -> None:
    run = Run(replace(LOAD, loop=OpenLoop("at_once")), replace(CONFIG, max_waiting=2, max_sequences=1))
    assert set(run.outcomes()) == {"completed", "rejected"}
    refused = next(record for record in run.records if record.outcome == "rejected")
    assert "no more may" in str(refused.error)
    assert refused.queued_ns is None
    too_long = Run(replace(LOAD, prompt_lengths=Constant(400)))
    assert set(too_long.outcomes()) == {"rejected"}
    assert "blocks" in str(too_long.records[0].error)


class Failing:
    """Each `every`-th step."""

    def __init__(self, config: EngineConfig, every: int) -> None:
        self._runner, self._every, self._n = AnswerRunner(config), every, 0

    def run(self, plan: StepPlan) -> StepOutput:
        self._n += 1
        if self._n % self._every == 0:
            raise RuntimeError("the device is lost")
        return self._runner.run(plan)


def test_a_step_that_fails_ends_what_it_held_and_others_go_on() -> None:
    run = Run(replace(LOAD, n_requests=40), runner=lambda config: Failing(config, 12))
    assert {"completed", "failed"} == set(run.outcomes())
    failed = [record for record in run.records if record.outcome == "failed"]
    assert {record.error for record in failed} == {"RuntimeError: the device is lost"}


def test_an_engine_that_only_fails_is_given_up() -> None:
    run = Run(replace(LOAD, n_requests=100), runner=lambda config: Failing(config, 1))
    assert set(run.outcomes()) == {"failed"}
    assert f"the engine failed {MOST_ERRORS} times in a row: RuntimeError: the device is lost" in {
        record.error for record in run.records
    }


class Slow:
    """Each step waits for the test."""

    def __init__(self, config: EngineConfig) -> None:
        self._runner = AnswerRunner(config)
        self.may_go_on = threading.Event()

    def run(self, plan: StepPlan) -> StepOutput:
        self.may_go_on.wait(0.02)
        return self._runner.run(plan)


def test_a_cancelled_request_keeps_its_tokens_and_gives_back_its_blocks() -> None:
    endless = replace(LOAD, n_requests=4, output_lengths=Constant(200), prompt_lengths=Constant(4))
    config = replace(CONFIG, n_blocks=400)
    with pytest.raises(KeyboardInterrupt):
        Run(endless, config, Slow, stop_when=lambda run: len(run.steps) > 5)
    late = Run(endless, config, Slow, Limits(timeout_s=0.3))
    assert late.outcomes() == ["expired"] * 4
    assert all(0 < len(record.token_ns) < 200 for record in late.records)


def test_an_engine_that_cannot_be_made_is_an_error() -> None:
    def make(sink: Sink) -> Engine:
        raise UsageError("n_blocks is 0.")

    load = Load(LOAD, InProcessClient(make, lambda _: None), lambda _: None, new_clock(), Limits())
    with pytest.raises(UsageError, match="n_blocks"):
        asyncio.run(load.run())


# ---- settings --------------------------------------------------------------------------------------------------------


def test_every_field_can_be_set() -> None:
    pairs = [
        "block_tokens=8", "n_blocks=9", "n_host_blocks=3", "max_sequences=7", "max_step_tokens=99", "max_waiting=5",
        "max_context=77", "batching=static", "chunked_prefill=false", "prefix_cache=none", "preemption=swap",
        "n_draft_tokens=2", "graph_buckets=1,2,8", "n_layers=3", "dtype=bf16", "compiled=true", "temperature=0.5",
    ]  # fmt: skip
    found = engine_settings.parse(pairs)
    assert found.config == EngineConfig(8, 9, 3, 7, 99, 5, 77, "static", False, "none", "swap", 2, (1, 2, 8))
    assert (found.model.n_layers, found.model.dtype, found.model.compiled) == (3, "bf16", True)
    assert found.sampling.temperature == 0.5
    assert engine_settings.parse(["max_waiting=null", "graph_buckets="]).config == EngineConfig()


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("n_blocks", "KEY=VALUE"),
        ("nblocks=1", "Did you mean n_blocks"),
        ("n_blocks=many", "n_blocks=many: Expected int"),
        ("batching=other", "Invalid enum value 'other'"),
        ("chunked_prefill=maybe", "Expected bool"),
        ("graph_buckets=1,x", "Expected int"),
        ("dtype=int3", "Invalid enum value"),
    ],
)
def test_what_cannot_be_set_is_wrong_usage(pair: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        engine_settings.parse([pair])
    assert said in str(raised.value)


def test_nothing_is_set_twice() -> None:
    with pytest.raises(UsageError, match="n_blocks twice"):
        engine_settings.parse(["n_blocks=1", "n_blocks=2"])
