"""What the mini-engine's policies are worth in wall time, with a real model on this CPU; docs/engine.md quotes it.

Run with: make bench, or pytest -s tests/bench/bench_serving.py; on an idle machine.
"""

from __future__ import annotations

import random
import time

import numpy as np

from diag.model.serving_log import RequestRecord, StepRecord
from diag.probes.engine.config import Batching, EngineConfig
from diag.probes.engine.engine import Engine
from diag.probes.engine.models import SHAPES, random_model
from diag.probes.engine.runner import TorchRunner
from diag.probes.engine.sequence import Request, SamplingParams

SHAPE = SHAPES["small"]
MODEL = random_model(SHAPE)


def engine_of(config: EngineConfig) -> tuple[Engine, list[RequestRecord | StepRecord]]:
    records: list[RequestRecord | StepRecord] = []
    return Engine(config, TorchRunner(MODEL, config), sink=records.append), records


def prompt(draw: random.Random, n: int) -> tuple[int, ...]:
    return tuple(draw.randrange(SHAPE.vocab_size) for _ in range(n))


def test_continuous_against_static_batching() -> None:
    """64 shuffled requests of 20, 50, 200 and 500 output tokens, 8 at a time."""
    lengths = [20, 50, 200, 500] * 16
    random.Random(0).shuffle(lengths)
    took_s, n_steps, outputs = {}, {}, {}
    kinds: tuple[Batching, ...] = ("static", "continuous")
    for batching in kinds:
        config = EngineConfig(n_blocks=512, max_sequences=8, batching=batching)
        engine, records = engine_of(config)
        draw = random.Random(1)
        groups = [
            engine.add(Request(str(at), prompt(draw, 16), SamplingParams(max_tokens=n))) for at, n in enumerate(lengths)
        ]
        start = time.perf_counter()
        engine.drain()
        took_s[batching] = time.perf_counter() - start
        n_steps[batching] = sum(isinstance(each, StepRecord) for each in records)
        outputs[batching] = [group.outputs for group in groups]
    same = sum(a == b for a, b in zip(*outputs.values(), strict=True))
    print(
        f"\nsteps {n_steps['continuous']:,} against {n_steps['static']:,} "
        f"({n_steps['static'] / n_steps['continuous']:.2f}x), wall {took_s['continuous']:.1f} s against "
        f"{took_s['static']:.1f} s ({took_s['static'] / took_s['continuous']:.2f}x); {same} of 64 outputs equal in FP32"
    )
    assert 2.1 * n_steps["continuous"] <= n_steps["static"]


def test_a_long_prompt_beside_running_requests() -> None:
    """P99 ITL of eight that decode while a prompt of 3,000 tokens comes, whole and in chunks of 128."""
    p99_ms = {}
    for chunked in (False, True):
        config = EngineConfig(
            n_blocks=512, max_step_tokens=128 if chunked else 4096, chunked_prefill=chunked, prefix_cache="none"
        )
        engine, _ = engine_of(config)
        draw = random.Random(0)
        running = [engine.add(Request(str(at), prompt(draw, 32), SamplingParams(max_tokens=80))) for at in range(8)]
        for _ in range(20):
            engine.step()
        engine.add(Request("long", prompt(draw, 3000), SamplingParams(max_tokens=1)))
        engine.drain()
        gaps = np.concatenate([np.diff(group.token_ns) for group in running])
        p99_ms[chunked] = float(np.percentile(gaps, 99)) / 1e6
    print(f"\nP99 ITL {p99_ms[False]:.0f} ms whole, {p99_ms[True]:.0f} ms in chunks")
    assert p99_ms[True] < p99_ms[False]
