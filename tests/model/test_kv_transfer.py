"""Moving keys and values, and speculative decoding: closed forms against step-by-step accounts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.model.kv_transfer import Way, breakeven_tokens, exposed_ns, layerwise_ns, transfer_ns
from diag.model.speculative_gain import (
    acceptance_of,
    breakeven_acceptance,
    speedup,
    tokens_per_verification,
)

times = st.floats(1, 1e6)


def test_a_gibibyte_at_50_gb_a_second() -> None:
    assert transfer_ns(1 << 30, Way("network", 50e9)) / 1e6 == pytest.approx(21.5, abs=0.05)


@given(st.integers(1, 100), times, times)
def test_layers_one_after_the_other(n_layers: int, compute: float, send: float) -> None:
    """Each layer is sent when it is computed and the link is free."""
    computed = sent = 0.0
    for _ in range(n_layers):
        computed += compute
        sent = max(computed, sent) + send
    assert layerwise_ns(n_layers, compute, send) == pytest.approx(sent)


@given(st.integers(1, 100), times, times)
def test_between_the_last_layer_and_all_of_it_is_exposed(n_layers: int, compute: float, send: float) -> None:
    exposed = exposed_ns(n_layers, compute, send)
    assert send - 1e-6 * n_layers * (compute + send) <= exposed <= n_layers * send * (1 + 1e-9) + 1e-3


@given(st.floats(1, 1e7), st.floats(0, 1e4), st.floats(1e-6, 10))
def test_at_the_break_even_both_take_as_long(latency: float, linear: float, square: float) -> None:
    way = Way("fetch", 50e9, latency)
    tokens = breakeven_tokens(way, 327_680, linear, square)
    assert tokens is not None
    if tokens > 1e-6:
        assert transfer_ns(tokens * 327_680, way) == pytest.approx(linear * tokens + square * tokens**2, rel=1e-4)


# ---- speculation -----------------------------------------------------------------------------------------------------


@given(st.floats(0, 1), st.integers(1, 20))
def test_a_verification_yields_between_one_and_all(acceptance: float, drafted: int) -> None:
    assert 1 <= tokens_per_verification(acceptance, drafted) <= drafted + 1
    assert tokens_per_verification(acceptance, drafted) <= tokens_per_verification(acceptance, drafted + 1)


def test_the_sum_is_what_drawing_gives() -> None:
    drawn = random.Random(0)

    def tokens() -> int:
        accepted = 0
        while accepted < 4 and drawn.random() < 0.7:
            accepted += 1
        return accepted + 1

    mean = sum(tokens() for _ in range(20_000)) / 20_000
    assert mean == pytest.approx(tokens_per_verification(0.7, 4), rel=0.01)


@given(st.integers(1, 12), st.floats(0, 0.5), st.floats(1, 2))
def test_at_the_break_even_nothing_is_gained(drafted: int, draft_cost: float, verify_cost: float) -> None:
    least = breakeven_acceptance(drafted, draft_cost, verify_cost)
    if least is None:
        assert speedup(1.0, drafted, draft_cost, verify_cost) < 1
    elif least > 1e-9:
        assert speedup(least, drafted, draft_cost, verify_cost) == pytest.approx(1)


@given(st.floats(0.01, 1), st.integers(1, 16))
def test_acceptance_is_found_again(acceptance: float, drafted: int) -> None:
    accepted = tokens_per_verification(acceptance, drafted) - 1
    assert acceptance_of(accepted, drafted, drafted) == pytest.approx(acceptance, abs=1e-6)
