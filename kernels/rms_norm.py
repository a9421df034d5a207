"""RMSNorm, y = x / sqrt(mean(x²) + eps) · w for each row.

Count. Per element a square, an addition, and two multiplications: 4 FLOPs; per row a division and a root, left out. One
element is read and one is written: bound by memory.

The ladder.
  two_pass  The row is read for its sum of squares, and once more for the result.
  one_pass  It stays in the registers of one program: read once. It must fit there (softmax.LONGEST).

Source: Zhang and Sennrich 2019, arXiv:1910.07467. Sums are kept in FP32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer
from diag.kernels.softmax import LONGEST, warps_for

SHAPE = {"rows": 65536, "columns": 4096}
BLOCK = 1024
EPS = 1e-6


@triton.jit
def rms_norm_two_pass(x, weight, y, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n_columns
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row + at, mask=at < n_columns, other=0.0).to(tl.float32)
        squares += part * part
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / n_columns + eps)
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row + at, mask=at < n_columns, other=0.0).to(tl.float32)
        weights = tl.load(weight + at, mask=at < n_columns, other=0.0).to(tl.float32)
        tl.store(y + row + at, (part * scale * weights).to(y.dtype.element_ty), mask=at < n_columns)


@triton.jit
def rms_norm_one_pass(x, residual, weight, total, y, n_columns, eps, HAS_RESIDUAL: tl.constexpr, BLOCK: tl.constexpr):
    """With HAS_RESIDUAL, x + residual is what is normed, and written to `total` in the type of `x`."""
    row = tl.program_id(0).to(tl.int64) * n_columns
    at = tl.arange(0, BLOCK)
    is_inside = at < n_columns
    whole = tl.load(x + row + at, mask=is_inside, other=0.0).to(tl.float32)
    if HAS_RESIDUAL:
        whole += tl.load(residual + row + at, mask=is_inside, other=0.0).to(tl.float32)
        rounded = whole.to(total.dtype.element_ty)
        tl.store(total + row + at, rounded, mask=is_inside)
        whole = rounded.to(tl.float32)  # what a later kernel would read
    scale = 1.0 / tl.sqrt(tl.sum(whole * whole, 0) / n_columns + eps)
    weights = tl.load(weight + at, mask=is_inside, other=0.0).to(tl.float32)
    tl.store(y + row + at, (whole * scale * weights).to(y.dtype.element_ty), mask=is_inside)


def two_pass(x: Any, weight: Any, eps: float = EPS) -> Any:
    """[rows, columns], [columns] → [rows, columns]"""
    x, y = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        rms_norm_two_pass[(x.shape[0],)](x, weight, y, x.shape[1], eps, BLOCK=BLOCK, num_warps=4)
    return y


def one_pass(x: Any, weight: Any, eps: float = EPS) -> Any:
    """As `two_pass`. Raises UsageError for rows that no program can hold."""
    return normed(x, None, weight, eps)[1]


def normed(x: Any, residual: Any, weight: Any, eps: float = EPS) -> tuple[Any, Any]:
    """What is normed (x + residual where there is one) and its norm, [rows, columns] each. Raises UsageError."""
    if x.shape[1] > LONGEST:
        raise UsageError(f"Rows of {x.shape[1]} elements do not fit into registers (at most {LONGEST}). Use two_pass.")
    x, block = x.contiguous(), triton.next_power_of_2(max(x.shape[1], 1))
    y = torch.empty_like(x)
    total = torch.empty_like(x) if residual is not None else y
    if x.numel():
        rms_norm_one_pass[(x.shape[0],)](
            x, x if residual is None else residual, weight, total, y, x.shape[1], eps,
            HAS_RESIDUAL=residual is not None, BLOCK=block, num_warps=warps_for(block),
        )  # fmt: skip
    return total, y


def reference(x: Any, weight: Any, eps: float = EPS) -> Any:
    x = x.double()
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double()


def count(*, rows: int, columns: int, dtype: DType) -> Count:
    """
    >>> count(rows=2, columns=8, dtype="fp16").flops, count(rows=2, columns=8, dtype="fp16").n_bytes
    (64, 80)
    """
    size, n = ELEMENT_BYTES[dtype], rows * columns
    formula = "4 rows columns FLOP, 2 rows columns + columns elements"
    return Count(4 * n, (n + columns) * size, n * size, formula)


# ---- for compiling without a GPU -----------------------------------------------------------------------------------


def _two_pass_builds(dtype: DType) -> Sequence[Build]:
    return [
        Build(
            rms_norm_two_pass,
            signature={**dict.fromkeys(("x", "weight", "y"), pointer(dtype)), "n_columns": "i32", "eps": "fp32"},
            constants={"BLOCK": BLOCK},
            programs=SHAPE["rows"],
            divisible_by_16=("x", "weight", "y", "n_columns"),
        )
    ]


def one_pass_build(dtype: DType, *, has_residual: bool) -> Build:
    tensors = ("x", "residual", "weight", "total", "y")
    return Build(
        rms_norm_one_pass,
        signature={**dict.fromkeys(tensors, pointer(dtype)), "n_columns": "i32", "eps": "fp32"},
        constants={"HAS_RESIDUAL": has_residual, "BLOCK": SHAPE["columns"]},
        num_warps=warps_for(SHAPE["columns"]),
        programs=SHAPE["rows"],
        divisible_by_16=(*tensors, "n_columns"),
    )


OPERATOR = Operator(
    name="rms_norm",
    title="RMSNorm of rows",
    variants=[
        Variant(
            "two_pass",
            "The row is read for its squares, and once more for the result.",
            two_pass,
            _two_pass_builds,
        ),
        Variant(
            "one_pass",
            "The row stays in registers: it is read once.",
            one_pass,
            lambda dtype: [one_pass_build(dtype, has_residual=False)],
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
