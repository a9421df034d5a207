"""Softmax over the rows of a matrix: y[i] = exp(x[i] - m) / l, with m the largest x and l the sum of exp(x - m).

Subtracting m changes nothing mathematically, and keeps exp from overflowing: the largest term is 1 (*safe* softmax).

Count. Five FLOPs for each element (maximum, difference, exponential, sum, quotient); each is read and written once. In
FP32 that is 5 FLOP for 8 bytes: bound by memory, so that what counts is how many times a row is read.

The ladder.
  three_pass  As it is defined: along the row for m, again for l, again for y. Three reads and one write; the caches may
              still hold a short row from the pass before, and no long one.
  online      m and l in one pass. Two parts of a row, each with its own (m, l), merge as
                  m = max(m1, m2),  l = l1·exp(m1 - m) + l2·exp(m2 - m),
              in any order; an element alone is the state (x, 1) (Milakov and Gimelshein 2018, arXiv:1805.02867).
              Each lane keeps a state of its own, so that threads meet once, at the end of the row. Two reads and one
              write. FlashAttention stands on this merge.
  one_pass    The row stays in registers between m, l and y: one read and one write, which is the least. It has to fit:
              32,768 elements.

Special values as in PyTorch: a row with NaN or +inf is all NaN, and so is one of -inf alone (0 / 0); other -inf give 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer
from diag.kernels.rows import CHUNK, CHUNK_WARPS, check_rows, row_block, row_warps

SHAPE = {"rows": 65_536, "columns": 4096}
LONGEST_ROW = 32_768
"""That stays in registers: 64 elements for each lane of 16 warps."""


# ---- kernels -------------------------------------------------------------------------------------------------------


@triton.jit
def merge(m1, l1, m2, l2):
    """Of two states (m, l). Where all is -inf so far, exp(-inf - -inf) must not be asked for: l is 0."""
    m = tl.maximum(m1, m2)
    shift = tl.where(m == float("-inf"), 0.0, m)
    return m, l1 * tl.exp(m1 - shift) + l2 * tl.exp(m2 - shift)


@triton.jit
def merge_lanes(m, l):  # noqa: E741
    """Of the states of all lanes: the same merge, with one maximum for all."""
    largest = tl.max(m)
    return largest, tl.sum(l * tl.exp(m - largest))


@triton.jit
def load_row(x, row, at, columns, stride):
    """Elements of a row as FP32; those beyond its end are -inf, which adds nothing to a softmax."""
    return tl.load(x + row * stride + at, mask=at < columns, other=float("-inf")).to(tl.float32)


@triton.jit
def write_softmax(x, y, row, columns, stride, m, total, BLOCK: tl.constexpr):
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.exp(load_row(x, row, at, columns, stride) - m) / total
        tl.store(y + row * columns + at, value.to(y.dtype.element_ty), mask=at < columns)


@triton.jit
def three_pass_rows(x, y, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    for start in range(0, columns, BLOCK):
        largest = tl.maximum(largest, load_row(x, row, start + tl.arange(0, BLOCK), columns, stride))
    m = tl.max(largest)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.exp(load_row(x, row, start + tl.arange(0, BLOCK), columns, stride) - m)
    write_softmax(x, y, row, columns, stride, m, tl.sum(total), BLOCK)


@triton.jit
def online_rows(x, y, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = tl.full([BLOCK], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK], tl.float32)  # noqa: E741
    for start in range(0, columns, BLOCK):
        value = load_row(x, row, start + tl.arange(0, BLOCK), columns, stride)
        m, l = merge(m, l, value, 1.0)  # noqa: E741
    m_row, l_row = merge_lanes(m, l)
    write_softmax(x, y, row, columns, stride, m_row, l_row, BLOCK)


@triton.jit
def one_pass_rows(x, y, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = load_row(x, row, at, columns, stride)
    value = tl.exp(value - tl.max(value))
    tl.store(y + row * columns + at, (value / tl.sum(value)).to(y.dtype.element_ty), mask=at < columns)


# ---- launchers -----------------------------------------------------------------------------------------------------


def launch(kernel: Any, x: Any, block: int, num_warps: int) -> Any:
    """[rows, columns] → the same shape and type, a program for each row."""
    y = x.new_empty(x.shape)
    if y.numel():
        kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=block, num_warps=num_warps)
    return y


def three_pass(x: Any) -> Any:
    """Softmax of each row. Raises UsageError for what is no matrix of whole rows."""
    check_rows(x)
    return launch(three_pass_rows, x, CHUNK, CHUNK_WARPS)


def online(x: Any) -> Any:
    check_rows(x)
    return launch(online_rows, x, CHUNK, CHUNK_WARPS)


def one_pass(x: Any) -> Any:
    """As `three_pass`; also raises UsageError for rows that do not fit into registers."""
    _, columns = check_rows(x)
    block = row_block(columns, LONGEST_ROW, "softmax one_pass", "online")
    return launch(one_pass_rows, x, block, row_warps(block))


# ---- what it does --------------------------------------------------------------------------------------------------


def reference(x: Any) -> Any:
    return x.double().softmax(1)


def count(*, rows: int, columns: int, dtype: DType) -> Count:
    """
    >>> count(rows=10, columns=100, dtype="fp32").flops, count(rows=10, columns=100, dtype="fp32").n_bytes
    (5000, 8000)
    """
    n, size = rows * columns, ELEMENT_BYTES[dtype]
    return Count(5 * n, n * size, n * size, "5 rows columns FLOP, 2 rows columns elements")


# ---- for compiling without a GPU -----------------------------------------------------------------------------------


def _build(kernel: Any, dtype: DType, block: int, num_warps: int) -> Sequence[Build]:
    return [
        Build(
            kernel,
            signature={"x": pointer(dtype), "y": pointer(dtype), "columns": "i32", "stride": "i32"},
            constants={"BLOCK": block},
            num_warps=num_warps,
            programs=SHAPE["rows"],
            divisible_by_16=("x", "y", "columns", "stride"),
        )
    ]


OPERATOR = Operator(
    name="softmax",
    title="Softmax over rows",
    variants=[
        Variant(
            "three_pass",
            "As it is defined: the row is read for its maximum, for the sum, and for the result.",
            three_pass,
            lambda dtype: _build(three_pass_rows, dtype, CHUNK, CHUNK_WARPS),
        ),
        Variant(
            "online",
            "Maximum and sum in one pass, rescaling the sum as the maximum grows: one read less, any length.",
            online,
            lambda dtype: _build(online_rows, dtype, CHUNK, CHUNK_WARPS),
        ),
        Variant(
            "one_pass",
            "The row stays in registers: read once, written once; it has to fit.",
            one_pass,
            lambda dtype: _build(one_pass_rows, dtype, SHAPE["columns"], row_warps(SHAPE["columns"])),
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
