"""Vector add: lengths that no block divides, values at the edge of their type, and its count."""

from __future__ import annotations

import pytest
import torch

from diag.kernels import vector_add
from diag.kernels.correctness import error_of, tolerance

VARIANTS = {variant.name: variant for variant in vector_add.OPERATOR.variants}
each_variant = pytest.mark.parametrize("name", VARIANTS)
TORCH = {"fp32": torch.float32, "fp16": torch.float16}


@each_variant
@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.parametrize("n", [0, 1, 127, 1024, 1025, 5000])
def test_it_equals_fp64_within_rounding(name: str, dtype: str, n: int, device: str, generator: torch.Generator) -> None:
    a, b = (torch.randn(n, generator=generator, device=device).to(TORCH[dtype]) for _ in range(2))
    error = error_of(VARIANTS[name].run(a, b), vector_add.reference(a, b))
    assert error.relative <= tolerance(dtype), error


@each_variant
def test_values_at_the_edge(name: str, device: str) -> None:
    a = torch.tensor([3e38, -3e38, float("nan"), float("inf"), float("inf"), 1e-44, -0.0], device=device)
    b = torch.tensor([3e38, 3e38, 1.0, 1.0, float("-inf"), 1e-44, 0.0], device=device)
    assert torch.equal(VARIANTS[name].run(a, b).nan_to_num(7.0), (a + b).nan_to_num(7.0))


@each_variant
def test_it_writes_where_it_is_told(name: str, device: str) -> None:
    into = torch.zeros(300, device=device)
    VARIANTS[name].run(torch.ones(299, device=device), torch.ones(299, device=device), into[:299])
    assert into[:299].eq(2).all()
    assert into[299] == 0


def test_counts_by_hand() -> None:
    of = vector_add.count(n=1000, dtype="fp16")
    assert (of.flops, of.read_bytes, of.written_bytes) == (1000, 4000, 2000)
