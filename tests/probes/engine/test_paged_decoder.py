"""Paged attention is attention: any chunks, any blocks, any company, any move of blocks gives what dense gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from diag.errors import InputError, OutOfMemory
from diag.model.hf_config import RopeScaling
from diag.probes.engine.config import EngineConfig
from diag.probes.engine.decoder import frequencies
from diag.probes.engine.models import random_model
from diag.probes.engine.plan import Chunk, StepPlan
from diag.probes.engine.runner import TorchRunner
from diag.probes.engine.sequence import SamplingParams
from tests.probes.engine.by_hand import Dice, play
from tests.probes.engine.dense import SHAPE

EXACT = 1e-12  # of log-probabilities in FP64


MODEL = random_model(SHAPE, seed=5, dtype="fp64")


@given(seed=st.integers(0, 1 << 30), block_tokens=st.sampled_from((1, 4, 16)), padding=st.sampled_from((0, 3)))
@settings(max_examples=25)
def test_any_way_of_computing_gives_what_dense_attention_gives(seed: int, block_tokens: int, padding: int) -> None:
    dice = Dice(MODEL, seed, block_tokens=block_tokens)
    play(dice, 12, padding=padding)
    assert dice.furthest < EXACT


@pytest.mark.parametrize(
    "changes",
    [
        {"n_kv_heads": 4},
        {"n_kv_heads": 1},
        {"attention_bias": True, "model_type": "qwen2"},
        {"qk_norm": True, "model_type": "qwen3", "head_dim": 6},
        {"tie_word_embeddings": True, "rope_theta": 500.0},
    ],
)
def test_models_differ_by_heads_biases_norms_and_ties(changes: dict[str, Any]) -> None:
    dice = Dice(random_model(replace(SHAPE, **changes), dtype="fp64"), 3, block_tokens=4)
    play(dice, 8)
    assert dice.furthest < EXACT


def test_in_fp32_only_rounding_is_left() -> None:
    dice = Dice(random_model(SHAPE, seed=5), 3, block_tokens=4)
    play(dice, 12)
    assert 0 < dice.furthest < 1e-4


def test_triton_kernels_give_the_same() -> None:
    """Chunks of up to eight rows by the kernel for decode, longer ones by FlashAttention."""
    model = random_model(replace(SHAPE, head_dim=16, n_layers=1), seed=5)
    dice = Dice(model, 3, block_tokens=16, attention="triton")
    long, short = dice.add(dice.drawn_tokens(24)), dice.add(dice.drawn_tokens(9))
    dice.step([long], 24)
    while not (long.is_done and short.is_done):
        dice.step([each for each in (short, long) if not each.is_done], 12, 2)
    assert 0 < dice.furthest < 1e-4


def test_what_a_block_held_before_reaches_nobody() -> None:
    """Not even NaN, which no weight of zero takes away."""
    dice = Dice(MODEL, 3, block_tokens=4)
    dice.runner.cache.blocks[:, :, : dice.runner.cache.n_blocks].fill_(float("nan"))
    sequences = [dice.add(dice.drawn_tokens(n)) for n in (3, 9, 17)]
    dice.step(sequences, 17)
    while not all(each.is_done for each in sequences):
        dice.step([each for each in sequences if not each.is_done], 2)
    assert dice.furthest < EXACT


def test_rows_of_padding_change_nothing() -> None:
    config = EngineConfig(n_blocks=8, block_tokens=4)
    plain, padded = (TorchRunner(MODEL, config) for _ in range(2))
    chunks = [Chunk(0, (3,), 0, (5,), SamplingParams(), n_best=3), Chunk(1, (9,), 0, (2,), SamplingParams(), n_best=3)]
    wanted = plain.run(StepPlan(0, chunks)).emissions
    found = padded.run(StepPlan(0, chunks, padded_rows=8)).emissions
    assert [each.tokens for each in found] == [each.tokens for each in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert [value for _, value in one.best] == pytest.approx([value for _, value in other.best], abs=EXACT)
    assert_close(plain.cache.blocks[:, :, :8], padded.cache.blocks[:, :, :8], rtol=0, atol=EXACT)


def test_what_is_not_asked_for_is_not_computed() -> None:
    runner = TorchRunner(MODEL, EngineConfig(n_blocks=8, block_tokens=4))
    assert runner.run(StepPlan(0, [])).emissions == []
    assert runner.run(StepPlan(1, [Chunk(0, (1, 2), 0, (0,), None)])).emissions == []
    output = runner.run(StepPlan(2, [Chunk(0, (3,), 2, (0,), SamplingParams())]))
    assert [len(each.tokens) for each in output.emissions] == [1]
    assert output.emissions[0].best == ()
    assert output.model_ns > 0
    assert output.sample_ns > 0


@pytest.mark.parametrize(
    ("chunk", "error"),
    [
        (Chunk(0, (1, SHAPE.vocab_size), 0, (0,), SamplingParams()), InputError),
        (Chunk(0, (-1,), 0, (0,), SamplingParams()), InputError),
        (Chunk(0, (1,) * 5, 0, (0,), SamplingParams()), ValueError),
        (Chunk(0, (1,), 4, (0,), SamplingParams()), ValueError),
        (Chunk(0, (1,), 0, (8,), SamplingParams()), ValueError),
        (Chunk(0, (1,), 0, (-1,), SamplingParams()), ValueError),
        (Chunk(0, (), 0, (0,), SamplingParams()), ValueError),
    ],
)
def test_a_plan_that_cannot_be_is_refused_before_the_device_sees_it(chunk: Chunk, error: type[Exception]) -> None:
    runner = TorchRunner(MODEL, EngineConfig(n_blocks=8, block_tokens=4))
    with pytest.raises(error):
        runner.run(StepPlan(0, [chunk]))
    assert not runner.cache.blocks.any()


def test_a_cache_that_does_not_fit_is_refused() -> None:
    with pytest.raises(OutOfMemory, match="fewer blocks"):
        TorchRunner(MODEL, EngineConfig(n_blocks=1 << 40))


def test_logits_that_are_no_numbers_are_told() -> None:
    model = random_model(SHAPE)
    model.weights.norm[0] = float("nan")
    runner = TorchRunner(model, EngineConfig(n_blocks=8))
    with pytest.raises(InputError, match="not all finite"):
        runner.run(StepPlan(0, [Chunk(0, (1,), 0, (0,), SamplingParams())]))


def test_frequencies_are_stretched_as_the_model_asks() -> None:
    shape = replace(SHAPE, head_dim=128, rope_theta=500_000.0)
    plain = frequencies(shape)
    assert frequencies(replace(shape, rope_scaling=RopeScaling("linear", 4.0))).equal(plain / 4)
    llama = frequencies(replace(shape, rope_scaling=RopeScaling("llama3", 8.0, 1.0, 4.0, 8192)))
    turns = 8192 * plain / (2 * 3.141592653589793)
    assert llama[turns > 4].equal(plain[turns > 4])
    assert llama[turns < 1].equal(plain[turns < 1] / 8)
    between = (turns > 1) & (turns < 4)
    assert between.any()
    assert ((llama < plain) & (llama > plain / 8))[between].all()


def test_a_seed_is_one_model_and_another_seed_another() -> None:
    first, same, other = (random_model(SHAPE, seed=seed).weights.layers[1].up for seed in (1, 1, 2))
    assert first.equal(same)
    assert not first.equal(other)
