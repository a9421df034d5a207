"""Parameters and KV cache: the textbook figures, and what must hold for any shape."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.model.card_budget import CardBudget, weights_bytes, weights_per_card_bytes, workspace_bytes
from diag.model.hf_config import TransformerShape
from diag.model.kv_cache import (
    KvShape,
    blocks_for,
    bytes_per_token,
    bytes_per_token_and_card,
    replicas,
    tail_tokens,
)
from diag.model.model_catalogue import known_model
from diag.model.planned_model import of_count
from diag.model.precision import precision
from diag.model.transformer_memory import active_experts, parts, total_params

BF16 = precision("bf16")


def test_70_b_in_bf16_is_140_gb_and_17_5_on_each_of_eight() -> None:
    model = of_count(70e9, None)
    assert weights_bytes(model.parts, BF16, BF16) == 140e9
    assert weights_per_card_bytes(model.parts, 8, BF16, BF16) == 17.5e9


def test_kv_of_a_token() -> None:
    assert bytes_per_token(KvShape(80, 8, 128), 2) == 327_680
    assert 64 * 2500 * bytes_per_token(KvShape(80, 8, 128), 2) / (1 << 30) == pytest.approx(48.8, abs=0.05)
    assert bytes_per_token(KvShape(32, 32, 128), 2) == 0.5 * (1 << 20)
    assert 16 * 4096 * bytes_per_token(KvShape(32, 32, 128), 2) == 32 << 30


def test_latent_attention_keeps_one_vector_on_every_card() -> None:
    kv = KvShape.of(known_model("deepseek-v3").shape)
    assert bytes_per_token(kv, 2) == 61 * 576 * 2
    assert bytes_per_token_and_card(kv, 2, 8) == 61 * 576 * 2
    assert replicas(kv, 8) == 8


def test_kv_heads_that_do_not_divide_lie_on_several_cards() -> None:
    kv = KvShape(80, 8, 128)
    assert [replicas(kv, tp) for tp in (1, 8, 16, 32)] == [1, 1, 2, 4]
    assert replicas(KvShape(28, 4, 128), 3) == 1.5  # 2 heads on the fullest of three cards


def test_tying_the_embedding_saves_one_table() -> None:
    shape = known_model("llama-3.1-8b").shape
    tied = total_params(parts(replace(shape, tie_word_embeddings=True)))
    assert total_params(parts(shape)) - tied == shape.vocab_size * shape.hidden_size


def test_norms_lie_on_every_card() -> None:
    norms = next(part for part in parts(known_model("llama-3.1-70b").shape) if part.name == "norms")
    assert norms.count == (2 * 80 + 1) * 8192
    assert (norms.per_card(8), norms.replicas(8)) == (norms.count, 8)


def test_scales_count_and_embeddings_stay_wide() -> None:
    shape = known_model("llama-3.1-8b").shape
    of = parts(shape)
    linear = sum(part.count for part in of if part.is_linear)
    rest = total_params(of) - linear
    expected = linear * (4 + 20 / 128) / 8 + rest * 2
    assert weights_bytes(of, precision("int4"), BF16) == pytest.approx(expected)


def test_the_workspace_of_a_step_by_hand() -> None:
    """Llama 3.1 8B: 4096 wide, 32 heads of 128, 8 of keys, 14336 inside, 128256 words."""
    shape = known_model("llama-3.1-8b").shape
    of_tokens = 100 * (2 * 4096 + 3 * 14336) * 2
    assert workspace_bytes(shape, 100, 10, 1) == of_tokens + 10 * 128256 * (2 + 4)
    narrow = replace(shape, intermediate_size=1)
    attention = 2 * 32 * 128 / 2 + 2 * 4 * 128
    assert workspace_bytes(narrow, 100, 0, 2) == 100 * (2 * 4096 + attention) * 2


SHAPES = st.builds(
    TransformerShape,
    hidden_size=st.integers(1, 512),
    n_layers=st.integers(1, 8),
    n_heads=st.sampled_from([8, 16, 24]),
    n_kv_heads=st.sampled_from([1, 2, 4, 8]),
    head_dim=st.integers(1, 64),
    intermediate_size=st.integers(1, 2048),
    vocab_size=st.integers(1, 4096),
    max_position_embeddings=st.just(4096),
    tie_word_embeddings=st.booleans(),
    attention_bias=st.booleans(),
)


@given(SHAPES, st.sampled_from([1, 2, 4, 8]))
def test_shards_and_replicas_make_up_the_whole(shape: TransformerShape, tp: int) -> None:
    for part in parts(shape):
        assert part.per_card(tp) * tp == pytest.approx(part.count * part.replicas(tp))
        assert 1 - 1e-9 <= part.replicas(tp) <= tp
        assert 0 <= part.active <= part.count


@given(SHAPES, st.sampled_from(["n_layers", "hidden_size", "intermediate_size", "vocab_size", "head_dim"]))
def test_more_of_anything_is_more(shape: TransformerShape, field: str) -> None:
    larger = replace(shape, **{field: getattr(shape, field) + 1})
    assert total_params(parts(larger)) > total_params(parts(shape))
    assert workspace_bytes(larger, 100, 10, 1) >= workspace_bytes(shape, 100, 10, 1)


@given(SHAPES)
def test_more_cards_never_need_more_of_each(shape: TransformerShape) -> None:
    sizes = [weights_per_card_bytes(parts(shape), tp, BF16, BF16) for tp in (1, 2, 4, 8)]
    assert sizes == sorted(sizes, reverse=True)


@given(st.integers(1, 1 << 20), st.integers(1, 4096))
def test_blocks_hold_all_tokens_and_waste_less_than_one(tokens: int, block: int) -> None:
    assert blocks_for(tokens, block) * block == tokens + tail_tokens(tokens, block)
    assert 0 <= tail_tokens(tokens, block) < block


@given(st.floats(0, 1e12), st.floats(0, 0.9), st.floats(0, 1e11), st.integers(1, 256))
def test_a_pool_never_exceeds_its_room(memory: float, reserve: float, weights: float, block: int) -> None:
    budget = CardBudget(memory, reserve, weights, 1e9, 1e9, 1000.0, block)
    assert budget.n_blocks >= 0
    if budget.n_blocks:
        assert budget.taken_bytes + budget.kv_tokens * budget.kv_token_bytes <= budget.usable_bytes + 1
        assert budget.sequences_of(block) == budget.n_blocks


@given(st.integers(1, 256), st.integers(1, 4096))
def test_experts_that_are_reached_grow_to_all(experts: int, tokens: int) -> None:
    one = active_experts(experts, 1, 1)
    assert one == pytest.approx(1)
    assert one - 1e-9 <= active_experts(experts, 1, tokens) <= experts
