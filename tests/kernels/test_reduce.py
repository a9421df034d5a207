"""The sum of all elements: every variant against FP64, and which of them give the same each time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diag.errors import UsageError
from diag.kernels import reduce
from diag.kernels.reduce import OPERATOR
from tests.kernels.against_fp64 import TORCH, check, each_dtype

each_variant = pytest.mark.parametrize("name", [variant.name for variant in OPERATOR.variants])


def check_sum(name: str, x: Any, dtype: str = "fp32") -> None:
    """Of what is summed, for terms of both signs cancel."""
    result = OPERATOR.variant(name).run(x)
    assert result.dtype == torch.float32
    assert result.shape == ()
    check(result, OPERATOR.reference(x), dtype, x.numel(), scale=float(x.double().abs().nansum()))


@each_variant
@each_dtype
@pytest.mark.parametrize("n", [1, 127, 1024, 20_001])
def test_it_equals_fp64_within_rounding(name: str, dtype: str, n: int, device: str, generator: torch.Generator) -> None:
    check_sum(name, torch.randn(n, generator=generator, device=device).to(TORCH[dtype]))


@each_variant
def test_bf16_values_upcast_on_load(name: str, device: str, generator: torch.Generator) -> None:
    check_sum(name, torch.randn(1000, generator=generator, device=device).bfloat16().float())


@each_variant
def test_fp16_values_whose_sum_is_beyond_fp16(name: str, device: str) -> None:
    assert float(OPERATOR.variant(name).run(torch.full((300,), 60_000.0, device=device).half())) == 300 * 60_000


@each_variant
@pytest.mark.parametrize("value", [0.0, 1e30, -1e30, 1e-30])
def test_all_equal(name: str, value: float, device: str) -> None:
    check_sum(name, torch.full((1500,), value, device=device))


@each_variant
def test_sums_that_cancel(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(700, generator=generator, device=device) * 1e6
    check_sum(name, torch.cat([x, -x]))


@each_variant
@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf")])
def test_one_special_value_decides(name: str, special: float, device: str) -> None:
    x = torch.ones(300, device=device)
    x[130] = special
    check(OPERATOR.variant(name).run(x), OPERATOR.reference(x), "fp32")
    check(OPERATOR.variant(name).run(torch.cat([x, -x])), torch.tensor(float("nan"), device=device), "fp32")


@each_variant
def test_nothing_sums_to_zero(name: str, device: str) -> None:
    assert float(OPERATOR.variant(name).run(torch.empty(0, device=device))) == 0.0


@each_variant
def test_the_result_of_one_element_is_no_view_of_it(name: str, device: str) -> None:
    x = torch.ones(1, device=device)
    result = OPERATOR.variant(name).run(x)
    x.zero_()
    assert float(result) == 1.0


@pytest.mark.parametrize("name", ["tree", "several", "vectorised"])
def test_stages_give_the_same_each_time(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(20_000, generator=generator, device=device)
    assert torch.equal(OPERATOR.variant(name).run(x), OPERATOR.variant(name).run(x))


@given(n=st.integers(1, 300), chunk=st.sampled_from([4, 8, 32]), steps=st.sampled_from([1, 2]))
@settings(max_examples=15)
def test_any_chunks_and_any_number_of_stages(n: int, chunk: int, steps: int) -> None:
    """Small integers are summed without rounding: every element once."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    total = reduce.by_stages(torch.arange(n, device=device).float(), chunk, chunk // steps)
    assert float(total) == n * (n - 1) // 2


def test_counts_by_hand() -> None:
    of = OPERATOR.count(n=1 << 20, dtype="fp32")
    assert (of.flops, of.read_bytes, of.written_bytes) == (1_048_575, 4_194_304, 4)


@each_variant
def test_a_tensor_in_pieces_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="Give a contiguous one"):
        OPERATOR.variant(name).run(torch.zeros(8)[::2])
