"""The sum of n elements: everything is read, next to nothing is written, and the order of additions is free.

Count. n - 1 FLOPs; n elements read, one FP32 sum written. In FP32 that is 0.25 FLOP per byte: bound by reading.

The sum is FP32 whatever the elements are: in FP16 it would end at 65,504. Its error depends on the order: one after the
other, n additions may lose n roundoffs, a tree of them log2(n) (Higham 2002, section 4.2).

The ladder.
  atomic      A program sums its 128 elements, and adds the result to one address that all share. There, n / 128
              additions wait in one queue, and who comes first decides how they round: no two runs need agree.
  tree        Each program writes its sum to a place of its own, and the same kernel sums those, until one is left. No
              queue, and the same result each time; 1/128 more to write and read, and a launch for each stage.
  several     A program sums 8,192 elements: 64 for each thread, kept apart in registers until the end. The tree across
              the threads of a block, which no load can overlap with, is climbed 64 times less often.
  vectorised  The same 8,192, but a thread takes eight neighbours at a time, in accesses of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer

SHAPE = {"n": 1 << 28}
THREADS = 128  # four warps
PER_THREAD = 8  # neighbours
CHUNK = 8192  # elements of a program


# ---- kernels -------------------------------------------------------------------------------------------------------


@triton.jit
def chunk_sum(x, n, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """Of this program's CHUNK elements, BLOCK at a time: each lane has a sum of its own until the end."""
    start = tl.program_id(0).to(tl.int64) * CHUNK
    total = tl.zeros([BLOCK], tl.float32)
    for step in tl.static_range(0, CHUNK, BLOCK):
        at = start + step + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    return tl.sum(total)


@triton.jit
def add_to_one(x, total, n, BLOCK: tl.constexpr):
    tl.atomic_add(total, chunk_sum(x, n, BLOCK, BLOCK), sem="relaxed")


@triton.jit
def partial_sums(x, partials, n, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(partials + tl.program_id(0), chunk_sum(x, n, CHUNK, BLOCK))


# ---- launchers -----------------------------------------------------------------------------------------------------


def atomic(x: Any) -> Any:
    """The sum of all elements, FP32, without dimensions. Raises UsageError for a tensor that is not in one piece."""
    total = torch.zeros((), dtype=torch.float32, device=x.device)
    if n := _length(x):
        add_to_one[(triton.cdiv(n, THREADS),)](x, total, n, BLOCK=THREADS, num_warps=THREADS // 32)
    return total


def by_stages(x: Any, chunk: int, block: int) -> Any:
    """As `atomic`, in launches that leave one sum for each chunk, until one is left."""
    if not (n := _length(x)):
        return torch.zeros((), dtype=torch.float32, device=x.device)
    while True:
        n_partials = triton.cdiv(n, chunk)
        partials = torch.empty(n_partials, dtype=torch.float32, device=x.device)
        partial_sums[(n_partials,)](x, partials, n, CHUNK=chunk, BLOCK=block, num_warps=THREADS // 32)
        if n_partials == 1:
            return partials.reshape(())
        x, n = partials, n_partials


def tree(x: Any) -> Any:
    return by_stages(x, THREADS, THREADS)


def several(x: Any) -> Any:
    return by_stages(x, CHUNK, THREADS)


def vectorised(x: Any) -> Any:
    return by_stages(x, CHUNK, THREADS * PER_THREAD)


def _length(x: Any) -> int:
    if not x.is_contiguous():
        raise UsageError(f"a tensor with strides {x.stride()} is not in one piece. Give a contiguous one.")
    return int(x.numel())


# ---- what it does --------------------------------------------------------------------------------------------------


def reference(x: Any) -> Any:
    return x.double().sum()


def count(*, n: int, dtype: DType) -> Count:
    """
    >>> count(n=1000, dtype="fp16").flops, count(n=1000, dtype="fp16").n_bytes
    (999, 2004)
    """
    return Count(n - 1, n * ELEMENT_BYTES[dtype], 4, "n - 1 FLOP, n elements and one FP32 sum")


# ---- for compiling without a GPU -----------------------------------------------------------------------------------


def _atomic_builds(dtype: DType) -> Sequence[Build]:
    return [
        Build(
            add_to_one,
            signature={"x": pointer(dtype), "total": pointer("fp32"), "n": "i32"},
            constants={"BLOCK": THREADS},
            num_warps=THREADS // 32,
            programs=triton.cdiv(SHAPE["n"], THREADS),
            divisible_by_16=("x", "total", "n"),
        )
    ]


def _staged_builds(chunk: int, block: int) -> Callable[[DType], Sequence[Build]]:
    """The first stage, which reads all but a share of 1 / chunk of the bytes."""
    return lambda dtype: [
        Build(
            partial_sums,
            signature={"x": pointer(dtype), "partials": pointer("fp32"), "n": "i32"},
            constants={"CHUNK": chunk, "BLOCK": block},
            num_warps=THREADS // 32,
            programs=triton.cdiv(SHAPE["n"], chunk),
            divisible_by_16=("x", "partials", "n"),
        )
    ]


OPERATOR = Operator(
    name="reduce",
    title="Sum of all elements",
    variants=[
        Variant(
            "atomic",
            "Each program adds its sum of 128 elements to one address, where all of them wait.",
            atomic,
            _atomic_builds,
        ),
        Variant(
            "tree",
            "Sums of 128 go to places of their own and are summed by the next launch: no queue, the same each time.",
            tree,
            _staged_builds(THREADS, THREADS),
        ),
        Variant(
            "several",
            "A program sums 8,192 elements in registers before its threads have to meet.",
            several,
            _staged_builds(CHUNK, THREADS),
        ),
        Variant(
            "vectorised",
            "A thread takes eight neighbours at a time: 16 bytes move in one instruction.",
            vectorised,
            _staged_builds(CHUNK, THREADS * PER_THREAD),
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
