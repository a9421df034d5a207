"""Rotary position embedding: pairs of a head's elements turn by an angle that grows with the token's position.

Of the D elements of a head, i < D/2 and its partner i + D/2 (halves, as in Llama) turn by position · base^(-2i/D):
    y[i] = x[i]·cos - x[i + D/2]·sin,   y[i + D/2] = x[i + D/2]·cos + x[i]·sin      (Su et al. 2021, arXiv:2104.09864).

Count. Six FLOPs for each pair, 3·tokens·heads·D in all. Every element is read once and written once; for each token
there are D/2 cosines and D/2 sines in FP32, however many heads, and a position of 8 bytes. At 32 heads in FP16 that is
96 FLOP for 132 bytes: bound by memory.

The ladder.
  strided    A program takes one pair of one head, of many tokens: its lanes are heads·D elements apart, each access of
             2 or 4 bytes moves a sector of 32, and only caches can save the rest.
  per_head   A program takes one head of one token: lanes are neighbours, but D/2 pairs are few bytes for a program, and
             cosines and sines are fetched again for each head.
  per_token  A program takes all heads of a token: cosines and sines are fetched once and stay in registers.
  computed   As per_token, with the angle worked out in the kernel: less to read, but sine and cosine cost hundreds of
             instructions, and the angle in FP32 is off by position · 2^-24 radians. Tables made in FP64 are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer

SHAPE = {"tokens": 16_384, "heads": 32, "head_size": 128}
BASE = 10_000.0
TOKENS = 128  # of a program of `strided`
HEADS = 32  # that a program of `per_token` takes at once
HEADS_COMPUTED = 8  # registers that sine and cosine take are not there for heads


@dataclass(frozen=True)
class Rotation:
    """Cosines and sines of all positions, [positions, head_size / 2] in FP32."""

    cosines: Any
    sines: Any
    base: float = BASE


def rotation(n_positions: int, head_size: int, device: str = "cpu", base: float = BASE) -> Rotation:
    """Worked out in FP64, rounded once. `head_size` is even."""
    frequencies = base ** (torch.arange(head_size // 2, dtype=torch.float64, device=device) * (-2 / head_size))
    angles = torch.arange(n_positions, dtype=torch.float64, device=device)[:, None] * frequencies
    return Rotation(angles.cos().float(), angles.sin().float(), base)


# ---- kernels -------------------------------------------------------------------------------------------------------


@triton.jit
def rotate(x, y, at, half, is_inside, cosine, sine):
    """The pairs whose first elements lie at these offsets."""
    first = tl.load(x + at, mask=is_inside, other=0.0).to(tl.float32)
    second = tl.load(x + at + half, mask=is_inside, other=0.0).to(tl.float32)
    tl.store(y + at, (first * cosine - second * sine).to(y.dtype.element_ty), mask=is_inside)
    tl.store(y + at + half, (second * cosine + first * sine).to(y.dtype.element_ty), mask=is_inside)


@triton.jit
def strided_pairs(x, y, positions, cosines, sines, tokens, heads, half, TOKENS: tl.constexpr):
    head, pair = tl.program_id(1).to(tl.int64), tl.program_id(2)
    token = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    is_inside = token < tokens
    entry = tl.load(positions + token, mask=is_inside, other=0) * half + pair
    cosine = tl.load(cosines + entry, mask=is_inside, other=0.0)
    sine = tl.load(sines + entry, mask=is_inside, other=0.0)
    rotate(x, y, (token * heads + head) * (2 * half) + pair, half, is_inside, cosine, sine)


@triton.jit
def one_head(x, y, positions, cosines, sines, heads, half, HALF: tl.constexpr):
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    pair = tl.arange(0, HALF)
    is_inside = pair < half
    entry = tl.load(positions + token) * half + pair
    cosine = tl.load(cosines + entry, mask=is_inside, other=0.0)
    sine = tl.load(sines + entry, mask=is_inside, other=0.0)
    rotate(x, y, (token * heads + head) * (2 * half) + pair, half, is_inside, cosine, sine)


@triton.jit
def rotate_heads(x, y, token, heads, half, cosine, sine, HEADS: tl.constexpr, HALF: tl.constexpr):
    """All heads of a token, HEADS at a time."""
    pair = tl.arange(0, HALF)[None, :]
    for first in range(0, heads, HEADS):
        head = first + tl.arange(0, HEADS)[:, None]
        at = (token * heads + head) * (2 * half) + pair
        rotate(x, y, at, half, (head < heads) & (pair < half), cosine[None, :], sine[None, :])


@triton.jit
def all_heads(x, y, positions, cosines, sines, heads, half, HEADS: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    pair = tl.arange(0, HALF)
    entry = tl.load(positions + token) * half + pair
    cosine = tl.load(cosines + entry, mask=pair < half, other=0.0)
    sine = tl.load(sines + entry, mask=pair < half, other=0.0)
    rotate_heads(x, y, token, heads, half, cosine, sine, HEADS, HALF)


@triton.jit
def all_heads_computed(x, y, positions, log2_base, heads, half, HEADS: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    frequency = tl.exp2(tl.arange(0, HALF).to(tl.float32) * (-log2_base / half))
    angle = tl.load(positions + token).to(tl.float32) * frequency
    rotate_heads(x, y, token, heads, half, tl.cos(angle), tl.sin(angle), HEADS, HALF)


# ---- launchers -----------------------------------------------------------------------------------------------------


def strided(x: Any, positions: Any, turn: Rotation) -> Any:
    """[tokens, heads, head_size] at int64 positions [tokens] → the same shape and type. Raises UsageError."""
    y, (tokens, heads, half) = x.new_empty(x.shape), _sizes(x, positions, turn)
    if y.numel():
        strided_pairs[(triton.cdiv(tokens, TOKENS), heads, half)](
            x, y, positions, turn.cosines, turn.sines, tokens, heads, half, TOKENS=TOKENS, num_warps=4
        )
    return y


def per_head(x: Any, positions: Any, turn: Rotation) -> Any:
    y, (tokens, heads, half) = x.new_empty(x.shape), _sizes(x, positions, turn)
    if y.numel():
        one_head[(tokens, heads)](
            x, y, positions, turn.cosines, turn.sines, heads, half, HALF=triton.next_power_of_2(half), num_warps=1
        )
    return y


def per_token(x: Any, positions: Any, turn: Rotation) -> Any:
    y, (tokens, heads, half) = x.new_empty(x.shape), _sizes(x, positions, turn)
    if y.numel():
        sizes = {"HEADS": min(triton.next_power_of_2(heads), HEADS), "HALF": triton.next_power_of_2(half)}
        all_heads[(tokens,)](x, y, positions, turn.cosines, turn.sines, heads, half, **sizes, num_warps=8)
    return y


def computed(x: Any, positions: Any, turn: Rotation) -> Any:
    y, (tokens, heads, half) = x.new_empty(x.shape), _sizes(x, positions, turn)
    if y.numel():
        sizes = {"HEADS": HEADS_COMPUTED, "HALF": triton.next_power_of_2(half)}
        all_heads_computed[(tokens,)](x, y, positions, log2(turn.base), heads, half, **sizes, num_warps=8)
    return y


def _sizes(x: Any, positions: Any, turn: Rotation) -> tuple[int, int, int]:
    """Tokens, heads, and half the size of a head. That positions are within the tables is not looked at: it would wait
    for the device. Raises UsageError."""
    if x.ndim != 3 or x.shape[2] % 2 or not x.is_contiguous():
        raise UsageError(f"{tuple(x.shape)} cannot be rotated. Give a contiguous [tokens, heads, even head size].")
    if positions.shape != x.shape[:1] or positions.dtype != torch.int64:
        raise UsageError(f"{tuple(positions.shape)} {positions.dtype} are no positions. Give an int64 for each token.")
    if turn.cosines.shape[1] != x.shape[2] // 2:
        raise UsageError(f"These cosines are for heads of {2 * turn.cosines.shape[1]}. Make some for {x.shape[2]}.")
    return x.shape[0], x.shape[1], x.shape[2] // 2


# ---- what it does --------------------------------------------------------------------------------------------------


def reference(x: Any, positions: Any, turn: Rotation) -> Any:
    """By complex numbers, with angles in FP64."""
    half = x.shape[2] // 2
    frequencies = turn.base ** (torch.arange(half, dtype=torch.float64, device=x.device) / -half)
    angles = (positions.double()[:, None] * frequencies)[:, None, :]
    turned = torch.complex(x[..., :half].double(), x[..., half:].double()) * torch.polar(
        torch.ones_like(angles), angles
    )
    return torch.cat([turned.real, turned.imag], 2)


def count(*, tokens: int, heads: int, head_size: int, dtype: DType) -> Count:
    """
    >>> of = count(tokens=10, heads=4, head_size=64, dtype="fp16")
    >>> of.flops, of.read_bytes, of.written_bytes
    (7680, 7760, 5120)
    """
    n = tokens * heads * head_size
    bytes_of_x = n * ELEMENT_BYTES[dtype]
    formula = "3 tokens heads D FLOP, 2 tokens heads D elements + tokens (4 D + 8) bytes"
    return Count(3 * n, bytes_of_x + tokens * (4 * head_size + 8), bytes_of_x, formula)


# ---- for compiling without a GPU -----------------------------------------------------------------------------------


def _build(
    kernel: Any, dtype: DType, parameters: str, programs: int, num_warps: int, **constants: int
) -> Sequence[Build]:
    of = {**dict.fromkeys("xy", pointer(dtype)), "positions": "*i64", "cosines": "*fp32", "sines": "*fp32"}
    signature = {name: of.get(name, "fp32" if name == "log2_base" else "i32") for name in parameters.split()}
    whole = [name for name in signature if name != "log2_base"]
    return [Build(kernel, signature, constants, num_warps, programs=programs, divisible_by_16=whole)]


_HALF = SHAPE["head_size"] // 2
_TABLES = "x y positions cosines sines heads half"

OPERATOR = Operator(
    name="rope",
    title="Rotary position embedding",
    variants=[
        Variant(
            "strided",
            "A program takes one pair of many tokens: each access moves a sector for 2 or 4 bytes.",
            strided,
            lambda dtype: _build(
                strided_pairs, dtype, "x y positions cosines sines tokens heads half",
                triton.cdiv(SHAPE["tokens"], TOKENS) * SHAPE["heads"] * _HALF, 4, TOKENS=TOKENS,
            ),
        ),
        Variant(
            "per_head",
            "A program takes one head of one token: neighbours, but cosines and sines again for each head.",
            per_head,
            lambda dtype: _build(one_head, dtype, _TABLES, SHAPE["tokens"] * SHAPE["heads"], 1, HALF=_HALF),
        ),
        Variant(
            "per_token",
            "A program takes all heads of a token: cosines and sines are fetched once.",
            per_token,
            lambda dtype: _build(all_heads, dtype, _TABLES, SHAPE["tokens"], 8, HEADS=HEADS, HALF=_HALF),
            is_good=True,
        ),
        Variant(
            "computed",
            "Angles are worked out in the kernel: nothing else to read, less exact far from the beginning.",
            computed,
            lambda dtype: _build(
                all_heads_computed, dtype, "x y positions log2_base heads half", SHAPE["tokens"], 8,
                HEADS=HEADS_COMPUTED, HALF=_HALF,
            ),
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)  # fmt: skip
