"""Times of a prefill and a decode step, and what a replica sustains by them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.model.card_use import CardUse
from diag.model.deployment import Objectives, Replica, largest_rate, operating, prefill_per_decode
from diag.model.model_catalogue import known_model
from diag.model.planned_card import card, multiplier
from diag.model.planned_model import of_shape
from diag.model.planned_requests import Requests, lengths
from diag.model.precision import precision
from diag.model.serving_roofline import (
    CardRates,
    ServedModel,
    compute_bound_from,
    decode,
    prefill,
    prefill_flops,
    weights_read_bytes,
)
from diag.model.transformer_memory import active_params, parts

BF16 = precision("bf16")
RATES = CardRates(600e12, 3e12, 350e9, 10_000)


def served(name: str, tp: int = 1) -> ServedModel:
    shape = known_model(name).shape
    return ServedModel(shape, parts(shape), BF16, BF16, BF16, tp)


def replica(name: str = "llama-3.1-8b", most: int = 256, tp: int = 1) -> Replica:
    model = of_shape(name, known_model(name).shape, "")
    use = CardUse(card("h100"), BF16, BF16, BF16, tp)
    requests = Requests.drawn(lengths("p", "100-2000"), lengths("o", "50-400"), 0)
    return Replica(served(name, tp), RATES, use.budget(model), requests, most)


def test_a_prefill_has_two_flops_for_each_weight_and_attention_beside_it() -> None:
    model = served("llama-3.1-8b")
    head = 128_256 * 4096
    linear = 2 * (active_params(model.parts) - head)
    attention = 4 * 128 * 32 * 32 * 1000**2 / 2
    assert prefill_flops(model, 1000) == pytest.approx(linear * 1000 + 2 * head + attention)
    assert prefill_flops(model, 500, cached=500) + prefill_flops(model, 500) == pytest.approx(
        prefill_flops(model, 1000) + 2 * head
    )


def test_a_decode_step_of_one_reads_the_weights() -> None:
    """Everything but the embedding: 7.5 B x 2 bytes at 3 TB/s."""
    step = decode(served("llama-3.1-8b"), RATES, 1, 0)
    assert step.weights_ns == pytest.approx(7_504_924_672 * 2 / 3e12 * 1e9)
    assert (step.bound, step.communication_ns, step.kv_ns) == ("memory", 0, 0)


def test_a_prompt_is_bound_by_arithmetic_and_a_token_by_memory() -> None:
    model = served("llama-3.1-70b", 8)
    assert prefill(model, RATES, 4096).bound == "compute"
    assert decode(model, RATES, 16, 2000).bound == "memory"


def test_the_ridge_point_is_where_both_take_as_long() -> None:
    model = served("llama-3.1-8b")
    at = compute_bound_from(model, RATES)
    step = decode(model, RATES, at, 0)
    assert step.compute_ns == pytest.approx(step.weights_ns)
    assert at == pytest.approx(600e12 * 2 / (2 * 3e12))


def test_few_tokens_read_few_experts() -> None:
    model = served("mixtral-8x7b")
    all_of_it = weights_read_bytes(model, float("inf"))
    assert weights_read_bytes(model, 1) == pytest.approx(2 * active_params(model.parts), rel=0.01)
    assert weights_read_bytes(model, 1) < 0.3 * all_of_it


def test_verifying_a_draft_reads_no_more_weights_than_a_token() -> None:
    model = served("llama-3.1-8b")
    one, five = decode(model, RATES, 4, 1000), decode(model, RATES, 4, 1000, new_tokens=5)
    assert five.weights_ns == one.weights_ns
    assert five.kv_ns == one.kv_ns
    assert five.compute_ns == pytest.approx(5 * one.compute_ns)


def test_cards_have_two_sums_a_layer_to_wait_for() -> None:
    step = decode(served("llama-3.1-70b", 8), RATES, 1, 0)
    size = 8192 * 2
    assert step.communication_ns == pytest.approx(160 * (10_000 + 1.75 * size / 350))


def test_what_multiplies_depends_on_the_card() -> None:
    by = {name: multiplier(card("h100"), precision(name)) for name in ("bf16", "fp8", "int4", "nvfp4")}
    assert {name: (of.is_unpacked, of.ceiling.name) for name, of in by.items() if of} == {
        "bf16": (False, "BF16 tensor"),
        "fp8": (False, "FP8 tensor"),
        "int4": (True, "BF16 tensor"),
        "nvfp4": (True, "BF16 tensor"),
    }
    on_blackwell = multiplier(card("b200"), precision("nvfp4"))
    assert on_blackwell is not None
    assert (on_blackwell.is_unpacked, on_blackwell.ceiling.per_s) == (False, 9e15)
    on_a100 = multiplier(card("a100"), precision("fp8"))
    assert on_a100 is not None
    assert on_a100.is_unpacked


# ---- a replica -------------------------------------------------------------------------------------------------------


def test_an_idle_replica_has_no_queue() -> None:
    of = replica()
    found = operating(of, 1e-6)
    assert found is not None
    assert found.ttft_ns == pytest.approx(of.prefill_ns, rel=1e-6)
    assert found.tpot_ns == pytest.approx(of.step(0).total_ns, rel=1e-3)


def test_in_flight_is_littles_law() -> None:
    found = operating(replica(), 5.0)
    assert found is not None
    assert found.in_flight == pytest.approx(5.0 * found.e2e_ns / 1e9)
    assert found.decoding == pytest.approx(5.0 * (replica().output_tokens - 1) * found.tpot_ns / 1e9, rel=1e-6)


def test_beyond_its_capacity_there_is_no_steady_state() -> None:
    of = replica()
    assert operating(of, 1.01e9 / of.prefill_ns) is None
    assert operating(replica(most=2), 20.0) is None
    assert operating(replica(most=0), 1e-3) is None


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 30), st.floats(1.01, 2))
def test_more_requests_never_make_one_faster(rate: float, factor: float) -> None:
    slow, fast = operating(replica(), rate * factor), operating(replica(), rate)
    if slow is not None:
        assert fast is not None
        assert fast.ttft_ns <= slow.ttft_ns
        assert fast.tpot_ns <= slow.tpot_ns + 1e-6


@settings(max_examples=20, deadline=None)
@given(st.floats(5e6, 100e6), st.floats(1.0, 3.0))
def test_a_looser_objective_never_allows_less(tpot_ns: float, factor: float) -> None:
    tight = largest_rate(replica(), Objectives(tpot_ns=tpot_ns))
    loose = largest_rate(replica(), Objectives(tpot_ns=tpot_ns * factor))
    if tight is not None:
        assert loose is not None
        assert tight.requests_per_s <= loose.requests_per_s * (1 + 1e-9)
        assert tight.tpot_ns <= tpot_ns


def test_an_objective_that_a_single_request_misses_allows_nothing() -> None:
    assert largest_rate(replica(), Objectives(ttft_ns=1.0)) is None


def test_replicas_of_each_kind_keep_up_with_each_other() -> None:
    of = replica()
    ratio = prefill_per_decode(of, 64)
    assert ratio is not None
    decoded_per_s = 64e9 / ((of.output_tokens - 1) * of.step(64).total_ns)
    assert ratio * 1e9 / of.prefill_ns == pytest.approx(decoded_per_s)


def test_a_prefill_reads_the_keys_that_the_cache_has_too() -> None:
    model = served("llama-3.1-8b")
    step = prefill(model, RATES, 100, 50)
    assert step.kv_ns == pytest.approx(150 * model.kv_token_bytes / 3e12 * 1e9)
