"""LayerNorm of the rows of a matrix: y = (x - mean) / sqrt(variance + ε) · w + b (Ba et al. 2016, arXiv:1607.06450).

Count. Seven FLOPs for each element (sum, difference, square, sum, and three for the result); each is read once and
written once, weights and biases once for all rows. In FP32 that is 7 FLOP for 8 bytes: bound by memory.

The ladder is about digits as much as about bytes.
  sum_of_squares  mean(x²) - mean(x)² in one pass: two reads and one write, and wrong where the mean is large. With a
                  mean of 10,000 both terms are about 1e8, FP32 holds them to a few units, and a variance of 1 is the
                  difference of two numbers of which neither knows its last digits (Chan, Golub and LeVeque 1983).
  three_pass      The mean first, then the squares of differences to it: right, for one read more.
  welford         One pass again. A state is (mean, M2, n), with M2 the sum of squared differences to the mean *so far*.
                  An element joins a state (Welford 1962), the states of all lanes merge in the end (Chan et al. 1983):
                      mean = Σ n_i·mean_i / n,  M2 = Σ M2_i + Σ n_i·(mean_i - mean)²,
                  and nowhere is one large sum taken from another. Two reads and one write, rows of any length.
  one_pass        The row stays in registers, where going over it twice costs nothing: one read and one write, which is
                  the least. It has to fit: 16,384 elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer
from diag.kernels.rows import CHUNK, CHUNK_WARPS, check_rows, row_block, row_warps

SHAPE = {"rows": 65_536, "columns": 4096}
EPSILON = 1e-5
LONGEST_ROW = 16_384
"""That stays in registers without spills, with what it is multiplied by beside it."""


# ---- kernels -------------------------------------------------------------------------------------------------------


@triton.jit
def load_row(x, row, at, columns, stride):
    """Elements of a row as FP32; those beyond its end are 0."""
    return tl.load(x + row * stride + at, mask=at < columns, other=0.0).to(tl.float32)


@triton.jit
def store_row(value, weight, bias, y, row, at, columns):
    """A row that is normed, times its weights, plus its biases."""
    is_inside = at < columns
    scale = tl.load(weight + at, mask=is_inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + at, mask=is_inside, other=0.0).to(tl.float32)
    tl.store(y + row * columns + at, (value * scale + shift).to(y.dtype.element_ty), mask=is_inside)


@triton.jit
def write_normed(x, weight, bias, y, row, columns, stride, mean, variance, epsilon, BLOCK: tl.constexpr):
    factor = tl.rsqrt(variance + epsilon)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = (load_row(x, row, at, columns, stride) - mean) * factor
        store_row(value, weight, bias, y, row, at, columns)


@triton.jit
def sum_of_squares_rows(x, weight, bias, y, columns, stride, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        value = load_row(x, row, start + tl.arange(0, BLOCK), columns, stride)
        total += value
        squares += value * value
    mean = tl.sum(total) / columns
    variance = tl.sum(squares) / columns - mean * mean
    variance = tl.where(variance < 0.0, 0.0, variance)  # what rounding left may be below zero
    write_normed(x, weight, bias, y, row, columns, stride, mean, variance, epsilon, BLOCK)


@triton.jit
def three_pass_rows(x, weight, bias, y, columns, stride, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        total += load_row(x, row, start + tl.arange(0, BLOCK), columns, stride)
    mean = tl.sum(total) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        away = tl.where(at < columns, load_row(x, row, at, columns, stride) - mean, 0.0)
        squares += away * away
    write_normed(x, weight, bias, y, row, columns, stride, mean, tl.sum(squares) / columns, epsilon, BLOCK)


@triton.jit
def join(mean, m2, n, value, is_inside):
    """An element joins the state of its lane, where there is one."""
    n += is_inside.to(tl.float32)
    away = tl.where(is_inside, value - mean, 0.0)
    mean += away / tl.maximum(n, 1.0)
    return mean, m2 + away * (value - mean), n


@triton.jit
def merge_lanes(means, m2s, ns):
    """The states of all lanes as one; lanes without elements weigh nothing."""
    n = tl.sum(ns)
    mean = tl.sum(ns * means) / n
    away = means - mean
    return mean, tl.sum(m2s + ns * away * away), n


@triton.jit
def welford_rows(x, weight, bias, y, columns, stride, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mean = tl.zeros([BLOCK], tl.float32)
    m2 = tl.zeros([BLOCK], tl.float32)
    n = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mean, m2, n = join(mean, m2, n, load_row(x, row, at, columns, stride), at < columns)
    row_mean, row_m2, row_n = merge_lanes(mean, m2, n)
    write_normed(x, weight, bias, y, row, columns, stride, row_mean, row_m2 / row_n, epsilon, BLOCK)


@triton.jit
def one_pass_rows(x, weight, bias, y, columns, stride, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    value = load_row(x, row, at, columns, stride)
    value = tl.where(at < columns, value - tl.sum(value) / columns, 0.0)
    value *= tl.rsqrt(tl.sum(value * value) / columns + epsilon)
    store_row(value, weight, bias, y, row, at, columns)


# ---- launchers -----------------------------------------------------------------------------------------------------


def launch(kernel: Any, x: Any, weight: Any, bias: Any, epsilon: float, block: int, num_warps: int) -> Any:
    """[rows, columns], [columns], [columns] → [rows, columns], of the type of `x`; a program for each row."""
    y = x.new_empty(x.shape)
    if y.numel():
        kernel[(x.shape[0],)](x, weight, bias, y, x.shape[1], x.stride(0), epsilon, BLOCK=block, num_warps=num_warps)
    return y


def sum_of_squares(x: Any, weight: Any, bias: Any, *, epsilon: float = EPSILON) -> Any:
    """LayerNorm of each row. Raises UsageError where the shapes do not fit."""
    check_rows(x, weight, bias)
    return launch(sum_of_squares_rows, x, weight, bias, epsilon, CHUNK, CHUNK_WARPS)


def three_pass(x: Any, weight: Any, bias: Any, *, epsilon: float = EPSILON) -> Any:
    check_rows(x, weight, bias)
    return launch(three_pass_rows, x, weight, bias, epsilon, CHUNK, CHUNK_WARPS)


def welford(x: Any, weight: Any, bias: Any, *, epsilon: float = EPSILON) -> Any:
    check_rows(x, weight, bias)
    return launch(welford_rows, x, weight, bias, epsilon, CHUNK, CHUNK_WARPS)


def one_pass(x: Any, weight: Any, bias: Any, *, epsilon: float = EPSILON) -> Any:
    """As `sum_of_squares`; also raises UsageError for rows that do not fit into registers."""
    _, columns = check_rows(x, weight, bias)
    block = row_block(columns, LONGEST_ROW, "layer_norm one_pass", "welford")
    return launch(one_pass_rows, x, weight, bias, epsilon, block, row_warps(block))


# ---- what it does --------------------------------------------------------------------------------------------------


def reference(x: Any, weight: Any, bias: Any, *, epsilon: float = EPSILON) -> Any:
    wide = x.double()
    away = wide - wide.mean(1, keepdim=True)
    return away / (away.square().mean(1, keepdim=True) + epsilon).sqrt() * weight.double() + bias.double()


def count(*, rows: int, columns: int, dtype: DType) -> Count:
    """
    >>> count(rows=10, columns=100, dtype="fp32").flops, count(rows=10, columns=100, dtype="fp32").n_bytes
    (7000, 8800)
    """
    n, size = rows * columns, ELEMENT_BYTES[dtype]
    formula = "7 rows columns FLOP, 2 rows columns + 2 columns elements"
    return Count(7 * n, (n + 2 * columns) * size, n * size, formula)


# ---- for compiling without a GPU -----------------------------------------------------------------------------------


def _build(kernel: Any, dtype: DType, block: int = CHUNK, num_warps: int = CHUNK_WARPS) -> Sequence[Build]:
    tensors, sizes = ("x", "weight", "bias", "y"), ("columns", "stride")
    return [
        Build(
            kernel,
            signature={**dict.fromkeys(tensors, pointer(dtype)), **dict.fromkeys(sizes, "i32"), "epsilon": "fp32"},
            constants={"BLOCK": block},
            num_warps=num_warps,
            programs=SHAPE["rows"],
            divisible_by_16=(*tensors, *sizes),
        )
    ]


OPERATOR = Operator(
    name="layer_norm",
    title="LayerNorm over rows",
    variants=[
        Variant(
            "sum_of_squares",
            "mean(x²) - mean(x)² in one pass: it loses the variance where the mean is large.",
            sum_of_squares,
            lambda dtype: _build(sum_of_squares_rows, dtype),
        ),
        Variant(
            "three_pass",
            "The mean first, then differences to it: right, for one more read of the row.",
            three_pass,
            lambda dtype: _build(three_pass_rows, dtype),
        ),
        Variant(
            "welford",
            "Mean and squared differences in one pass, as states that merge: right, and a read less; any length.",
            welford,
            lambda dtype: _build(welford_rows, dtype),
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
