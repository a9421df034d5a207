"""Attention forward: both variants against FP64, on shapes that no tile divides, masks that hide all, odd values."""

from __future__ import annotations

from dataclasses import asdict
from math import prod
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diag.errors import UsageError
from diag.kernels import attention
from diag.kernels.attention_definition import AttentionShape, count, count_backward, reference, shape_of, visible
from diag.kernels.correctness import error_of, tolerance

VARIANTS = {variant.name: variant for variant in attention.OPERATOR.variants}
TORCH = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

SHAPES = [
    AttentionShape(1, 1, 1, 1, 1, 16),
    AttentionShape(2, 2, 1, 33, 33, 32),  # two query heads a key head, one row in the last tile
    AttentionShape(2, 4, 2, 6, 40, 16),
    AttentionShape(1, 3, 1, 7, 70, 24),  # queries at the end of a longer sequence, a head size that is no power of two
    AttentionShape(1, 2, 2, 70, 7, 16),  # causal: most queries see nothing
    AttentionShape(1, 1, 1, 130, 150, 64),  # several tiles each way
    AttentionShape(1, 1, 1, 20, 40, 128),
    AttentionShape(1, 1, 1, 18, 33, 256),
]

SHARED = AttentionShape(1, 4, 2, 10, 40, 16)
"""Small, with two query heads to each key head."""

each_variant = pytest.mark.parametrize("name", VARIANTS)
each_mask = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


def inputs(shape: AttentionShape, generator: torch.Generator, dtype: str = "fp32", scale: float = 1.0) -> list[Any]:
    """q, k and v, normally distributed."""
    q_shape = (shape.batch, shape.q_heads, shape.q_len, shape.head_dim)
    k_shape = (shape.batch, shape.kv_heads, shape.kv_len, shape.head_dim)
    drawn = [
        torch.randn(prod(each), generator=generator, device=generator.device).reshape(each)
        for each in (q_shape, k_shape, k_shape)
    ]
    return [(scale * drawn[0]).to(TORCH[dtype]), drawn[1].to(TORCH[dtype]), drawn[2].to(TORCH[dtype])]


def check(name: str, tensors: list[Any], causal: bool, dtype: str) -> tuple[Any, Any]:
    """(o, lse) of a variant, after holding them against FP64."""
    output, lse = VARIANTS[name].run(*tensors, causal=causal)
    wanted, wanted_lse = reference(*tensors, causal=causal)
    shape = shape_of(*tensors)
    values = tensors[2].double().abs()
    error = error_of(output, wanted, scale=float(values[values.isfinite()].max()))
    assert output.dtype == tensors[0].dtype
    assert error.same_specials
    assert error.relative <= tolerance(dtype, shape.kv_len + shape.head_dim), error
    error = error_of(lse, wanted_lse, scale=1.0)
    assert lse.dtype == torch.float32
    assert error.same_specials
    assert error.relative <= tolerance("fp32", shape.kv_len + shape.head_dim), error
    return output, lse


@each_variant
@each_mask
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_equals_fp64_within_rounding(
    name: str, causal: bool, dtype: str, shape: AttentionShape, generator: torch.Generator
) -> None:
    check(name, inputs(shape, generator, dtype), causal, dtype)


@each_variant
@each_mask
@pytest.mark.skipif(not torch.cuda.is_available(), reason="Triton's interpreter gives garbage for BF16")
def test_bf16(name: str, causal: bool, generator: torch.Generator) -> None:
    check(name, inputs(SHARED, generator, "bf16"), causal, "bf16")


@each_variant
@each_mask
def test_bf16_values_upcast_on_load(name: str, causal: bool, generator: torch.Generator) -> None:
    """What BF16 holds is exact in FP32: the sums are those that a kernel with BF16 inputs keeps."""
    check(name, [each.float() for each in inputs(SHARED, generator, "bf16")], causal, "fp32")


@each_variant
@each_mask
@pytest.mark.slow
@pytest.mark.parametrize("head_dim", [16, 64, 80, 128, 256])
def test_it_equals_fp64_over_many_tiles(name: str, causal: bool, head_dim: int, generator: torch.Generator) -> None:
    check(name, inputs(AttentionShape(1, 4, 2, 300, 421, head_dim), generator, "fp16"), causal, "fp16")


@each_mask
def test_the_variants_give_the_same(causal: bool, generator: torch.Generator) -> None:
    tensors = inputs(SHARED, generator)
    (one, one_lse), (other, other_lse) = (each.run(*tensors, causal=causal) for each in VARIANTS.values())
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(one_lse, other_lse)


@each_mask
def test_the_reference_is_that_of_pytorch(causal: bool, generator: torch.Generator) -> None:
    shape = AttentionShape(2, 4, 2, 20, 20, 32)
    q, k, v = inputs(shape, generator)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), is_causal=causal, enable_gqa=True
    )
    torch.testing.assert_close(reference(q, k, v, causal=causal)[0], wanted)


# ---- masks ---------------------------------------------------------------------------------------------------------


@each_variant
def test_queries_that_see_nothing_give_zero(name: str, generator: torch.Generator) -> None:
    output, lse = check(name, inputs(AttentionShape(1, 2, 1, 9, 4, 16), generator), True, "fp32")
    assert (output[:, :, :5] == 0).all()
    assert (lse[:, :, :5] == -torch.inf).all()
    assert lse[:, :, 5:].isfinite().all()


@each_variant
@each_mask
def test_without_keys_all_is_zero(name: str, causal: bool, generator: torch.Generator) -> None:
    output, lse = VARIANTS[name].run(*inputs(AttentionShape(1, 1, 1, 3, 0, 16), generator), causal=causal)
    assert (output == 0).all()
    assert (lse == -torch.inf).all()


@each_variant
def test_a_causal_mask_hides_what_comes_later(name: str, generator: torch.Generator) -> None:
    q, k, v = inputs(AttentionShape(1, 1, 1, 40, 44, 16), generator)
    before, _ = VARIANTS[name].run(q, k, v, causal=True)
    k[:, :, 30:] += 1.0
    v[:, :, 30:] -= 1.0
    after, _ = VARIANTS[name].run(q, k, v, causal=True)
    assert torch.equal(before[:, :, :26], after[:, :, :26])
    assert not torch.isclose(before[:, :, 26:], after[:, :, 26:]).all(dim=-1).any()


def test_the_mask_is_aligned_to_the_end() -> None:
    assert visible(2, 3, causal=True).tolist() == [[True, True, False], [True, True, True]]
    assert visible(3, 2, causal=True).tolist() == [[False, False], [True, False], [True, True]]
    assert visible(1, 2, causal=False).all()


# ---- values --------------------------------------------------------------------------------------------------------


@each_variant
@each_mask
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_very_large_scores_do_not_overflow(
    name: str, causal: bool, sign: float, dtype: str, generator: torch.Generator
) -> None:
    """Scores of up to 160,000, which FP16 does not hold, in steps that leave one weight of 1 to each query."""
    shape = AttentionShape(1, 1, 1, 40, 40, 16)
    q, k, v = inputs(shape, generator, dtype)
    q[:] = 200.0
    k[:] = sign * 5.0 * torch.arange(40, device=k.device, dtype=k.dtype)[:, None]
    output, _ = check(name, [q, k, v], causal, dtype)
    chosen = torch.arange(40) if causal and sign > 0 else torch.full((40,), 39 if sign > 0 else 0)
    assert torch.equal(output, v[:, :, chosen.to(v.device)])


@each_variant
def test_equal_scores_give_the_mean(name: str, generator: torch.Generator) -> None:
    q, k, v = inputs(AttentionShape(1, 1, 1, 5, 50, 16), generator)
    output, lse = check(name, [q, torch.ones_like(k), v], False, "fp32")
    torch.testing.assert_close(output, v.mean(dim=2, keepdim=True).expand_as(output))
    output, lse = check(name, [torch.zeros_like(q), k, v], False, "fp32")
    torch.testing.assert_close(lse, torch.full_like(lse, 50.0).log())


@each_variant
@each_mask
@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("where", ["q", "k"])
def test_scores_that_are_not_finite_reach_those_who_see_them(
    name: str, causal: bool, special: float, where: str, generator: torch.Generator
) -> None:
    tensors = inputs(SHARED, generator)
    tensors["qk".index(where)][0, 1, 9, 3] = special
    output, _ = check(name, tensors, causal, "fp32")
    assert output[0, :1].isfinite().all()  # of the other heads, none sees it


@each_variant
@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
def test_values_that_are_not_finite_reach_those_who_see_them(
    name: str, special: float, generator: torch.Generator
) -> None:
    q, k, v = inputs(SHARED, generator)
    v[0, 1, 9, 3] = special
    output, _ = check(name, [q, k, v], False, "fp32")
    assert not output[0, 2:, :, 3].isfinite().any()
    assert output[0, :2].isfinite().all()


@each_variant
def test_a_key_at_minus_infinity_counts_as_hidden(name: str, device: str) -> None:
    q = torch.ones(1, 1, 2, 16, device=device)
    k = torch.tensor([0.0, -torch.inf, 0.0], device=device)[:, None].expand(3, 16).reshape(1, 1, 3, 16).contiguous()
    v = torch.tensor([1.0, 100.0, 3.0], device=device)[:, None].expand(3, 16).reshape(1, 1, 3, 16).contiguous()
    output, _ = check(name, [q, k, v], False, "fp32")
    assert (output == 2.0).all()


# ---- counts and refusals -------------------------------------------------------------------------------------------


@given(st.integers(0, 12), st.integers(0, 12), st.booleans())
def test_visible_pairs_are_those_of_the_mask(q_len: int, kv_len: int, causal: bool) -> None:
    shape = AttentionShape(2, 6, 3, q_len, kv_len, 16)
    assert shape.pairs(causal) == 12 * int(visible(q_len, kv_len, causal).sum())


def test_counts_are_those_of_the_tensors(generator: torch.Generator) -> None:
    shape = AttentionShape(2, 4, 2, 33, 40, 32)
    q, k, v = inputs(shape, generator, "fp16")
    output, lse = attention.flash(q, k, v)
    forward = count(**asdict(shape), dtype="fp16")
    assert forward.read_bytes == q.nbytes + k.nbytes + v.nbytes
    assert forward.written_bytes == output.nbytes + lse.nbytes
    assert forward.flops == 2 * (2 * 2 * 4 * 33 * 40 * 32)
    backward = count_backward(**asdict(shape), dtype="fp16")
    assert backward.flops == 2.5 * forward.flops
    assert backward.n_bytes == 4 * q.nbytes + 2 * k.nbytes + 2 * v.nbytes + lse.nbytes


def test_the_operator_counts_its_default_shape() -> None:
    work = attention.OPERATOR.count(**attention.OPERATOR.default_shape, dtype="bf16")
    assert work.flops == 4 * 128 * 2 * 16 * (4096 * 4097 // 2)


def test_inputs_that_do_not_fit_are_refused(device: str) -> None:
    q = torch.zeros(1, 4, 8, 32, device=device)
    k = torch.zeros(1, 2, 8, 32, device=device)
    for wrong, words in [
        ((q[0], k, k), "are to be"),
        ((q, k, k[:, :1]), "one shape"),
        ((q, k[..., :16], k[..., :16]), "differ"),
        ((q[:, :3].contiguous(), k, k), "evenly"),
        ((q[..., :8], k[..., :8], k[..., :8]), "head size"),
        ((q.half(), k, k), "types"),
        ((q.mT.contiguous().mT, k, k), "contiguous"),
    ]:
        with pytest.raises(UsageError, match=words):
            attention.flash(*wrong)
