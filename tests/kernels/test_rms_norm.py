"""RMSNorm: every variant against FP64."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diag.errors import UsageError
from diag.kernels import rms_norm
from diag.kernels.rms_norm import LONGEST_ROW, OPERATOR
from tests.kernels.against_fp64 import TORCH, check, each_dtype

each_variant = pytest.mark.parametrize("name", [variant.name for variant in OPERATOR.variants])


def check_rows(name: str, x: Any, weight: Any, dtype: str = "fp32", **options: float) -> None:
    result = OPERATOR.variant(name).run(x, weight, **options)
    assert result.dtype == x.dtype
    check(result, OPERATOR.reference(x, weight, **options), dtype, x.shape[1])


@each_variant
@each_dtype
@pytest.mark.parametrize("shape", [(1, 1), (3, 31), (2, 2048), (2, 5003)])
def test_it_equals_fp64_within_rounding(
    name: str, dtype: str, shape: tuple[int, int], device: str, generator: torch.Generator
) -> None:
    x = torch.randn(shape, generator=generator, device=device).to(TORCH[dtype])
    weight = torch.randn(shape[1], generator=generator, device=device).to(TORCH[dtype])
    check_rows(name, x, weight, dtype)


@each_variant
def test_bf16_values_upcast_on_load(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(3, 300, generator=generator, device=device).bfloat16().float()
    check_rows(name, x[:2], x[2])


@each_variant
@pytest.mark.parametrize("value", [0.0, 1e17, -1e17, 1e-15])
def test_all_equal(name: str, value: float, device: str) -> None:
    """0 / sqrt(ε) is 0, and what is far below sqrt(ε) stays small."""
    check_rows(name, torch.full((2, 75), value, device=device), torch.ones(75, device=device))


@each_variant
def test_the_largest_fp16_values(name: str, device: str) -> None:
    x = torch.full((2, 2500), 65_504.0, device=device).half()
    x[1] *= -1
    check_rows(name, x, torch.ones(2500, device=device).half(), "fp16")


@each_variant
def test_epsilon_bounds_what_is_small(name: str, device: str) -> None:
    x = torch.full((1, 40), 1e-3, device=device)
    check_rows(name, x, torch.ones(40, device=device), epsilon=1e-2)


@each_variant
@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf")])
def test_a_special_value_spoils_its_row_alone(name: str, special: float, device: str) -> None:
    x = torch.ones(3, 2100, device=device)
    x[1, 2050] = special
    check_rows(name, x, torch.full((2100,), 2.0, device=device))


@each_variant
def test_rows_of_a_wider_matrix(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(3, 80, generator=generator, device=device)
    check_rows(name, x[:, 7:60], x[0, :53])


@pytest.mark.parametrize("name", ["separate", "two_pass"])
def test_rows_longer_than_registers(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(2, LONGEST_ROW + 77, generator=generator, device=device)
    check_rows(name, x[:1], x[1])


def test_the_longest_row_in_registers_and_the_next(device: str, generator: torch.Generator) -> None:
    x = torch.randn(2, LONGEST_ROW + 1, generator=generator, device=device)
    check_rows("one_pass", x[:1, 1:], x[1, 1:])
    with pytest.raises(UsageError, match=r"16,384 elements at most, and this one has 16,385\. Use two_pass"):
        rms_norm.one_pass(x, x[0])


@each_variant
@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_nothing_in_nothing_out(name: str, shape: tuple[int, int], device: str) -> None:
    x = torch.empty(shape, device=device)
    assert OPERATOR.variant(name).run(x, torch.empty(shape[1], device=device)).shape == shape


@each_variant
def test_weights_of_another_length_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"does not fit rows of 5\. Give"):
        OPERATOR.variant(name).run(torch.zeros(2, 5), torch.zeros(4))


def test_counts_by_hand() -> None:
    of = OPERATOR.count(rows=1024, columns=512, dtype="fp16")
    assert (of.flops, of.read_bytes, of.written_bytes) == (2_097_152, 1_049_600, 1_048_576)
