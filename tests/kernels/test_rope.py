"""Rotary embedding: against FP64, and what makes it an embedding of positions."""

from __future__ import annotations

import pytest
import torch

from diag.errors import UsageError
from diag.kernels import rope
from diag.kernels.correctness import error_of, tolerance

VARIANTS = {variant.name: variant for variant in rope.OPERATOR.variants}
each_variant = pytest.mark.parametrize("name", VARIANTS)
TORCH = {"fp32": torch.float32, "fp16": torch.float16}


@each_variant
@pytest.mark.parametrize("dtype", TORCH)
@pytest.mark.parametrize("shape", [(1, 1, 2), (5, 3, 32), (3, 8, 80), (2, 40, 128)])
def test_it_equals_fp64_within_rounding(
    name: str, dtype: str, shape: tuple[int, int, int], device: str, generator: torch.Generator
) -> None:
    x = torch.randn(shape, generator=generator, device=device).to(TORCH[dtype])
    cos, sin = rope.angles(torch.arange(shape[0], device=device), shape[2])
    error = error_of(VARIANTS[name].run(x, cos, sin), rope.reference(x, cos, sin))
    assert error.relative <= tolerance(dtype, 2), error


@each_variant
def test_position_0_turns_nothing_and_no_position_changes_a_length(
    name: str, device: str, generator: torch.Generator
) -> None:
    x = torch.randn(4, 2, 64, generator=generator, device=device)
    result = VARIANTS[name].run(x, *rope.angles(torch.tensor([0, 7, 1000, 131071], device=device), 64))
    assert torch.equal(result[0], x[0])
    assert torch.allclose(result.norm(dim=-1), x.norm(dim=-1), rtol=1e-5)


@each_variant
def test_scores_depend_on_the_distance_alone(name: str, device: str, generator: torch.Generator) -> None:
    q, k = torch.randn(2, 1, 1, 64, generator=generator, device=device)

    def score(at_q: int, at_k: int) -> float:
        turned = [
            VARIANTS[name].run(x, *rope.angles(torch.tensor([at], device=device), 64))
            for x, at in ((q, at_q), (k, at_k))
        ]
        return float((turned[0] * turned[1]).sum())

    assert score(5, 3) == pytest.approx(score(105, 103), rel=1e-4)


@each_variant
def test_nan_stays_in_its_pair(name: str, device: str) -> None:
    x = torch.ones(2, 3, 8, device=device)
    x[1, 2, 1] = float("nan")
    result = VARIANTS[name].run(x, *rope.angles(torch.arange(2, device=device), 8))
    assert result.isnan().nonzero().tolist() == [[1, 2, 1], [1, 2, 5]]


def test_angles_that_do_not_fit_are_refused() -> None:
    cos, sin = rope.angles(torch.arange(3), 8)
    with pytest.raises(UsageError, match="angles"):
        rope.all_heads(torch.zeros(2, 1, 8), cos, sin)


def test_counts_by_hand() -> None:
    of = rope.count(tokens=10, heads=4, head_size=8, dtype="fp32")
    assert (of.flops, of.read_bytes, of.written_bytes) == (960, 1600, 1280)
