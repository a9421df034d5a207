"""Vector add, c = a + b: the plainest kernel there is, bound by memory on every machine.

Count. One addition per element: n FLOPs. Two elements are read and one is written: 3·n elements, 12 bytes in FP32. The
intensity is 1/12 FLOP per byte, a hundred times below any ridge point: only bytes per second count.

The ladder.
  one_element   A thread adds one element: each warp asks memory for 128 bytes (FP32) at a time, and a thread that waits
                has one request on its way.
  vectorised    A thread adds eight neighbours: its loads are as wide as the hardware has them (16 bytes), and several
                are on their way at once. Little's law says how many bytes that must be: bandwidth x latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer

SHAPE = {"n": 1 << 28}
ONE_EACH = 128
"""Elements of a block of four warps: one for each thread."""
EIGHT_EACH = 1024


@triton.jit
def add(a, b, c, n, BLOCK: tl.constexpr):
    """A program adds BLOCK neighbours. The mask keeps the last one from what lies behind the end."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_inside = at < n
    total = tl.load(a + at, mask=is_inside, other=0.0) + tl.load(b + at, mask=is_inside, other=0.0)
    tl.store(c + at, total, mask=is_inside)


def one_element(a: Any, b: Any, out: Any = None) -> Any:
    """[n] + [n] → [n]"""
    return _launch(a, b, out, ONE_EACH)


def vectorised(a: Any, b: Any, out: Any = None) -> Any:
    """[n] + [n] → [n]"""
    return _launch(a, b, out, EIGHT_EACH)


def _launch(a: Any, b: Any, out: Any, block: int) -> Any:
    c = torch.empty_like(a) if out is None else out
    if a.numel():
        add[(triton.cdiv(a.numel(), block),)](a, b, c, a.numel(), BLOCK=block, num_warps=4)
    return c


def reference(a: Any, b: Any) -> Any:
    return a.double() + b.double()


def count(*, n: int, dtype: DType) -> Count:
    """
    >>> count(n=3, dtype="fp32").n_bytes, count(n=12, dtype="fp32").intensity
    (36, 0.08333333333333333)
    """
    size = ELEMENT_BYTES[dtype]
    return Count(n, 2 * n * size, n * size, "n FLOP, 3 n elements")


def _builds(dtype: DType, block: int) -> Sequence[Build]:
    return [
        Build(
            add,
            signature={**dict.fromkeys("abc", pointer(dtype)), "n": "i32"},
            constants={"BLOCK": block},
            programs=triton.cdiv(SHAPE["n"], block),
            divisible_by_16=(*"abc", "n"),
        )
    ]


OPERATOR = Operator(
    name="vector_add",
    title="Vector add",
    variants=[
        Variant(
            "one_element",
            "A thread adds one element, and waits with one request on its way.",
            one_element,
            lambda dtype: _builds(dtype, ONE_EACH),
        ),
        Variant(
            "vectorised",
            "A thread adds eight neighbours: wide loads, several of them on their way at once.",
            vectorised,
            lambda dtype: _builds(dtype, EIGHT_EACH),
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
