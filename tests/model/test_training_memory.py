"""States of training: 16 bytes a parameter, ZeRO's table, and Korthikanti's equations."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.model.model_catalogue import known_model
from diag.model.parallelism import ZeroStage
from diag.model.planned_model import of_count
from diag.model.training_memory import (
    Recompute,
    TrainingLayout,
    gpt_layer_bytes,
    layer_bytes,
    peaks,
    states,
)
from diag.model.transformer_memory import parts

SHAPE = known_model("llama-3.1-8b").shape
PARTS = parts(SHAPE)


def held(layout: TrainingLayout) -> float:
    """Bytes of parameters, gradients and optimizer on a card, without what FSDP gathers."""
    of = states(PARTS, None, layout)
    return sum(each.card_bytes for each in of if "gathered" not in each.name)


def test_7_b_with_adamw_take_112_gb() -> None:
    of = states(of_count(7e9, None).parts, None, TrainingLayout())
    assert sum(each.card_bytes for each in of) == 112e9
    assert [each.whole_bytes / 7e9 for each in of] == [2, 2, 4, 8]


def test_stages_of_zero_are_those_of_the_paper() -> None:
    """Figure 1 of ZeRO: 7.5 B parameters over 64 ranks take 120, 31.4, 16.6 and 1.9 GB."""
    of = of_count(7.5e9, None).parts
    stages: tuple[ZeroStage, ...] = get_args(ZeroStage)
    found = [
        sum(
            each.card_bytes for each in states(of, None, TrainingLayout(dp=64, zero=stage)) if "gather" not in each.name
        )
        for stage in stages
    ]
    assert [round(each / 1e9, 1) for each in found] == [120.0, 31.4, 16.6, 1.9]


def test_fsdp_gathers_a_layer_and_the_next() -> None:
    (gathered,) = [each for each in states(PARTS, SHAPE, TrainingLayout(dp=8, zero=3)) if "gathered" in each.name]
    table = SHAPE.vocab_size * SHAPE.hidden_size
    layers = sum(part.count for part in PARTS) - 2 * table
    assert gathered.card_bytes == pytest.approx(2 * (2 * table + 2 * layers / SHAPE.n_layers))
    assert gathered.lifetime == "one layer"


def test_activations_of_a_gpt_layer_are_the_equations() -> None:
    s, b, h, a, t = 2048, 4, 12288, 96, 8
    assert gpt_layer_bytes(s, b, h, a) == s * b * h * (34 + 5 * a * s / h)
    assert gpt_layer_bytes(s, b, h, a, t) == pytest.approx(s * b * h * (10 + 24 / t + 5 * a * s / (h * t)))
    assert gpt_layer_bytes(s, b, h, a, t, sp=True) == pytest.approx(s * b * h / t * (34 + 5 * a * s / h))


def test_activations_of_a_layer_of_llama_by_hand() -> None:
    """Llama 3.1 8B on two cards: 16 of its 32 heads, 4 of its 8 of keys, half of the 14336 inside."""
    tokens = 2 * 4096
    layout = TrainingLayout(tp=2, micro_batch=2, sequence=4096)
    rest = 2 * tokens * (2 * 16 + 2 * 4) * 128 + 8 * tokens * 14336 / 2 + 4 * tokens * 16
    assert layer_bytes(SHAPE, layout) == 8 * tokens * 4096 + rest
    assert layer_bytes(SHAPE, replace(layout, is_sequence_parallel=True)) == 8 * tokens * 4096 / 2 + rest


def test_without_flash_attention_probabilities_grow_with_the_square() -> None:
    def bytes_of(sequence: int, *, flash: bool) -> float:
        return layer_bytes(SHAPE, TrainingLayout(sequence=sequence, has_flash_attention=flash))

    with_flash = [bytes_of(n, flash=True) for n in (4096, 8192)]
    assert with_flash[1] == 2 * with_flash[0]
    extra = bytes_of(4096, flash=False) - with_flash[0]
    assert extra == SHAPE.n_heads * 4096 * (2 * 4096 - 4)


def test_recomputation_keeps_only_the_inputs_of_layers() -> None:
    layout = TrainingLayout(sequence=4096, recompute="full")
    kept = {each.name: each for each in states(PARTS, SHAPE, layout)}
    assert kept["inputs of layers"].card_bytes == 2 * 4096 * SHAPE.hidden_size * SHAPE.n_layers
    assert kept["a layer, recomputed"].card_bytes == layer_bytes(SHAPE, layout)
    whole = peaks(states(PARTS, SHAPE, replace(layout, recompute="none")), layout)
    assert peaks(tuple(kept.values()), layout).start_of_backward < whole.start_of_backward


def test_the_first_stage_keeps_as_many_micro_batches_as_there_are_stages() -> None:
    def activations(pp: int, micro_batches: int) -> float:
        of = states(PARTS, SHAPE, TrainingLayout(pp=pp, micro_batches=micro_batches, sequence=1024))
        return next(each.card_bytes for each in of if each.name == "activations of layers")

    assert activations(4, 8) == activations(1, 8)
    assert activations(4, 2) == activations(1, 8) / 2


def test_gradients_of_earlier_micro_batches_lie_beside_activations() -> None:
    one, several = (TrainingLayout(sequence=1024, micro_batches=n) for n in (1, 4))
    found = [peaks(states(PARTS, SHAPE, each), each).start_of_backward for each in (one, several)]
    assert found[1] - found[0] == 2 * sum(part.count for part in PARTS)


LAYOUTS = st.builds(
    TrainingLayout,
    tp=st.sampled_from([1, 2, 4, 8]),
    pp=st.integers(1, 8),
    dp=st.integers(1, 64),
    zero=st.sampled_from(get_args(ZeroStage)),
    is_sequence_parallel=st.booleans(),
    micro_batch=st.integers(1, 8),
    sequence=st.integers(1, 8192),
    micro_batches=st.integers(1, 16),
    recompute=st.sampled_from(get_args(Recompute)),
    has_flash_attention=st.booleans(),
)


@given(LAYOUTS)
def test_cards_together_hold_every_replica(layout: TrainingLayout) -> None:
    for state in states(PARTS, SHAPE, layout):
        assert state.card_bytes * state.shards == pytest.approx(state.whole_bytes * state.replicas)
        assert state.card_bytes > 0


@given(LAYOUTS, st.sampled_from(["sequence", "micro_batch"]))
def test_more_tokens_never_take_less(layout: TrainingLayout, field: str) -> None:
    larger = replace(layout, **{field: getattr(layout, field) + 1})
    found = [peaks(states(PARTS, SHAPE, each), each).largest for each in (layout, larger)]
    assert found[0] <= found[1]


@given(LAYOUTS)
def test_a_higher_stage_of_zero_never_holds_more(layout: TrainingLayout) -> None:
    stages: tuple[ZeroStage, ...] = get_args(ZeroStage)
    found = [held(replace(layout, zero=stage)) for stage in stages]
    assert found == sorted(found, reverse=True)


def test_inputs_of_recomputed_layers_are_split_by_sequence_parallelism_alone() -> None:
    layout = TrainingLayout(tp=2, sequence=4096, recompute="full")
    inputs = 2 * 4096 * SHAPE.hidden_size * SHAPE.n_layers
    for of, wanted in ((layout, inputs), (replace(layout, is_sequence_parallel=True), inputs / 2)):
        kept = {each.name: each.card_bytes for each in states(PARTS, SHAPE, of)}
        assert kept["inputs of layers"] == wanted
