"""RoPE: every variant against FP64, and what rotations keep."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from diag.errors import UsageError
from diag.kernels import rope
from diag.kernels.correctness import error_of, tolerance
from diag.kernels.rope import OPERATOR
from tests.kernels.against_fp64 import TORCH, check, each_dtype

each_variant = pytest.mark.parametrize("name", [variant.name for variant in OPERATOR.variants])


def rotated(name: str, x: Any, positions: Any, **options: Any) -> Any:
    turn = rope.rotation(int(positions.max()) + 1, x.shape[2], x.device, **options)
    return OPERATOR.variant(name).run(x, positions, turn)


def check_turned(name: str, x: Any, positions: Any, dtype: str = "fp32", **options: Any) -> None:
    turn = rope.rotation(int(positions.max()) + 1, x.shape[2], x.device, **options)
    result = OPERATOR.variant(name).run(x, positions, turn)
    assert result.dtype == x.dtype
    check(result, OPERATOR.reference(x, positions, turn), dtype, accumulated=2)


@each_variant
@each_dtype
@pytest.mark.parametrize("shape", [(1, 1, 2), (3, 2, 8), (2, 33, 20), (130, 1, 6)])
def test_it_equals_fp64_within_rounding(
    name: str, dtype: str, shape: tuple[int, int, int], device: str, generator: torch.Generator
) -> None:
    x = torch.randn(shape, generator=generator, device=device).to(TORCH[dtype])
    check_turned(name, x, torch.arange(shape[0], device=device) % 5, dtype)


@each_variant
def test_bf16_values_upcast_on_load(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(4, 2, 16, generator=generator, device=device).bfloat16().float()
    check_turned(name, x, torch.arange(4, device=device))


@each_variant
def test_positions_in_any_order_and_another_base(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(4, 2, 16, generator=generator, device=device)
    check_turned(name, x, torch.tensor([9, 0, 9, 3], device=device), base=500_000.0)


@each_variant
def test_position_zero_turns_nothing(name: str, device: str, generator: torch.Generator) -> None:
    x = torch.randn(3, 2, 12, generator=generator, device=device)
    assert torch.equal(rotated(name, x, torch.zeros(3, dtype=torch.int64, device=device)), x)


@each_variant
def test_products_of_two_heads_depend_on_their_distance_alone(
    name: str, device: str, generator: torch.Generator
) -> None:
    """What the embedding is for: q at 3 and k at 1 meet as q at 13 and k at 11 do."""
    q, k = torch.randn(2, 1, 1, 16, generator=generator, device=device)
    products = [
        (rotated(name, q, torch.tensor([at], device=device)) * rotated(name, k, torch.tensor([at - 2], device=device)))
        for at in (3, 13)
    ]
    torch.testing.assert_close(products[0].sum(), products[1].sum(), rtol=1e-4, atol=1e-4)


@each_variant
def test_the_first_pair_turns_by_one_radian(name: str, device: str) -> None:
    x = torch.zeros(1, 1, 8, device=device)
    x[0, 0, 0] = 1.0
    result = rotated(name, x, torch.tensor([1], device=device))[0, 0]
    torch.testing.assert_close(result[[0, 4]].cpu(), torch.tensor([0.5403023, 0.8414710]))
    assert not result[[1, 2, 3, 5, 6, 7]].any()


@each_variant
def test_nan_and_infinities_stay_in_their_pairs(name: str, device: str) -> None:
    x = torch.ones(2, 1, 8, device=device)
    x[0, 0, 1], x[1, 0, 6] = float("nan"), float("inf")
    check_turned(name, x, torch.tensor([1, 2], device=device))


def test_angles_in_fp32_lose_digits_far_from_the_beginning(device: str, generator: torch.Generator) -> None:
    x, at = torch.randn(1, 1, 64, generator=generator, device=device), torch.tensor([100_003], device=device)
    turn = rope.rotation(100_004, 64, device)
    error = {name: error_of(OPERATOR.variant(name).run(x, at, turn), OPERATOR.reference(x, at, turn)).relative
             for name in ("per_token", "computed")}  # fmt: skip
    assert error["per_token"] <= tolerance("fp32", 2)
    assert 10 * error["per_token"] < error["computed"] <= 100_003 * tolerance("fp32")


@each_variant
@pytest.mark.parametrize("shape", [(0, 2, 4), (3, 0, 4)])
def test_nothing_in_nothing_out(name: str, shape: tuple[int, int, int], device: str) -> None:
    x = torch.empty(shape, device=device)
    positions = torch.zeros(shape[0], dtype=torch.int64, device=device)
    assert OPERATOR.variant(name).run(x, positions, rope.rotation(1, max(shape[2], 2), device)).shape == shape


@each_variant
@pytest.mark.parametrize(
    ("shape", "positions"),
    [
        ((2, 1, 5), torch.arange(2)),
        ((2, 1, 4), torch.arange(3)),
        ((2, 1, 4), torch.zeros(2)),
        ((2, 8), torch.arange(2)),
    ],
)
def test_what_does_not_fit_is_refused(name: str, shape: tuple[int, ...], positions: Any) -> None:
    with pytest.raises(UsageError, match="Give"):
        OPERATOR.variant(name).run(torch.zeros(shape), positions, rope.rotation(2, 4))


@each_variant
def test_tables_for_another_size_of_head_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"heads of 8\. Make some for 4"):
        OPERATOR.variant(name).run(torch.zeros(2, 1, 4), torch.arange(2), rope.rotation(2, 8))


def test_counts_by_hand() -> None:
    of = OPERATOR.count(tokens=1024, heads=8, head_size=64, dtype="fp16")
    assert (of.flops, of.read_bytes, of.written_bytes) == (1_572_864, 1_318_912, 1_048_576)
