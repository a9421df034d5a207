"""Softmax: every variant against FP64 and on the values that overflow, and what makes merging states sound."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.errors import UsageError
from diag.kernels import softmax
from diag.kernels.softmax import LONGEST_ROW, OPERATOR
from tests.kernels.against_fp64 import TORCH, check, each_dtype

INF, NAN = float("inf"), float("nan")
VARIANTS = [variant.name for variant in OPERATOR.variants]
each_variant = pytest.mark.parametrize("name", VARIANTS)


def check_rows(name: str, x: Any, dtype: str = "fp32") -> None:
    result = OPERATOR.variant(name).run(x)
    assert result.dtype == x.dtype
    check(result, OPERATOR.reference(x), dtype, x.shape[1])


@each_variant
@each_dtype
@pytest.mark.parametrize("shape", [(1, 1), (3, 31), (2, 2048), (2, 5003)])
def test_it_equals_fp64_within_rounding(
    name: str, dtype: str, shape: tuple[int, int], device: str, generator: torch.Generator
) -> None:
    check_rows(name, (4 * torch.randn(shape, generator=generator, device=device)).to(TORCH[dtype]), dtype)


@each_variant
def test_bf16_values_upcast_on_load(name: str, device: str, generator: torch.Generator) -> None:
    check_rows(name, torch.randn(2, 300, generator=generator, device=device).bfloat16().float())


@each_variant
@pytest.mark.parametrize("value", [0.0, 3e38, -3e38, 1e-38])
def test_all_equal(name: str, value: float, device: str) -> None:
    check_rows(name, torch.full((2, 75), value, device=device))


@each_variant
def test_large_values_of_both_signs(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(2, 300, generator=generator, device=device)
    check_rows(name, torch.stack([x[0] + 1e4, x[1] - 1e4, 1e4 * x[0], 1e36 * x[1]]))


@each_variant
@pytest.mark.parametrize("order", ["rising", "falling"])
def test_a_maximum_that_comes_last_or_first(name: str, order: str, device: str) -> None:
    """Over three chunks: the sum so far is rescaled in each of them, or in none."""
    x = torch.linspace(-90, 90, 5000, device=device)[None]
    check_rows(name, x if order == "rising" else x.flip(1))


@each_variant
@pytest.mark.parametrize("columns", [40, 2100])
def test_nan_and_infinities(name: str, columns: int, device: str) -> None:
    """As in PyTorch: masked entries get nothing, a row without any other is NaN, and so is one with NaN or +inf."""
    x = torch.ones(6, columns, device=device)
    x[0, ::2] = -INF
    x[1] = -INF
    x[1, columns - 1] = 0.0
    x[2] = -INF
    x[3, 5] = INF
    x[4, 5] = NAN
    result = OPERATOR.variant(name).run(x)
    assert torch.equal(result.isnan().all(1), torch.tensor([False, False, True, True, True, False], device=device))
    check_rows(name, x)
    assert float(result[1, columns - 1]) == 1.0
    assert not result[0, ::2].any()


@each_variant
def test_rows_of_a_wider_matrix(name: str, device: str, generator: torch.Generator) -> None:
    check_rows(name, torch.randn(3, 80, generator=generator, device=device)[:, 7:60])


@each_variant
def test_rows_that_lie_beyond_two_to_the_31_elements(name: str, device: str) -> None:
    """Only the pages that rows lie on are ever touched."""
    x = torch.empty((1 << 31) + 100, dtype=torch.float16, device=device).as_strided((3, 50), ((1 << 30) + 8, 1))
    x[:] = torch.arange(150, device=device).reshape(3, 50) / 16
    check_rows(name, x, "fp16")


@pytest.mark.parametrize("name", ["three_pass", "online"])
def test_rows_longer_than_registers(name: str, device: str, generator: torch.Generator) -> None:
    check_rows(name, torch.randn(1, LONGEST_ROW + 77, generator=generator, device=device))


def test_the_longest_row_in_registers_and_the_next(device: str, generator: torch.Generator) -> None:
    x = torch.randn(1, LONGEST_ROW + 1, generator=generator, device=device)
    check_rows("one_pass", x[:, 1:])
    with pytest.raises(UsageError, match=r"32,768 elements at most, and this one has 32,769\. Use online"):
        softmax.one_pass(x)


@each_variant
@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_nothing_in_nothing_out(name: str, shape: tuple[int, int], device: str) -> None:
    assert OPERATOR.variant(name).run(torch.empty(shape, device=device)).shape == shape


@each_variant
@pytest.mark.parametrize("x", [torch.zeros(5), torch.zeros(4, 5).T])
def test_what_has_no_whole_rows_is_refused(name: str, x: Any) -> None:
    with pytest.raises(UsageError, match=r"Give \[rows, columns\]"):
        OPERATOR.variant(name).run(x)


def test_counts_by_hand() -> None:
    of = OPERATOR.count(rows=1024, columns=512, dtype="fp16")
    assert (of.flops, of.read_bytes, of.written_bytes) == (2_621_440, 1_048_576, 1_048_576)


# ---- states (m, l) -------------------------------------------------------------------------------------------------


def _merge_two(states: Any, into: Any) -> None:
    m, l = softmax.merge(tl.load(states), tl.load(states + 1), tl.load(states + 2), tl.load(states + 3))  # noqa: E741
    tl.store(into, m)
    tl.store(into + 1, l)


merge_two = triton.jit(_merge_two)


def merged(first: Any, second: Any) -> Any:
    """Of two states, each a tensor of m and l."""
    into = torch.empty_like(first)
    merge_two[(1,)](torch.cat([first, second]), into)
    return into


def state(part: list[float]) -> Any:
    """By the definition, in FP64."""
    x = torch.tensor([*part, -INF], dtype=torch.float64)
    shift = x.max() if x.max().isfinite() else torch.zeros(())
    return torch.stack([x.max(), (x - shift).exp().sum()]).float().to("cuda" if torch.cuda.is_available() else "cpu")


def assert_same(left: Any, right: Any) -> None:
    assert left[0] == right[0]
    torch.testing.assert_close(left[1], right[1], rtol=1e-5, atol=0)


PARTS = st.lists(st.floats(-80, 80, width=32) | st.just(-INF), max_size=6)


@given(PARTS, PARTS, PARTS)
@settings(max_examples=40)
def test_states_merge_in_any_order_to_that_of_the_whole(a: list[float], b: list[float], c: list[float]) -> None:
    """A part may be empty, or -inf alone."""
    left, middle, right = state(a), state(b), state(c)
    assert_same(merged(left, middle), merged(middle, left))
    assert_same(merged(merged(left, middle), right), merged(left, merged(middle, right)))
    assert_same(merged(merged(left, middle), right), state([*a, *b, *c]))
