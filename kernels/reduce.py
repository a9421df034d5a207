"""Sum of a vector: one result of n elements, so that all programs must meet somewhere.

Count. n - 1 additions, n elements read, one result written: 1/4 FLOP per byte in FP32. Bound by memory, if the meeting
costs nothing.

The ladder.
  atomic       Each program adds up its block and adds that to the result with an atomic operation. One kernel, but all
               programs queue at one address, and the order of additions, so the last digits, differ from run to run.
  two_stage    Each program writes its sum, a second kernel adds those: a tree of two levels, the same each time. It
               costs a launch, and writes and reads of one element per block.
  per_program  A fixed number of programs, several waves' worth of elements each: fewer partial sums, and each program
               keeps a vector of sums that is folded once at its end instead of once per block.
  vectorised   The same with sixteen bytes per thread and load, and several loads on their way.

Sums are kept in FP32. A pairwise or blocked sum errs less than one long chain: about sqrt(log n) roundoffs against
sqrt(n) (Higham 2002, Accuracy and Stability, chapter 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer

SHAPE = {"n": 1 << 28}
BLOCK = 1024
WIDE = 4096
PROGRAMS = 1024
"""A power of two that fills every GPU some times over; the second stage adds as many partial sums at once."""


@triton.jit
def sum_blocks(x, sums, n, BLOCK: tl.constexpr, IS_ATOMIC: tl.constexpr):
    """A program folds BLOCK elements, and adds them to one result or leaves them for a second stage."""
    program = tl.program_id(0)
    at = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + at, mask=at < n, other=0.0).to(tl.float32), 0)
    if IS_ATOMIC:
        tl.atomic_add(sums, total)
    else:
        tl.store(sums + program, total)


@triton.jit
def sum_strided(x, sums, n, BLOCK: tl.constexpr):
    """A program takes every so many'th block, and keeps a vector of sums until its end."""
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    totals = tl.zeros([BLOCK], tl.float32)
    for first in range(tl.program_id(0).to(tl.int64) * BLOCK, n, step):
        at = first + tl.arange(0, BLOCK)
        totals += tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(sums + tl.program_id(0), tl.sum(totals, 0))


def atomic(x: Any) -> Any:
    """[n] → [] in FP32. The last digits depend on the order in which programs end."""
    result = torch.zeros(1, dtype=torch.float32, device=x.device)
    if x.numel():
        sum_blocks[(triton.cdiv(x.numel(), BLOCK),)](x, result, x.numel(), BLOCK=BLOCK, IS_ATOMIC=True)
    return result[0]


def two_stage(x: Any) -> Any:
    """[n] → [] in FP32, the same each time. Stages follow until one sum is left."""
    sums = x
    while sums.numel() > 1 or sums is x:
        n_blocks = max(triton.cdiv(sums.numel(), BLOCK), 1)
        partial = torch.empty(n_blocks, dtype=torch.float32, device=x.device)
        sum_blocks[(n_blocks,)](sums, partial, sums.numel(), BLOCK=BLOCK, IS_ATOMIC=False)
        sums = partial
    return sums[0]


def per_program(x: Any) -> Any:
    """[n] → [] in FP32, the same each time."""
    return _strided(x, BLOCK, num_warps=4)


def vectorised(x: Any) -> Any:
    """[n] → [] in FP32, the same each time."""
    return _strided(x, WIDE, num_warps=8)


def _strided(x: Any, block: int, num_warps: int) -> Any:
    n_programs = min(PROGRAMS, max(triton.cdiv(x.numel(), block), 1))
    sums = torch.empty(n_programs, dtype=torch.float32, device=x.device)
    sum_strided[(n_programs,)](x, sums, x.numel(), BLOCK=block, num_warps=num_warps)
    result = torch.empty(1, dtype=torch.float32, device=x.device)
    sum_blocks[(1,)](sums, result, n_programs, BLOCK=PROGRAMS, IS_ATOMIC=False)
    return result[0]


def reference(x: Any) -> Any:
    return x.double().sum()


def count(*, n: int, dtype: DType) -> Count:
    """
    >>> count(n=1025, dtype="fp32").flops, count(n=1025, dtype="fp32").n_bytes
    (1024, 4104)
    """
    return Count(n - 1, n * ELEMENT_BYTES[dtype], 4, "n - 1 FLOP, n elements and one result in FP32")


def _blocks(dtype: DType, *, is_atomic: bool) -> Build:
    return Build(
        sum_blocks,
        signature={"x": pointer(dtype), "sums": "*fp32", "n": "i32"},
        constants={"BLOCK": BLOCK, "IS_ATOMIC": is_atomic},
        programs=triton.cdiv(SHAPE["n"], BLOCK),
        divisible_by_16=("x", "sums", "n"),
    )


def _strided_builds(dtype: DType, block: int, num_warps: int) -> Sequence[Build]:
    first = Build(
        sum_strided,
        signature={"x": pointer(dtype), "sums": "*fp32", "n": "i32"},
        constants={"BLOCK": block},
        num_warps=num_warps,
        programs=PROGRAMS,
        divisible_by_16=("x", "sums", "n"),
    )
    return [first, _blocks("fp32", is_atomic=False)]


OPERATOR = Operator(
    name="reduce",
    title="Sum of a vector",
    variants=[
        Variant(
            "atomic",
            "Every block adds its sum to one address, where all of them queue.",
            atomic,
            lambda dtype: [_blocks(dtype, is_atomic=True)],
        ),
        Variant(
            "two_stage",
            "Blocks leave their sums for a second kernel: the same result each time, for one more launch.",
            two_stage,
            lambda dtype: [_blocks(dtype, is_atomic=False), _blocks("fp32", is_atomic=False)],
        ),
        Variant(
            "per_program",
            "A fixed number of programs with many blocks each, folded once at the end.",
            per_program,
            lambda dtype: _strided_builds(dtype, BLOCK, 4),
        ),
        Variant(
            "vectorised",
            "Wider blocks of more warps: several wide loads of each thread are on their way.",
            vectorised,
            lambda dtype: _strided_builds(dtype, WIDE, 8),
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
