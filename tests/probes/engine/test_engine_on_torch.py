"""The whole engine on the model: however requests are served, each token is the one that dense attention gives."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.probes.engine.config import EngineConfig
from diag.probes.engine.engine import Engine
from diag.probes.engine.models import random_model
from diag.probes.engine.runner import TorchRunner
from diag.probes.engine.sampler import choose
from diag.probes.engine.sequence import Request, SamplingParams, SequenceGroup
from tests.probes.engine import dense
from tests.probes.engine.engines import check_account

MODEL = random_model(dense.SHAPE, seed=5, dtype="fp64")
VOCABULARY = dense.SHAPE.vocab_size

CONFIGS = st.fixed_dictionaries(
    {
        "block_tokens": st.sampled_from((1, 4, 8)),
        "max_sequences": st.sampled_from((3, 8)),
        "max_step_tokens": st.sampled_from((8, 64)),
        "batching": st.sampled_from(("continuous", "continuous", "static")),
        "chunked_prefill": st.booleans(),
        "prefix_cache": st.sampled_from(("none", "hash", "radix")),
        "preemption": st.sampled_from(("recompute", "swap")),
        "n_draft_tokens": st.sampled_from((0, 3)),
        "graph_buckets": st.sampled_from(((), (2, 4, 8))),
    }
)


def engine_of(options: dict[str, Any], n_tokens: int) -> Engine:
    """Whose cache holds so many tokens."""
    n_blocks = n_tokens // options["block_tokens"]
    config = EngineConfig(**options, n_blocks=n_blocks, n_host_blocks=n_blocks)
    return Engine(config, TorchRunner(MODEL, config), vocabulary=VOCABULARY)


def drawn_request(dice: Random, number: int) -> Request:
    """Some begin alike, some repeat themselves so that drafts are right."""
    begin = [7, 3, 11, 2, 30, 8, 1, 1, 5][: dice.randint(0, 9)]
    rest = [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 12))]
    sampling = dice.choice(
        [
            SamplingParams(max_tokens=dice.randint(1, 16)),
            SamplingParams(max_tokens=12, temperature=0.6, seed=dice.randrange(99), n=dice.randint(1, 3)),
            SamplingParams(max_tokens=12, temperature=1.2, top_k=5, top_p=0.9, stop_tokens=frozenset({4, 9})),
            SamplingParams(max_tokens=6, beam_width=2),
        ]
    )
    return Request(str(number), tuple(begin + rest * dice.randint(1, 2)), sampling, priority=dice.randint(0, 1))


def check(group: SequenceGroup) -> None:
    """What came out of it, also when it was cancelled."""
    request = group.request
    for index, output in enumerate(group.outputs):
        text = list(request.prompt + output)
        after = dense.log_probabilities(MODEL.weights, MODEL.shape, text)[len(request.prompt) - 1 : -1]
        if request.sampling.beam_width:
            total = after.gather(1, torch.tensor(output)[:, None]).sum()
            assert group.beam_ends[index].log_probability == pytest.approx(float(total))
            continue
        params = [request.sampling.of_sample(index)] * len(output)
        assert choose(after, params, range(len(request.prompt), len(text))).tolist() == list(output)


@given(options=CONFIGS, seed=st.integers(0, 1 << 30))
@settings(max_examples=40)
def test_served_in_any_way_the_tokens_are_those_of_dense_attention(options: dict[str, Any], seed: int) -> None:
    dice = Random(seed)
    engine = engine_of(options, n_tokens=160)
    groups = [engine.add(drawn_request(dice, number)) for number in range(5)]
    while engine.has_work:
        engine.step()
        check_account(engine)
        if dice.random() < 0.05:
            engine.cancel(str(dice.randrange(5)))
    assert all(group.outcome in ("completed", "cancelled") for group in groups)
    for group in groups:
        check(group)


@pytest.mark.parametrize("preemption", ["recompute", "swap"])
def test_a_cache_that_is_too_small_for_all_changes_no_token(preemption: str) -> None:
    options = {"block_tokens": 4, "preemption": preemption, "prefix_cache": "hash"}
    engine = engine_of(options, n_tokens=64)
    sampling = SamplingParams(max_tokens=24, temperature=0.7)
    groups = [engine.add(Request(str(i), tuple(range(i, i + 9)), sampling)) for i in range(6)]
    engine.drain()
    assert sum(group.n_preemptions for group in groups) > 0
    for group in groups:
        assert len(group.outputs[0]) == 24
        check(group)


def test_drafts_save_steps_and_change_no_token() -> None:
    prompt = (5, 6, 7, 8) * 6
    steps = []
    for n_drafts in (0, 4):
        engine = engine_of({"block_tokens": 8, "n_draft_tokens": n_drafts}, n_tokens=256)
        group, n_steps = engine.add(Request("a", prompt, SamplingParams(max_tokens=60))), 0
        while engine.has_work:
            engine.step()
            n_steps += 1
        check(group)
        steps.append(n_steps)
    assert steps[1] < steps[0]
