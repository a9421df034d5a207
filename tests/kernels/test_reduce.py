"""Sums of vectors: many stages, sums that cancel, and the same digits each time."""

from __future__ import annotations

import pytest
import torch

from diag.kernels import reduce
from diag.kernels.correctness import error_of, tolerance

VARIANTS = {variant.name: variant for variant in reduce.OPERATOR.variants}
each_variant = pytest.mark.parametrize("name", VARIANTS)
TORCH = {"fp32": torch.float32, "fp16": torch.float16}
MANY_STAGES = reduce.BLOCK * 40 + 17


@each_variant
@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, MANY_STAGES])
def test_it_equals_fp64_within_rounding(name: str, dtype: str, n: int, device: str, generator: torch.Generator) -> None:
    """The result is in FP32, whatever goes in: FP16 inputs are exact there."""
    x = torch.randn(n, generator=generator, device=device).to(TORCH[dtype])
    error = error_of(VARIANTS[name].run(x), reduce.reference(x), scale=float(x.double().abs().sum()))
    assert error.relative <= tolerance("fp32", n), error


@each_variant
def test_a_sum_that_cancels(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(3000, generator=generator, device=device) * 1e6
    x = torch.cat([x, -x])
    error = error_of(VARIANTS[name].run(x), reduce.reference(x), scale=float(x.double().abs().sum()))
    assert error.relative <= tolerance("fp32", 6000), error


@each_variant
def test_all_equal(name: str, device: str) -> None:
    assert float(VARIANTS[name].run(torch.full((4096,), 0.5, device=device))) == 2048.0


@each_variant
@pytest.mark.parametrize(("value", "total"), [("nan", "nan"), ("inf", "inf"), ("-inf", "-inf")])
def test_specials_reach_the_sum(name: str, value: str, total: str, device: str) -> None:
    x = torch.ones(2000, device=device)
    x[1500] = float(value)
    assert str(float(VARIANTS[name].run(x))) == total


@pytest.mark.parametrize("name", ["two_stage", "per_program", "vectorised"])
def test_the_same_digits_each_time(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(MANY_STAGES, generator=generator, device=device)
    assert float(VARIANTS[name].run(x)) == float(VARIANTS[name].run(x))


def test_two_stages_become_three_for_more_than_a_million(device: str) -> None:
    x = torch.ones(reduce.BLOCK * reduce.BLOCK + 1, device=device)
    assert float(reduce.two_stage(x)) == 1048577.0


def test_counts_by_hand() -> None:
    of = reduce.count(n=1000, dtype="fp16")
    assert (of.flops, of.read_bytes, of.written_bytes) == (999, 2000, 4)
