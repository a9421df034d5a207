"""Vector addition, z = x + y over n elements: the plainest use of memory there is.

Count. n FLOPs; 2·n elements read and n written. In FP32 that is 1 FLOP for 12 bytes, 0.083 FLOP per byte: two orders
of magnitude below the ridge point of any GPU. All that a variant can do is keep more bytes in flight.

How many bytes that takes is Little's law: bandwidth x latency. At 3.35 TB/s and 600 ns 2 MB must be under way at any
time, 15 KB for each of 132 SMs, or 7.4 bytes for each of 2,048 threads. A thread that asks for one element of each input
has 8 bytes under way in FP32, and only 4 in FP16, between its start and its end.

The ladder.
  one_element  A thread adds one element: a block ends as soon as it has begun, and most of what a warp issues works
               out addresses and bounds.
  several      A thread adds eight elements, a block's width apart, so that each access of a warp stays in one piece.
               The loads do not wait for one another: all sixteen are in flight together.
  vectorised   The same eight elements, but neighbours: 16 bytes are one instruction (LDG.128) instead of four or
               eight. Fewer instructions for the same bytes leave room in the queues of the load units.

Wide accesses need proof that 16 bytes lie within bounds and on a boundary: Triton takes it from pointers and lengths that
are divisible by 16, and falls back to single elements elsewhere. An `x[1:]` costs more than its one element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer

SHAPE = {"n": 1 << 28}
THREADS = 128  # four warps
PER_THREAD = 8  # elements; of FP16 they are the 16 bytes of the widest access, of FP32 two of them


# ---- kernel --------------------------------------------------------------------------------------------------------


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """A program adds STEPS x BLOCK elements; a step is one access for all of its threads."""
    start = tl.program_id(0).to(tl.int64) * (BLOCK * STEPS)
    for step in tl.static_range(STEPS):
        at = start + step * BLOCK + tl.arange(0, BLOCK)
        is_inside = at < n
        left = tl.load(x + at, mask=is_inside, other=0.0).to(tl.float32)
        right = tl.load(y + at, mask=is_inside, other=0.0).to(tl.float32)
        tl.store(z + at, (left + right).to(z.dtype.element_ty), mask=is_inside)


# ---- launchers -----------------------------------------------------------------------------------------------------


def launch(x: Any, y: Any, block: int, steps: int) -> Any:
    """[n] + [n] → [n], of the type of `x`. Raises UsageError where they do not fit."""
    if x.shape != y.shape or x.dtype != y.dtype or not (x.is_contiguous() and y.is_contiguous()):
        shown = f"{tuple(x.shape)} {x.dtype} and {tuple(y.shape)} {y.dtype}"
        raise UsageError(f"{shown} cannot be added here. Give two contiguous tensors of one shape and type.")
    z = x.new_empty(x.shape)
    if n := x.numel():
        add[(triton.cdiv(n, block * steps),)](x, y, z, n, BLOCK=block, STEPS=steps, num_warps=THREADS // 32)
    return z


def one_element(x: Any, y: Any) -> Any:
    return launch(x, y, THREADS, 1)


def several(x: Any, y: Any) -> Any:
    return launch(x, y, THREADS, PER_THREAD)


def vectorised(x: Any, y: Any) -> Any:
    return launch(x, y, THREADS * PER_THREAD, 1)


# ---- what it does --------------------------------------------------------------------------------------------------


def reference(x: Any, y: Any) -> Any:
    return x.double() + y.double()


def count(*, n: int, dtype: DType) -> Count:
    """
    >>> count(n=1000, dtype="fp32").n_bytes, round(count(n=1000, dtype="fp16").intensity, 3)
    (12000, 0.167)
    """
    size = ELEMENT_BYTES[dtype]
    return Count(n, 2 * n * size, n * size, "n FLOP, 3 n elements")


# ---- for compiling without a GPU -----------------------------------------------------------------------------------


def _builds(block: int, steps: int) -> Callable[[DType], Sequence[Build]]:
    return lambda dtype: [
        Build(
            add,
            signature={**dict.fromkeys("xyz", pointer(dtype)), "n": "i32"},
            constants={"BLOCK": block, "STEPS": steps},
            num_warps=THREADS // 32,
            programs=triton.cdiv(SHAPE["n"], block * steps),
            divisible_by_16=("x", "y", "z", "n"),
        )
    ]


OPERATOR = Operator(
    name="vector_add",
    title="Vector addition",
    variants=[
        Variant(
            "one_element",
            "A thread adds one element, and ends before it has much in flight.",
            one_element,
            _builds(THREADS, 1),
        ),
        Variant(
            "several",
            "A thread adds eight elements whose loads are in flight together; as many instructions as before.",
            several,
            _builds(THREADS, PER_THREAD),
        ),
        Variant(
            "vectorised",
            "The eight elements are neighbours: 16 bytes move in one instruction.",
            vectorised,
            _builds(THREADS * PER_THREAD, 1),
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
