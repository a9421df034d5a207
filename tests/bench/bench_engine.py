"""What the mini-engine's host side costs a step at 256 decoding sequences, and what batching saves in time.

Run with: make bench, or pytest -s tests/bench/bench_engine.py
"""

from __future__ import annotations

import random
import statistics
import time

import pytest

from diag.model.serving_log import RequestRecord, StepRecord
from diag.probes.engine.answers import AnswerRunner
from diag.probes.engine.config import Batching, EngineConfig, PrefixCaching
from diag.probes.engine.engine import Engine
from diag.probes.engine.plan import Emission, StepOutput, StepPlan
from diag.probes.engine.sequence import Request, SamplingParams
from diag.probes.engine.simulation import SimulatedRunner, StepCost, VirtualClock

N_SEQUENCES, N_STEPS = 256, 400


class Sevens:
    """No model at all: what is left is the engine."""

    def run(self, plan: StepPlan) -> StepOutput:
        return StepOutput([Emission(each.sequence_id, (7,)) for each in plan.chunks if each.sampling])


@pytest.mark.parametrize("cache", ["none", "hash", "radix"])
def test_a_step_at_256_sequences(cache: PrefixCaching) -> None:
    steps: list[StepRecord] = []

    def sink(record: StepRecord | RequestRecord) -> None:
        if isinstance(record, StepRecord):
            steps.append(record)

    config = EngineConfig(n_blocks=1 << 14, max_sequences=N_SEQUENCES, max_step_tokens=2048, prefix_cache=cache)
    engine = Engine(config, Sevens(), clock=time.process_time_ns, sink=sink)
    for index in range(N_SEQUENCES):
        engine.add(Request(str(index), tuple(range(index, index + 256)), SamplingParams(max_tokens=N_STEPS + 99)))
    while len(steps) < 60 or steps[-1].n_decodes < N_SEQUENCES:
        engine.step()
    steps.clear()
    for _ in range(N_STEPS):
        engine.step()
    schedule_us = statistics.median(step.schedule_ns or 0 for step in steps) / 1e3
    output_us = statistics.median(step.output_ns or 0 for step in steps) / 1e3
    mean_us = statistics.mean(step.end_ns - step.start_ns - (step.model_ns or 0) for step in steps) / 1e3
    print(
        f"\ncache {cache}: schedule {schedule_us:.0f} µs, output {output_us:.0f} µs, both {mean_us:.0f} µs in the mean"
    )
    assert mean_us < 2000


def test_batching_in_simulated_time() -> None:
    lengths = [20, 50, 200, 500] * 16
    random.Random(0).shuffle(lengths)
    took_ns: dict[Batching, int] = {}
    kinds: tuple[Batching, ...] = ("continuous", "static")
    for batching in kinds:
        config, clock, steps = EngineConfig(n_blocks=400, max_sequences=8, batching=batching), VirtualClock(), 0
        engine = Engine(config, SimulatedRunner(AnswerRunner(config), StepCost(), clock), clock=clock)
        for index, length in enumerate(lengths):
            engine.add(Request(str(index), tuple(range(index, index + 32)), SamplingParams(max_tokens=length)))
        while engine.has_work:
            engine.step()
            steps += 1
        took_ns[batching] = clock()
        print(f"\n{batching} batching: {steps:,} steps, {clock() / 1e9:.1f} s of simulated time", end="")
    ratio = took_ns["static"] / took_ns["continuous"]
    print(f"\ncontinuous batching is {ratio:.2f} times as fast")
    assert ratio > 2
