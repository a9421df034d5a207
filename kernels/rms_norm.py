"""RMSNorm of the rows of a matrix: y = x / sqrt(mean(x²) + ε) · w (Zhang and Sennrich 2019, arXiv:1910.07467).

Count. Four FLOPs for each element (square, sum, two products); each is read once and written once, and the weights once
for all rows. In FP32 that is 4 FLOP for 8 bytes: bound by memory. What is done once for a row does not count.

The ladder.
  separate  One kernel leaves 1 / sqrt(mean(x²) + ε) of each row in memory, another multiplies. When the second begins,
            the first has been through the whole matrix, and no cache still holds the row: two reads and one write.
  two_pass  A program walks along its row for the sum, and once more for the result. The second read comes soon after
            the first, and finds what the cache kept. Rows of any length.
  one_pass  The row stays in registers: one read and one write, which is the least. It has to fit: 16,384 elements.

Sums are FP32: above 1.8e19 a square overflows, the mean is inf, and the result 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer
from diag.kernels.rows import CHUNK, CHUNK_WARPS, check_rows, row_block, row_warps

SHAPE = {"rows": 65_536, "columns": 4096}
EPSILON = 1e-6
LONGEST_ROW = 16_384
"""That stays in registers without spills, with what it is multiplied by beside it."""


# ---- kernels -------------------------------------------------------------------------------------------------------


@triton.jit
def reciprocal_rms(x, row, columns, stride, epsilon, BLOCK: tl.constexpr):
    """1 / sqrt(mean(x²) + ε) of a row, walking along it. Each lane has a sum of its own until the end."""
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * stride + at, mask=at < columns, other=0.0).to(tl.float32)
        squares += value * value
    return tl.rsqrt(tl.sum(squares) / columns + epsilon)


@triton.jit
def scale_row(x, weight, y, row, columns, stride, factor, BLOCK: tl.constexpr):
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        is_inside = at < columns
        value = tl.load(x + row * stride + at, mask=is_inside, other=0.0).to(tl.float32)
        scale = tl.load(weight + at, mask=is_inside, other=0.0).to(tl.float32)
        tl.store(y + row * columns + at, (value * factor * scale).to(y.dtype.element_ty), mask=is_inside)


@triton.jit
def factors_of_rows(x, factors, columns, stride, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    tl.store(factors + row, reciprocal_rms(x, row, columns, stride, epsilon, BLOCK))


@triton.jit
def scaled_rows(x, weight, y, factors, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    scale_row(x, weight, y, row, columns, stride, tl.load(factors + row), BLOCK)


@triton.jit
def two_pass_rows(x, weight, y, columns, stride, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    factor = reciprocal_rms(x, row, columns, stride, epsilon, BLOCK)
    scale_row(x, weight, y, row, columns, stride, factor, BLOCK)


@triton.jit
def one_pass_rows(x, weight, y, columns, stride, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    is_inside = at < columns
    value = tl.load(x + row * stride + at, mask=is_inside, other=0.0).to(tl.float32)
    scale = tl.load(weight + at, mask=is_inside, other=0.0).to(tl.float32)
    value *= tl.rsqrt(tl.sum(value * value) / columns + epsilon)
    tl.store(y + row * columns + at, (value * scale).to(y.dtype.element_ty), mask=is_inside)


# ---- launchers -----------------------------------------------------------------------------------------------------


def separate(x: Any, weight: Any, *, epsilon: float = EPSILON) -> Any:
    """[rows, columns] and [columns] → [rows, columns], of the type of `x`. Raises UsageError where they do not fit."""
    rows, columns = check_rows(x, weight)
    y = x.new_empty(x.shape)
    factors = torch.empty(rows, dtype=torch.float32, device=x.device)
    if y.numel():
        sizes = {"BLOCK": CHUNK, "num_warps": CHUNK_WARPS}
        factors_of_rows[(rows,)](x, factors, columns, x.stride(0), epsilon, **sizes)
        scaled_rows[(rows,)](x, weight, y, factors, columns, x.stride(0), **sizes)
    return y


def two_pass(x: Any, weight: Any, *, epsilon: float = EPSILON) -> Any:
    check_rows(x, weight)
    return launch(two_pass_rows, x, weight, epsilon, CHUNK, CHUNK_WARPS)


def one_pass(x: Any, weight: Any, *, epsilon: float = EPSILON) -> Any:
    """As `separate`; also raises UsageError for rows that do not fit into registers."""
    _, columns = check_rows(x, weight)
    block = row_block(columns, LONGEST_ROW, "rms_norm one_pass", "two_pass")
    return launch(one_pass_rows, x, weight, epsilon, block, row_warps(block))


def launch(kernel: Any, x: Any, weight: Any, epsilon: float, block: int, num_warps: int) -> Any:
    y = x.new_empty(x.shape)
    if y.numel():
        kernel[(x.shape[0],)](x, weight, y, x.shape[1], x.stride(0), epsilon, BLOCK=block, num_warps=num_warps)
    return y


# ---- what it does --------------------------------------------------------------------------------------------------


def reference(x: Any, weight: Any, *, epsilon: float = EPSILON) -> Any:
    wide = x.double()
    return wide / (wide.square().mean(1, keepdim=True) + epsilon).sqrt() * weight.double()


def count(*, rows: int, columns: int, dtype: DType) -> Count:
    """
    >>> count(rows=10, columns=100, dtype="fp32").flops, count(rows=10, columns=100, dtype="fp32").n_bytes
    (4000, 8400)
    """
    n, size = rows * columns, ELEMENT_BYTES[dtype]
    return Count(4 * n, (n + columns) * size, n * size, "4 rows columns FLOP, 2 rows columns + columns elements")


# ---- for compiling without a GPU -----------------------------------------------------------------------------------


def _build(kernel: Any, dtype: DType, parameters: str, block: int, num_warps: int) -> Build:
    of = {
        "x": pointer(dtype),
        "weight": pointer(dtype),
        "y": pointer(dtype),
        "factors": pointer("fp32"),
        "epsilon": "fp32",
    }
    signature = {name: of.get(name, "i32") for name in parameters.split()}
    return Build(
        kernel,
        signature=signature,
        constants={"BLOCK": block},
        num_warps=num_warps,
        programs=SHAPE["rows"],
        divisible_by_16=[name for name in signature if name != "epsilon"],
    )


def _separate_builds(dtype: DType) -> Sequence[Build]:
    return [
        _build(factors_of_rows, dtype, "x factors columns stride epsilon", CHUNK, CHUNK_WARPS),
        _build(scaled_rows, dtype, "x weight y factors columns stride", CHUNK, CHUNK_WARPS),
    ]


_FUSED = "x weight y columns stride epsilon"

OPERATOR = Operator(
    name="rms_norm",
    title="RMSNorm over rows",
    variants=[
        Variant(
            "separate",
            "A kernel for the factors of all rows, another to multiply: no cache holds the matrix in between.",
            separate,
            _separate_builds,
        ),
        Variant(
            "two_pass",
            "One program walks along its row twice, the second time soon after the first; any length.",
            two_pass,
            lambda dtype: [_build(two_pass_rows, dtype, _FUSED, CHUNK, CHUNK_WARPS)],
        ),
        Variant(
            "one_pass",
            "The row stays in registers: read once, written once; it has to fit.",
            one_pass,
            lambda dtype: [_build(one_pass_rows, dtype, _FUSED, SHAPE["columns"], row_warps(SHAPE["columns"]))],
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
