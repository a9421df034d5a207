"""LayerNorm: every variant against FP64, and which of them keep their digits where the mean is large."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.errors import UsageError
from diag.kernels import layer_norm
from diag.kernels.correctness import error_of, tolerance
from diag.kernels.layer_norm import LONGEST_ROW, OPERATOR
from tests.kernels.against_fp64 import TORCH, check, each_dtype

each_variant = pytest.mark.parametrize("name", [variant.name for variant in OPERATOR.variants])
each_sound_variant = pytest.mark.parametrize("name", ["three_pass", "welford", "one_pass"])


def check_rows(name: str, x: Any, weight: Any, bias: Any, dtype: str = "fp32", **options: float) -> None:
    result = OPERATOR.variant(name).run(x, weight, bias, **options)
    assert result.dtype == x.dtype
    check(result, OPERATOR.reference(x, weight, bias, **options), dtype, x.shape[1])


@each_variant
@each_dtype
@pytest.mark.parametrize("shape", [(1, 2), (3, 31), (2, 2048), (2, 5003)])
def test_it_equals_fp64_within_rounding(
    name: str, dtype: str, shape: tuple[int, int], device: str, generator: torch.Generator
) -> None:
    x = torch.randn(shape, generator=generator, device=device).to(TORCH[dtype])
    weight, bias = torch.randn(2, shape[1], generator=generator, device=device).to(TORCH[dtype])
    check_rows(name, x, weight, bias, dtype)


@each_variant
def test_bf16_values_upcast_on_load(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(4, 300, generator=generator, device=device).bfloat16().float()
    check_rows(name, x[:2], x[2], x[3])


def error_with_mean(mean: float, name: str, device: str, generator: torch.Generator) -> float:
    x = torch.randn(2, 4096, generator=generator, device=device) + mean
    weight, bias = torch.ones(4096, device=device), torch.zeros(4096, device=device)
    return error_of(OPERATOR.variant(name).run(x, weight, bias), OPERATOR.reference(x, weight, bias)).relative


@each_sound_variant
def test_a_large_mean_costs_only_what_it_rounds(name: str, device: str, generator: torch.Generator) -> None:
    """The mean itself is known to a few roundoffs of 10,000, and each difference to it is off by that."""
    assert error_with_mean(1e4, name, device, generator) <= 1e4 * tolerance("fp32")


def test_a_large_mean_leaves_nothing_of_a_difference_of_squares(device: str, generator: torch.Generator) -> None:
    """It does as well as the others around zero, is off by more than they are at 1,000, and useless at 10,000."""
    errors = [error_with_mean(mean, "sum_of_squares", device, generator) for mean in (0.0, 1e3, 1e4)]
    assert errors[0] <= tolerance("fp32", 4096)
    assert errors[1] > 10 * error_with_mean(1e3, "welford", device, generator)
    assert errors[2] > 0.1


@each_sound_variant
@pytest.mark.parametrize("value", [0.0, 1.0, -5e4, 1e-20])
def test_all_equal_leaves_the_bias(name: str, value: float, device: str) -> None:
    """Of a power of two as many, so that the mean is the value itself."""
    x, bias = torch.full((2, 64), value, device=device), torch.arange(64.0, device=device)
    assert torch.equal(OPERATOR.variant(name).run(x, bias, bias), bias.expand(2, 64))


@each_variant
def test_one_element_is_its_own_mean(name: str, device: str) -> None:
    x, one = torch.tensor([[7.0], [-3.0]], device=device), torch.ones(1, device=device)
    assert torch.equal(OPERATOR.variant(name).run(x, one, 2 * one), torch.full((2, 1), 2.0, device=device))


@each_sound_variant
def test_the_largest_fp16_values(name: str, device: str) -> None:
    x = torch.full((1, 2500), 65_504.0, device=device).half()
    x[0, ::2] *= -1
    weight = torch.ones(2500, device=device).half()
    check_rows(name, x, weight, weight, "fp16")


@each_variant
@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf")])
def test_a_special_value_spoils_its_row_alone(name: str, special: float, device: str) -> None:
    x = torch.linspace(-1, 1, 2100, device=device).repeat(3, 1)
    x[1, 2050] = special
    weight = torch.full((2100,), 2.0, device=device)
    check_rows(name, x, weight, weight)


@each_variant
def test_rows_of_a_wider_matrix(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(3, 80, generator=generator, device=device)
    check_rows(name, x[:, 7:60], x[0, :53], x[1, :53])


@pytest.mark.parametrize("name", ["sum_of_squares", "three_pass", "welford"])
def test_rows_longer_than_registers(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(3, LONGEST_ROW + 77, generator=generator, device=device)
    check_rows(name, x[:1], x[1], x[2])


def test_the_longest_row_in_registers_and_the_next(device: str, generator: torch.Generator) -> None:
    x = torch.randn(3, LONGEST_ROW + 1, generator=generator, device=device)
    check_rows("one_pass", x[:1, 1:], x[1, 1:], x[2, 1:])
    with pytest.raises(UsageError, match=r"16,384 elements at most, and this one has 16,385\. Use welford"):
        layer_norm.one_pass(x, x[0], x[0])


@each_variant
@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_nothing_in_nothing_out(name: str, shape: tuple[int, int], device: str) -> None:
    x, vector = torch.empty(shape, device=device), torch.empty(shape[1], device=device)
    assert OPERATOR.variant(name).run(x, vector, vector).shape == shape


@each_variant
def test_biases_of_another_length_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"does not fit rows of 5\. Give"):
        OPERATOR.variant(name).run(torch.zeros(2, 5), torch.zeros(5), torch.zeros(4))


def test_counts_by_hand() -> None:
    of = OPERATOR.count(rows=1024, columns=512, dtype="fp16")
    assert (of.flops, of.read_bytes, of.written_bytes) == (3_670_016, 1_050_624, 1_048_576)


# ---- states (mean, M2, n) ------------------------------------------------------------------------------------------


def _merge_all(states: Any, into: Any, lanes: tl.constexpr) -> None:
    lane = tl.arange(0, lanes)
    mean, m2, n = layer_norm.merge_lanes(
        tl.load(states + lane), tl.load(states + lanes + lane), tl.load(states + 2 * lanes + lane)
    )
    tl.store(into, mean)
    tl.store(into + 1, m2)
    tl.store(into + 2, n)


merge_all = triton.jit(_merge_all)


def state(part: list[float]) -> Any:
    """By the definition, in FP64: mean, sum of squared differences to it, number of elements."""
    if not part:
        return torch.zeros(3)
    x = torch.tensor(part, dtype=torch.float64)
    return torch.stack([x.mean(), (x - x.mean()).square().sum(), torch.tensor(float(len(part)))]).float()


PARTS = st.lists(st.lists(st.floats(-100, 100, width=32), max_size=6), min_size=4, max_size=4)


@given(PARTS.filter(any))
@settings(max_examples=40)
def test_states_of_lanes_merge_to_that_of_the_whole(parts: list[list[float]]) -> None:
    """A lane may be empty, and lanes need not have as many elements as one another."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    into = torch.empty(3, device=device)
    merge_all[(1,)](torch.stack([state(part) for part in parts], 1).contiguous().to(device), into, lanes=4)
    whole = state([value for part in parts for value in part])
    torch.testing.assert_close(into.cpu(), whole, rtol=1e-5, atol=1e-3)
