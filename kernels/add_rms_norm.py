"""Residual addition and RMSNorm in one: s = x + r, y = s / sqrt(mean(s²) + ε) · w, and both s and y are wanted.

So begins each half of a layer of a Llama-style decoder: s goes on as the residual stream, y into the projections.

Count. Five FLOPs for each element (the addition, and four of RMSNorm); two inputs are read, two results written, and
the weights once for all rows. In FP32 that is 5 FLOP for 16 bytes: bound by memory.

The ladder.
  separate  The addition writes s, the norm reads it again: five elements move for each where four would do, so that
            fusing takes 20 % of the time away, and one launch of two, which is what counts at small batches.
  fused     A row of s stays in registers between its addition and its norm. It has to fit: 16,384 elements.

The norm sees s as it was added, in FP32, where `separate` sees it as it was stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels import rms_norm, vector_add
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer
from diag.kernels.rms_norm import EPSILON, LONGEST_ROW
from diag.kernels.rows import check_rows, row_block, row_warps

SHAPE = {"rows": 65_536, "columns": 4096}


# ---- kernel --------------------------------------------------------------------------------------------------------


@triton.jit
def fused_rows(x, residual, weight, added, normed, columns, epsilon, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    is_inside = at < columns
    value = tl.load(x + start + at, mask=is_inside, other=0.0).to(tl.float32)
    value += tl.load(residual + start + at, mask=is_inside, other=0.0).to(tl.float32)
    tl.store(added + start + at, value.to(added.dtype.element_ty), mask=is_inside)
    scale = tl.load(weight + at, mask=is_inside, other=0.0).to(tl.float32)
    value *= tl.rsqrt(tl.sum(value * value) / columns + epsilon)
    tl.store(normed + start + at, (value * scale).to(normed.dtype.element_ty), mask=is_inside)


# ---- launchers -----------------------------------------------------------------------------------------------------


def separate(x: Any, residual: Any, weight: Any, *, epsilon: float = EPSILON) -> tuple[Any, Any]:
    """Two matrices [rows, columns] and [columns] → the sum and its norm. Raises UsageError where they do not fit."""
    check_rows(x, weight)
    added = vector_add.vectorised(x, residual)
    return added, rms_norm.two_pass(added, weight, epsilon=epsilon)


def fused(x: Any, residual: Any, weight: Any, *, epsilon: float = EPSILON) -> tuple[Any, Any]:
    """As `separate`; also raises UsageError for rows that do not fit into registers."""
    rows, columns = check_rows(x, weight)
    if x.shape != residual.shape or x.dtype != residual.dtype or not (x.is_contiguous() and residual.is_contiguous()):
        shown = f"{tuple(x.shape)} {x.dtype} and {tuple(residual.shape)} {residual.dtype}"
        raise UsageError(f"{shown} cannot be added here. Give two contiguous matrices of one shape and type.")
    added, normed = x.new_empty(x.shape), x.new_empty(x.shape)
    block = row_block(columns, LONGEST_ROW, "add_rms_norm fused", "separate")
    if x.numel():
        fused_rows[(rows,)](
            x, residual, weight, added, normed, columns, epsilon, BLOCK=block, num_warps=row_warps(block)
        )  # fmt: skip
    return added, normed


# ---- what it does --------------------------------------------------------------------------------------------------


def reference(x: Any, residual: Any, weight: Any, *, epsilon: float = EPSILON) -> tuple[Any, Any]:
    added = x.double() + residual.double()
    return added, rms_norm.reference(added, weight, epsilon=epsilon)


def count(*, rows: int, columns: int, dtype: DType) -> Count:
    """
    >>> count(rows=10, columns=100, dtype="fp32").flops, count(rows=10, columns=100, dtype="fp32").n_bytes
    (5000, 16400)
    """
    n, size = rows * columns, ELEMENT_BYTES[dtype]
    formula = "5 rows columns FLOP, 4 rows columns + columns elements"
    return Count(5 * n, (2 * n + columns) * size, 2 * n * size, formula)


# ---- for compiling without a GPU -----------------------------------------------------------------------------------


def _separate_builds(dtype: DType) -> Sequence[Build]:
    addition = vector_add.OPERATOR.variant("vectorised").builds(dtype)
    return [*addition, *rms_norm.OPERATOR.variant("two_pass").builds(dtype)]


def _fused_builds(dtype: DType) -> Sequence[Build]:
    tensors = ("x", "residual", "weight", "added", "normed")
    return [
        Build(
            fused_rows,
            signature={**dict.fromkeys(tensors, pointer(dtype)), "columns": "i32", "epsilon": "fp32"},
            constants={"BLOCK": SHAPE["columns"]},
            num_warps=row_warps(SHAPE["columns"]),
            programs=SHAPE["rows"],
            divisible_by_16=(*tensors, "columns"),
        )
    ]


OPERATOR = Operator(
    name="add_rms_norm",
    title="Residual addition and RMSNorm",
    variants=[
        Variant(
            "separate",
            "The addition writes the sum, the norm reads it again: five elements move where four would do.",
            separate,
            _separate_builds,
        ),
        Variant(
            "fused",
            "The sum stays in registers until it is normed: a fifth less to move, and one launch.",
            fused,
            _fused_builds,
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
