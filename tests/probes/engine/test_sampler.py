"""Distributions are cut where they should be, and draws come out as often as they should."""

from __future__ import annotations

import math

import pytest
import torch

from diag.probes.engine.sampler import best, choose, drawn, probabilities, uniform
from diag.probes.engine.sequence import SamplingParams
from tests.probes.engine.chi_square import fits

LOGITS = torch.tensor([[2.0, 0.0, 1.0, -1.0, 2.0, -30.0]])


def shares(**params: float) -> list[float]:
    (row,) = probabilities(LOGITS, [SamplingParams(**params)]).tolist()  # type: ignore[arg-type]
    return [round(each, 6) for each in row]


def softmax(values: list[float]) -> list[float]:
    powers = [math.exp(each) for each in values]
    return [round(each / sum(powers), 6) for each in powers]


def test_greedy_is_a_distribution_on_one_token_the_first_of_equals() -> None:
    assert shares() == [1, 0, 0, 0, 0, 0]
    assert choose(LOGITS, [SamplingParams()], [0]).tolist() == [0]


def test_temperature_divides_logits() -> None:
    assert shares(temperature=1.0) == softmax(LOGITS[0].tolist())
    assert shares(temperature=2.0) == softmax((LOGITS[0] / 2).tolist())
    assert shares(temperature=1e-6) == [0.5, 0, 0, 0, 0.5, 0]
    assert shares(temperature=1e-300) == [0.5, 0, 0, 0, 0.5, 0]


def test_top_k_keeps_the_likeliest_of_equals_the_first() -> None:
    assert shares(temperature=1.0, top_k=1) == [1, 0, 0, 0, 0, 0]
    assert shares(temperature=1.0, top_k=2) == [0.5, 0, 0, 0, 0.5, 0]
    assert shares(temperature=1.0, top_k=100) == shares(temperature=1.0)


def test_top_p_keeps_as_few_as_add_up_to_it_and_always_one() -> None:
    assert shares(temperature=1.0, top_p=1e-9) == [1, 0, 0, 0, 0, 0]
    assert shares(temperature=1.0, top_p=0.7) == [0.5, 0, 0, 0, 0.5, 0]
    likeliest = softmax([2, -99, 1, -99, 2, -99])
    assert shares(temperature=1.0, top_p=0.85) == pytest.approx(likeliest)
    assert shares(temperature=1.0, top_k=2, top_p=0.6) == [0.5, 0, 0, 0, 0.5, 0]
    assert shares(temperature=1.0, top_k=2, top_p=0.5) == [1, 0, 0, 0, 0, 0], "of what top k left"


def test_each_row_has_parameters_of_its_own() -> None:
    rows = [SamplingParams(), SamplingParams(temperature=1.0), SamplingParams(temperature=1.0, top_k=1)]
    together = probabilities(LOGITS.repeat(3, 1), rows)
    for row, params in zip(together, rows, strict=True):
        assert row.equal(probabilities(LOGITS, [params])[0])


def test_draws_come_as_often_as_they_are_likely() -> None:
    params = [SamplingParams(temperature=1.5, seed=seed) for seed in range(4000)]
    tokens = choose(LOGITS.repeat(len(params), 1), params, [7] * len(params))
    assert fits(tokens.tolist(), probabilities(LOGITS, params[:1])[0].tolist())
    positions = choose(LOGITS.repeat(4000, 1), params[:1] * 4000, list(range(4000)))
    assert fits(positions.tolist(), probabilities(LOGITS, params[:1])[0].tolist())


def test_a_token_depends_on_seed_and_position_and_not_on_its_company() -> None:
    params = [SamplingParams(temperature=1.0, seed=seed) for seed in range(50)]
    logits = torch.randn(50, 30, generator=torch.Generator().manual_seed(2))
    together = choose(logits, params, list(range(50))).tolist()
    alone = [int(choose(logits[i : i + 1], [params[i]], [i])) for i in range(50)]
    assert together == alone
    assert together != choose(logits, params, list(range(1, 51))).tolist()


def test_a_token_without_a_share_is_never_drawn() -> None:
    row = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0]], dtype=torch.float64).repeat(3, 1)
    assert drawn(row, [0.0, 0.3, 1 - 2.0**-48]).tolist() == [1, 3, 3]


def test_numbers_are_even_between_0_and_1() -> None:
    values = [uniform(seed, position) for seed in range(-5, 45) for position in range(100)]
    assert all(0 <= each < 1 for each in values)
    assert len(set(values)) == len(values)
    assert fits([int(each * 20) for each in values], [0.05] * 20)
    assert uniform(1 << 200, 3) != uniform(1, 3, "accept") != uniform(1, 3)


def test_the_best_come_with_their_log_probabilities() -> None:
    wanted = LOGITS[0].double().log_softmax(0)
    found = best(LOGITS[0], 3)
    assert {token for token, _ in found} == {0, 4, 2}
    assert [value for _, value in found] == pytest.approx([float(wanted[token]) for token, _ in found])
    assert found[2][0] == 2
    assert len(best(LOGITS[0], 100)) == 6
