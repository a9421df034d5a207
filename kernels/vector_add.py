"""Vector add, c = a + b: the plainest kernel there is, bound by memory on every GPU.

A block adds `BLOCK` neighbouring elements. The mask keeps the last block from what lies behind the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant

BLOCK = 1024
SHAPE = {"n": 1 << 26}


@triton.jit
def add(a: tl.tensor, b: tl.tensor, c: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr) -> None:
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_inside = at < n
    total = tl.load(a + at, mask=is_inside, other=0.0) + tl.load(b + at, mask=is_inside, other=0.0)
    tl.store(c + at, total, mask=is_inside)


def run(a: Any, b: Any) -> Any:
    """[n] + [n] → [n]."""
    c = torch.empty_like(a)
    add[(triton.cdiv(a.numel(), BLOCK),)](a, b, c, a.numel(), BLOCK=BLOCK)
    return c


def builds(dtype: DType) -> Sequence[Build]:
    pointer = f"*{dtype}"
    return [
        Build(
            add,
            signature={"a": pointer, "b": pointer, "c": pointer, "n": "i32"},
            constants={"BLOCK": BLOCK},
            programs=triton.cdiv(SHAPE["n"], BLOCK),
            divisible_by_16=("a", "b", "c", "n"),
        )
    ]


def count(*, n: int, dtype: DType) -> Count:
    size = ELEMENT_BYTES[dtype]
    return Count(flops=n, read_bytes=2 * n * size, written_bytes=n * size, formula="n FLOP, 3 n elements")


OPERATOR = Operator(
    name="vector_add",
    title="Vector add",
    variants=[
        Variant("blocks", "Each block adds neighbouring elements, so that loads are wide.", run, builds, is_good=True)
    ],
    reference=lambda a, b: a.double() + b.double(),
    count=count,
    default_shape=SHAPE,
)
