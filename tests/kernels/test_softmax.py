"""Softmax: rows of any length, scores beyond the range of exp, and rows without a softmax."""

from __future__ import annotations

import pytest
import torch

from diag.errors import UsageError
from diag.kernels import softmax
from diag.kernels.correctness import error_of, tolerance

VARIANTS = {variant.name: variant for variant in softmax.OPERATOR.variants}
each_variant = pytest.mark.parametrize("name", VARIANTS)
TORCH = {"fp32": torch.float32, "fp16": torch.float16}


def check(name: str, x: torch.Tensor, dtype: str = "fp32") -> None:
    error = error_of(VARIANTS[name].run(x), softmax.reference(x))
    assert error.same_specials
    assert error.relative <= tolerance(dtype, x.shape[1]), error


@each_variant
@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.parametrize("shape", [(1, 1), (3, 31), (2, 1024), (2, 1025), (1, 3000)])
def test_it_equals_fp64_within_rounding(
    name: str, dtype: str, shape: tuple[int, int], device: str, generator: torch.Generator
) -> None:
    check(name, torch.randn(shape, generator=generator, device=device).to(TORCH[dtype]) * 4, dtype)


@each_variant
@pytest.mark.parametrize("offset", [1e30, -1e30, 5e4])
def test_large_scores_do_not_overflow(name: str, offset: float, device: str) -> None:
    check(name, torch.full((2, 1500), offset, device=device))


@each_variant
def test_a_late_maximum_rescales_what_came_before(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(2, 2100, generator=generator, device=device)
    x[:, -1] += 60.0
    check(name, x)


@each_variant
def test_masked_scores_count_nothing(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(2, 1300, generator=generator, device=device)
    x[:, 5:1290] = float("-inf")
    check(name, x)
    assert VARIANTS[name].run(x)[:, 5:1290].eq(0).all()


@each_variant
@pytest.mark.parametrize("special", ["nan", "inf"])
def test_rows_without_a_softmax_are_nan_as_in_pytorch(name: str, special: str, device: str) -> None:
    x = torch.zeros(3, 1100, device=device)
    x[0, 1050] = float(special)
    x[1] = float("-inf")
    result = VARIANTS[name].run(x)
    assert result[:2].isnan().all()
    assert not result[2].isnan().any()


@each_variant
def test_rows_that_are_part_of_a_wider_matrix(name: str, device: str, generator: torch.Generator) -> None:
    check(name, torch.randn(4, 300, generator=generator, device=device)[:, 10:210])
    check(name, torch.randn(200, 4, generator=generator, device=device).T)


@pytest.mark.parametrize("name", ["three_pass", "online"])
def test_long_rows(name: str, device: str, generator: torch.Generator) -> None:
    check(name, torch.randn(1, softmax.LONGEST + 1, generator=generator, device=device))


def test_rows_that_do_not_fit_into_registers_are_refused() -> None:
    with pytest.raises(UsageError, match="online"):
        softmax.one_pass(torch.zeros(1, softmax.LONGEST + 1))


def test_no_rows(device: str) -> None:
    assert softmax.online(torch.empty(0, 7, device=device)).shape == (0, 7)


def test_counts_by_hand() -> None:
    of = softmax.count(rows=10, columns=100, dtype="fp32")
    assert (of.flops, of.read_bytes, of.written_bytes) == (5000, 4000, 4000)
