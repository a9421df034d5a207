"""Rotary position embedding: each pair of a head's elements is turned by an angle that grows with the position.

    y₁ = x₁·cos θ - x₂·sin θ    y₂ = x₂·cos θ + x₁·sin θ    θ = position / base^(2 i / D)

The pairs are (i, i + D/2), as Llama's weights have them (the paper's are neighbours; Su et al. 2021, arXiv:2104.09864).

Count. Six FLOPs per pair, 3 per element. One element is read and one is written; a cosine and a sine for each position
and pair come on top, the same for all heads. Bound by memory.

The ladder.
  pair_each   A program turns the pairs of one head of one token: small programs, and each reads the angles anew.
  all_heads   A program turns all heads of a token: the angles are read once and stay in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer

SHAPE = {"tokens": 65536, "heads": 32, "head_size": 128}
BASE = 10_000.0


@triton.jit
def rotate(x, cos, sin, y, n_heads, half, HEADS: tl.constexpr, HALF: tl.constexpr):
    """A program turns HEADS heads of one token; HALF is a power of two that holds D/2 pairs."""
    token = tl.program_id(0).to(tl.int64)
    pair = tl.arange(0, HALF)
    is_pair = pair < half
    c = tl.load(cos + token * half + pair, mask=is_pair, other=0.0)[None, :]
    s = tl.load(sin + token * half + pair, mask=is_pair, other=0.0)[None, :]
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    first = (token * n_heads + head)[:, None] * 2 * half + pair[None, :]
    is_inside = (head < n_heads)[:, None] & is_pair[None, :]
    x1 = tl.load(x + first, mask=is_inside, other=0.0).to(tl.float32)
    x2 = tl.load(x + first + half, mask=is_inside, other=0.0).to(tl.float32)
    tl.store(y + first, (x1 * c - x2 * s).to(y.dtype.element_ty), mask=is_inside)
    tl.store(y + first + half, (x2 * c + x1 * s).to(y.dtype.element_ty), mask=is_inside)


def angles(positions: Any, head_size: int, base: float = BASE) -> tuple[Any, Any]:
    """[tokens] → cosines and sines in FP32, [tokens, head_size / 2] each; worked out in FP64."""
    exponents = torch.arange(0, head_size, 2, dtype=torch.float64, device=positions.device) / head_size
    theta = positions.double()[:, None] / base**exponents
    return theta.cos().float(), theta.sin().float()


def pair_each(x: Any, cos: Any, sin: Any) -> Any:
    """[tokens, heads, head_size], angles [tokens, head_size / 2] → as `x`"""
    return _launch(x, cos, sin, heads=1)


def all_heads(x: Any, cos: Any, sin: Any) -> Any:
    """As `pair_each`."""
    heads = triton.next_power_of_2(max(x.shape[1], 1))
    return _launch(x, cos, sin, heads=min(heads, _most_heads(x.shape[2])))


def _most_heads(head_size: int) -> int:
    """Of one program: 16 pairs for each of its 128 threads.

    >>> _most_heads(128), _most_heads(64)
    (32, 64)
    """
    half: int = triton.next_power_of_2(head_size // 2)
    return max(16 * 128 // half, 1)


def _launch(x: Any, cos: Any, sin: Any, heads: int) -> Any:
    tokens, n_heads, head_size = x.shape
    if head_size % 2 or cos.shape != (tokens, head_size // 2) or sin.shape != cos.shape:
        raise UsageError(f"Heads of {head_size} elements need angles of {(tokens, head_size // 2)}, from `angles`.")
    x, y = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        half = head_size // 2
        rotate[tokens, triton.cdiv(n_heads, heads)](
            x, cos, sin, y, n_heads, half, HEADS=heads, HALF=triton.next_power_of_2(half), num_warps=4
        )
    return y


def reference(x: Any, cos: Any, sin: Any) -> Any:
    x1, x2 = x.double().chunk(2, dim=-1)
    c, s = cos.double()[:, None], sin.double()[:, None]
    return torch.cat([x1 * c - x2 * s, x2 * c + x1 * s], dim=-1)


def count(*, tokens: int, heads: int, head_size: int, dtype: DType) -> Count:
    """
    >>> count(tokens=2, heads=3, head_size=4, dtype="fp16").flops
    72
    >>> count(tokens=2, heads=3, head_size=4, dtype="fp16").n_bytes
    128
    """
    n = tokens * heads * head_size
    formula = "3 T H D FLOP, 2 T H D elements and T D angles in FP32"
    return Count(3 * n, n * ELEMENT_BYTES[dtype] + 4 * tokens * head_size, n * ELEMENT_BYTES[dtype], formula)


def _builds(dtype: DType, heads: int) -> Sequence[Build]:
    return [
        Build(
            rotate,
            signature={"x": pointer(dtype), "cos": "*fp32", "sin": "*fp32", "y": pointer(dtype), "n_heads": "i32",
                       "half": "i32"},
            constants={"HEADS": heads, "HALF": SHAPE["head_size"] // 2},
            programs=SHAPE["tokens"] * triton.cdiv(SHAPE["heads"], heads),
            divisible_by_16=("x", "cos", "sin", "y", "n_heads", "half"),
        )
    ]  # fmt: skip


OPERATOR = Operator(
    name="rope",
    title="Rotary position embedding",
    variants=[
        Variant(
            "pair_each",
            "A program turns one head of one token, and reads the angles anew.",
            pair_each,
            lambda dtype: _builds(dtype, 1),
        ),
        Variant(
            "all_heads",
            "A program turns all heads of a token: their angles are read once.",
            all_heads,
            lambda dtype: _builds(dtype, min(SHAPE["heads"], _most_heads(SHAPE["head_size"]))),
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
