"""Attention backward: gradients against those that PyTorch derives from the FP64 reference."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
import torch

from diag.errors import UsageError
from diag.kernels import attention, attention_backward
from diag.kernels.attention_backward import flash_attention, flash_backward, reference_backward
from diag.kernels.attention_definition import AttentionShape, reference
from diag.kernels.correctness import error_of, tolerance

TORCH = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

SHAPES = [
    AttentionShape(1, 1, 1, 1, 1, 16),
    AttentionShape(2, 4, 2, 18, 35, 16),  # two query heads a key head, tiles cut short
    AttentionShape(1, 3, 1, 7, 40, 24),  # a head size that is no power of two
    AttentionShape(1, 2, 2, 40, 7, 16),  # causal: most queries see nothing
    AttentionShape(1, 1, 1, 140, 70, 32),
    AttentionShape(1, 2, 1, 20, 33, 128),
]

each_mask = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


def inputs(shape: AttentionShape, generator: torch.Generator, dtype: str = "fp32") -> list[Any]:
    """q, k, v and the gradient of the output, normally distributed."""
    q_shape = (shape.batch, shape.q_heads, shape.q_len, shape.head_dim)
    k_shape = (shape.batch, shape.kv_heads, shape.kv_len, shape.head_dim)
    return [
        torch.randn(prod(each), generator=generator, device=generator.device).reshape(each).to(TORCH[dtype])
        for each in (q_shape, k_shape, k_shape, q_shape)
    ]


def gradients(tensors: list[Any], causal: bool) -> tuple[Any, Any, Any]:
    q, k, v, d_output = tensors
    output, lse = attention.flash(q, k, v, causal=causal)
    return flash_backward(q, k, v, output, lse, d_output, causal=causal)


def check(tensors: list[Any], causal: bool, dtype: str) -> None:
    """Of sums that cancel, the error is held against the sum of magnitudes: of weights times what they meet."""
    q, k, v, d_output = tensors
    wanted = reference_backward(q, k, v, None, None, d_output, causal=causal)
    terms = q.shape[1] // k.shape[1] * q.shape[2] + k.shape[2] + q.shape[3]
    # dS is a difference of two products of D: the size of both, times that of the queries and keys it multiplies.
    spread = float(d_output.double().norm(dim=-1).max() * v.double().norm(dim=-1).max()) * q.shape[3] ** -0.5
    for got, exact, scale in zip(gradients(tensors, causal), wanted, (spread, spread, 1.0), strict=True):
        error = error_of(got, exact, scale=scale)
        assert got.dtype == q.dtype
        assert error.same_specials
        assert error.relative <= tolerance(dtype, terms), error


@each_mask
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_equal_fp64_within_rounding(
    causal: bool, dtype: str, shape: AttentionShape, generator: torch.Generator
) -> None:
    check(inputs(shape, generator, dtype), causal, dtype)


@each_mask
@pytest.mark.skipif(not torch.cuda.is_available(), reason="Triton's interpreter gives garbage for BF16")
def test_bf16(causal: bool, generator: torch.Generator) -> None:
    check(inputs(SHAPES[1], generator, "bf16"), causal, "bf16")


@each_mask
def test_bf16_values_upcast_on_load(causal: bool, generator: torch.Generator) -> None:
    """What BF16 holds is exact in FP32: the sums are those that a kernel with BF16 inputs keeps."""
    check([each.float() for each in inputs(SHAPES[1], generator, "bf16")], causal, "fp32")


@each_mask
@pytest.mark.slow
@pytest.mark.parametrize("head_dim", [16, 64, 80, 128])
def test_gradients_equal_fp64_over_many_tiles(causal: bool, head_dim: int, generator: torch.Generator) -> None:
    check(inputs(AttentionShape(1, 4, 2, 200, 231, head_dim), generator, "fp16"), causal, "fp16")


@each_mask
def test_pytorch_differentiates_through_the_kernels(causal: bool, generator: torch.Generator) -> None:
    q, k, v, d_output = inputs(SHAPES[1], generator)
    leaves = [each.requires_grad_() for each in (q, k, v)]
    output = flash_attention(q, k, v, causal=causal)
    # an expanded gradient, as that of a sum, is not contiguous
    got = torch.autograd.grad((output * d_output).sum() + output.sum(), leaves)
    wanted = reference_backward(q, k, v, None, None, d_output + 1.0, causal=causal)
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


@each_mask
def test_gradients_are_those_of_small_steps(causal: bool, generator: torch.Generator) -> None:
    """A directional derivative: neither the kernel nor its reference decides alone what a gradient is."""
    *qkv, d_output = inputs(AttentionShape(1, 2, 1, 5, 9, 16), generator)
    steps = [torch.randn(each.shape, generator=generator, device=each.device) for each in qkv]

    def loss(distance: float) -> float:
        moved = [each.double() + distance * step.double() for each, step in zip(qkv, steps, strict=True)]
        return float((reference(*moved, causal=causal)[0] * d_output.double()).sum())

    slope = sum(
        float((gradient.double() * step.double()).sum())
        for gradient, step in zip(gradients([*qkv, d_output], causal), steps, strict=True)
    )
    assert slope == pytest.approx((loss(1e-5) - loss(-1e-5)) / 2e-5, rel=1e-4)


# ---- masks and values ----------------------------------------------------------------------------------------------


def test_what_nobody_sees_has_no_gradient(generator: torch.Generator) -> None:
    dq, dk, dv = gradients(inputs(AttentionShape(1, 2, 1, 9, 4, 16), generator), True)
    assert (dq[:, :, :5] == 0).all()
    assert all(each.isfinite().all() for each in (dq, dk, dv))
    assert (dv != 0).all()


@each_mask
def test_without_keys_or_queries_nothing_is_left(causal: bool, generator: torch.Generator) -> None:
    dq, _, _ = gradients(inputs(AttentionShape(1, 1, 1, 3, 0, 16), generator), causal)
    assert (dq == 0).all()
    _, dk, dv = gradients(inputs(AttentionShape(1, 1, 1, 0, 3, 16), generator), causal)
    assert (dk == 0).all()
    assert (dv == 0).all()


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_very_large_scores_do_not_overflow(dtype: str, generator: torch.Generator) -> None:
    """One weight of 1 to each query: all of the gradient goes to its value, none to queries and keys."""
    q, k, v, d_output = inputs(AttentionShape(1, 1, 1, 20, 40, 16), generator, dtype)
    q[:] = 200.0
    k[:] = 5.0 * torch.arange(40, device=k.device, dtype=k.dtype)[:, None]
    dq, dk, dv = gradients([q, k, v, d_output], True)
    torch.testing.assert_close(dv[:, :, 20:], d_output)
    assert (dv[:, :, :20] == 0).all()
    # dO·V and δ are the same sum, but for rounding, which the size of queries and keys multiplies
    assert float(dq.abs().max()) <= 200 * 16 * tolerance(dtype, 16)
    assert float(dk.abs().max()) <= 200 * 16 * tolerance(dtype, 16)


def test_equal_scores_share_the_gradient(generator: torch.Generator) -> None:
    q, k, v, d_output = inputs(AttentionShape(1, 1, 1, 5, 50, 16), generator)
    _, _, dv = gradients([q, torch.ones_like(k), v, d_output], False)
    torch.testing.assert_close(dv, (d_output.sum(dim=2, keepdim=True) / 50).expand_as(dv))


@each_mask
@pytest.mark.parametrize("special", [torch.nan, torch.inf])
def test_what_is_not_finite_shows_and_stays_in_its_heads(
    causal: bool, special: float, generator: torch.Generator
) -> None:
    tensors = inputs(AttentionShape(1, 4, 2, 20, 35, 16), generator)
    tensors[3][0, 3, 15, 2] = special
    dq, dk, dv = gradients(tensors, causal)
    assert not dq[0, 3, 15].isfinite().any()
    assert not dk[0, 1, :31].isfinite().any()
    assert not dv[0, 1, :31, 2].isfinite().any()
    assert all(each[0, :1].isfinite().all() for each in (dq, dk, dv))
    assert dq[0, 3, :15].isfinite().all()


@each_mask
def test_results_are_the_same_bits_each_time(causal: bool, generator: torch.Generator) -> None:
    tensors = inputs(SHAPES[1], generator)
    for one, other in zip(gradients(tensors, causal), gradients(tensors, causal), strict=True):
        assert torch.equal(one, other)


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_inputs_that_do_not_fit_are_refused(generator: torch.Generator) -> None:
    with pytest.raises(UsageError, match="head size of 256"):
        gradients(inputs(AttentionShape(1, 1, 1, 2, 2, 256), generator), False)
    q, k, v, d_output = inputs(AttentionShape(1, 1, 1, 2, 2, 16), generator)
    with pytest.raises(UsageError, match="gradient of the output"):
        gradients([q, k, v, d_output[:, :, :1]], False)


def test_the_operator_counts_its_default_shape() -> None:
    operator = attention_backward.OPERATOR
    forward = attention.OPERATOR.count(**operator.default_shape, dtype="bf16")
    assert operator.count(**operator.default_shape, dtype="bf16").flops == 2.5 * forward.flops
