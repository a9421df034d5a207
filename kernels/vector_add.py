"""Vector addition, z = x + y over n elements: the plainest use of memory there is.

Count. n FLOPs; 2·n elements read and n written. In FP32 that is 1 FLOP for 12 bytes, 0.083 FLOP per byte: two orders
of magnitude below the ridge point of any GPU. All that a variant can do is keep more bytes in flight.

How many bytes that takes is Little's law: bandwidth x latency. At 3.35 TB/s and, say, 600 ns, 2 MB must be under way at
any time: 15 KB for each of 132 SMs, or 7.4 bytes for each of its 2,048 threads. A thread that asks for one element of
each input has 8 bytes under way in FP32, 4 in FP16, and none while it starts and ends.

The ladder.
  one_element  A thread adds one element: a block ends as soon as it has begun, and most of what a warp issues works
               out addresses and bounds.
  several      A thread adds eight elements, an access for each: sixteen loads do not wait for one another.
  vectorised   The same eight elements, but neighbours: 16 bytes are one instruction (LDG.128) instead of four or
               eight. Fewer instructions for the same bytes leave room in the queues of the load units.

The last two are one kernel. Wide accesses need proof that 16 bytes lie within bounds and on a boundary: Triton takes it
from pointers and lengths that are divisible by 16, and `several` is kept from looking at them. So much it costs to add
`x[1:]`, which lies on no boundary.
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


# ---- kernels -------------------------------------------------------------------------------------------------------


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_inside = at < n
    left = tl.load(x + at, mask=is_inside, other=0.0).to(tl.float32)
    right = tl.load(y + at, mask=is_inside, other=0.0).to(tl.float32)
    tl.store(z + at, (left + right).to(z.dtype.element_ty), mask=is_inside)


_ALIGNED = ("x", "y", "z", "n")

add_single = triton.jit(add.fn, do_not_specialize_on_alignment=_ALIGNED)
"""The same kernel, compiled as if nothing were known of its pointers: each access moves one element."""


# ---- launchers -----------------------------------------------------------------------------------------------------


def launch(kernel: Any, x: Any, y: Any, block: int) -> Any:
    """[n] + [n] → [n], of the type of `x`. Raises UsageError where they do not fit."""
    if x.shape != y.shape or x.dtype != y.dtype or not (x.is_contiguous() and y.is_contiguous()):
        shown = f"{tuple(x.shape)} {x.dtype} and {tuple(y.shape)} {y.dtype}"
        raise UsageError(f"{shown} cannot be added here. Give two contiguous tensors of one shape and type.")
    z = x.new_empty(x.shape)
    if n := x.numel():
        kernel[(triton.cdiv(n, block),)](x, y, z, n, BLOCK=block, num_warps=THREADS // 32)
    return z


def one_element(x: Any, y: Any) -> Any:
    return launch(add, x, y, THREADS)


def several(x: Any, y: Any) -> Any:
    return launch(add_single, x, y, THREADS * PER_THREAD)


def vectorised(x: Any, y: Any) -> Any:
    return launch(add, x, y, THREADS * PER_THREAD)


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


def _builds(kernel: Any, block: int, aligned: Sequence[str]) -> Callable[[DType], Sequence[Build]]:
    return lambda dtype: [
        Build(
            kernel,
            signature={**dict.fromkeys("xyz", pointer(dtype)), "n": "i32"},
            constants={"BLOCK": block},
            num_warps=THREADS // 32,
            programs=triton.cdiv(SHAPE["n"], block),
            divisible_by_16=aligned,
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
            _builds(add, THREADS, _ALIGNED),
        ),
        Variant(
            "several",
            "A thread adds eight elements whose loads are in flight together; as many accesses as before.",
            several,
            _builds(add_single, THREADS * PER_THREAD, ()),
        ),
        Variant(
            "vectorised",
            "The eight elements are neighbours: 16 bytes move in one instruction.",
            vectorised,
            _builds(add, THREADS * PER_THREAD, _ALIGNED),
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
