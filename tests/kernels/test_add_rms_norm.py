"""Residual addition and RMSNorm: both results of both variants against FP64."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diag.errors import UsageError
from diag.kernels import add_rms_norm
from diag.kernels.add_rms_norm import OPERATOR
from diag.kernels.rms_norm import LONGEST_ROW
from tests.kernels.against_fp64 import TORCH, check, each_dtype

each_variant = pytest.mark.parametrize("name", [variant.name for variant in OPERATOR.variants])


def check_both(name: str, x: Any, residual: Any, weight: Any, dtype: str = "fp32") -> None:
    added, normed = OPERATOR.variant(name).run(x, residual, weight)
    assert added.dtype == normed.dtype == x.dtype
    expected_sum, expected_norm = OPERATOR.reference(x, residual, weight)
    check(added, expected_sum, dtype)
    check(normed, expected_norm, dtype, x.shape[1])


@each_variant
@each_dtype
@pytest.mark.parametrize("shape", [(1, 1), (3, 31), (2, 2048), (2, 5003)])
def test_both_equal_fp64_within_rounding(
    name: str, dtype: str, shape: tuple[int, int], device: str, generator: torch.Generator
) -> None:
    rows, columns = shape
    of = torch.randn(2 * rows + 1, columns, generator=generator, device=device).to(TORCH[dtype])
    check_both(name, of[:rows], of[rows : 2 * rows], of[-1], dtype)


@each_variant
def test_bf16_values_upcast_on_load(name: str, device: str, generator: torch.Generator) -> None:
    of = torch.randn(5, 300, generator=generator, device=device).bfloat16().float()
    check_both(name, of[:2], of[2:4], of[4])


@each_variant
def test_a_residual_that_cancels_everything(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(2, 300, generator=generator, device=device)
    added, normed = OPERATOR.variant(name).run(x, -x, x[0])
    assert not added.any()
    assert not normed.any()


@each_variant
@pytest.mark.parametrize("special", [float("nan"), float("inf")])
def test_a_special_value_spoils_its_row_alone(name: str, special: float, device: str) -> None:
    x = torch.ones(3, 300, device=device)
    residual = x.clone()
    residual[1, 250] = special
    check_both(name, x, residual, x[0])


@each_variant
@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_nothing_in_nothing_out(name: str, shape: tuple[int, int], device: str) -> None:
    x = torch.empty(shape, device=device)
    assert [each.shape for each in OPERATOR.variant(name).run(x, x, x.new_empty(shape[1]))] == [shape, shape]


def test_long_rows_take_two_kernels(device: str, generator: torch.Generator) -> None:
    x = torch.randn(3, LONGEST_ROW + 1, generator=generator, device=device)
    check_both("separate", x[:1], x[1:2], x[2])
    with pytest.raises(UsageError, match=r"16,384 elements at most, and this one has 16,385\. Use separate"):
        add_rms_norm.fused(x[:1], x[1:2], x[2])


@each_variant
def test_a_residual_of_another_shape_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="Give two contiguous"):
        OPERATOR.variant(name).run(torch.zeros(2, 5), torch.zeros(1, 5), torch.zeros(5))


def test_counts_by_hand() -> None:
    of = OPERATOR.count(rows=1024, columns=512, dtype="fp16")
    assert (of.flops, of.read_bytes, of.written_bytes) == (2_621_440, 2_098_176, 2_097_152)
