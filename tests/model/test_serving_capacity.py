"""How many fit: Little's law, and the simulation against cases that can be worked out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.errors import UsageError
from diag.model.planned_requests import Requests, lengths
from diag.model.serving_capacity import (
    concurrency_by_percentile,
    in_flight,
    mean_context_tokens,
    simulate,
    slots_worth_drawing,
)


def requests(prompt: str, output: str, seed: int = 0) -> Requests:
    return Requests.drawn(lengths("--prompt", prompt), lengths("--output", output), seed)


def test_littles_law() -> None:
    assert in_flight(8, 6) == 48


def test_prompts_alone_fill_the_pool_exactly() -> None:
    """One output token: every slot always holds the blocks of its prompt and that token."""
    of = requests("159", "1")
    occupancy = simulate(of, 16, 50, seed=1)
    assert occupancy.largest_concurrency(100, 0.0) == 10
    assert occupancy.overflow_share(10, 100) == 0.0
    assert occupancy.overflow_share(11, 100) == 1.0


def test_on_average_an_output_is_half_way() -> None:
    of = requests("1000", "2001")
    assert mean_context_tokens(of) == 1000 + 1001
    held = simulate(of, 1, 1, seed=2).held_blocks[:, 0]
    assert float(held.mean()) == pytest.approx(1000 + 1001, rel=0.02)


def test_long_outputs_are_met_more_often_than_short_ones() -> None:
    """Half of the requests have 1 token, half 999: at a random step a slot is at a long one in 999 of 1000 cases."""
    half = np.full(500, 1), np.full(500, 999)
    of = Requests(np.zeros(1000, np.int64), np.concatenate(half).astype(np.int64), "")
    assert mean_context_tokens(of) == pytest.approx(0.999 * 500 + 0.001 * 1, rel=1e-3)
    held = simulate(of, 1, 1, seed=3).held_blocks[:, 0]
    assert float(held.mean()) == pytest.approx(500, rel=0.03)


def test_percentiles_miss_it_on_both_sides() -> None:
    of = requests("lognormal:1000:0.8", "lognormal:250:0.8")
    n_blocks = 20_000
    fit = simulate(of, 16, slots_worth_drawing(of, 16, n_blocks), 0).largest_concurrency(n_blocks, 0.01)
    assert concurrency_by_percentile(of, 16, n_blocks, 99) < fit < concurrency_by_percentile(of, 16, n_blocks, 50)


def test_the_same_seed_gives_the_same_answer_and_another_nearly_so() -> None:
    of = requests("100-900", "50-500")
    found = [simulate(of, 16, 200, seed).largest_concurrency(5000, 0.01) for seed in (0, 0, 1)]
    assert found[0] == found[1]
    assert found[2] == pytest.approx(found[0], rel=0.03)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 2000), st.integers(1, 500), st.integers(1, 64), st.integers(1, 5000))
def test_more_room_never_fits_less_and_all_that_fit_do(prompt: int, output: int, block: int, n_blocks: int) -> None:
    of = requests(f"{prompt}", f"1-{output}")
    occupancy = simulate(of, block, min(200, slots_worth_drawing(of, block, n_blocks)), 0)
    small, large = (occupancy.largest_concurrency(n, 0.01) for n in (n_blocks, 2 * n_blocks))
    assert small <= large
    assert occupancy.overflow_share(small, n_blocks) <= 0.01


def test_no_requests_have_no_length() -> None:
    with pytest.raises(ValueError, match="no request"):
        simulate(Requests.measured([], ""), 16, 4, 0)


@pytest.mark.parametrize("text", ["0", "-5", "9-3", "many", "1e9", "lognormal:5", "lognormal:0:1", "99999999", ""])
def test_lengths_that_none_can_be(text: str) -> None:
    with pytest.raises(UsageError, match="--prompt"):
        lengths("--prompt", text)


@given(st.integers(1, 10_000), st.integers(0, 10_000), st.integers(0, 5))
def test_lengths_stay_within_what_was_written(low: int, more: int, seed: int) -> None:
    drawn = lengths("--prompt", f"{low}-{low + more}").draw(100, np.random.default_rng(seed))
    assert low <= drawn.min() <= drawn.max() <= low + more
