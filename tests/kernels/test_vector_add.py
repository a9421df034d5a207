"""Vector addition: every variant against FP64, at lengths that no block divides."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diag.errors import UsageError
from diag.kernels.vector_add import OPERATOR
from tests.kernels.against_fp64 import TORCH, check, each_dtype

each_variant = pytest.mark.parametrize("name", [variant.name for variant in OPERATOR.variants])


def add(name: str, x: Any, y: Any) -> Any:
    return OPERATOR.variant(name).run(x, y)


@each_variant
@each_dtype
@pytest.mark.parametrize("n", [1, 127, 128, 1024, 2500])
def test_it_equals_fp64_within_rounding(name: str, dtype: str, n: int, device: str, generator: torch.Generator) -> None:
    x, y = (torch.randn(n, generator=generator, device=device).to(TORCH[dtype]) for _ in range(2))
    result = add(name, x, y)
    assert result.dtype == x.dtype
    check(result, OPERATOR.reference(x, y), dtype)


@each_variant
def test_bf16_values_upcast_on_load(name: str, device: str, generator: torch.Generator) -> None:
    x, y = (torch.randn(300, generator=generator, device=device).bfloat16().float() for _ in range(2))
    check(add(name, x, y), OPERATOR.reference(x, y), "fp32")


@each_variant
def test_a_tensor_that_begins_on_no_boundary(name: str, device: str, generator: torch.Generator) -> None:
    x, y = (torch.randn(1030, generator=generator, device=device)[1:] for _ in range(2))
    check(add(name, x, y), OPERATOR.reference(x, y), "fp32")


@each_variant
def test_large_values_nan_and_infinities(name: str, device: str) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([3e38, -3e38, inf, -inf, inf, nan, 1.0, 5.0], device=device)
    y = torch.tensor([1.0, 3e38, 1.0, 1.0, -inf, 1.0, nan, -5.0], device=device)
    check(add(name, x, y), OPERATOR.reference(x, y), "fp32")


@each_variant
def test_fp16_sums_beyond_its_range_are_infinite(name: str, device: str) -> None:
    x = torch.full((5,), 60_000.0, device=device).half()
    assert add(name, x, x).isposinf().all()


@each_variant
def test_any_shape_and_none_at_all(name: str, device: str) -> None:
    x = torch.ones(3, 5, 7, device=device)
    assert torch.equal(add(name, x, x), torch.full((3, 5, 7), 2.0, device=device))
    assert add(name, x[:0], x[:0]).shape == (0, 5, 7)


def test_counts_by_hand() -> None:
    of = OPERATOR.count(n=1 << 20, dtype="fp32")
    assert (of.flops, of.read_bytes, of.written_bytes) == (1_048_576, 8_388_608, 4_194_304)
    assert of.intensity == pytest.approx(1 / 12)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (torch.zeros(3), torch.zeros(4)),
        (torch.zeros(3), torch.zeros(3).half()),
        (torch.zeros(3, 4).T, torch.zeros(4, 3)),
    ],
)
@each_variant
def test_what_does_not_fit_is_refused(name: str, x: Any, y: Any) -> None:
    with pytest.raises(UsageError, match="Give two contiguous tensors"):
        add(name, x, y)
