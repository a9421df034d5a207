"""LayerNorm, y = (x - mean) / sqrt(variance + eps) · w + b for each row, and how to get the variance right.

Count. Per element: the mean (1), the variance (3: subtract, square, add), the result (4): 8 FLOPs. One element is read
and one is written: bound by memory.

The variance. mean(x²) - mean(x)² needs one pass, and loses the digits that the two have in common: of a row around
1,000 with a spread of 1, FP32 keeps one digit or none. Welford's update carries (n, mean, M2) instead, M2 being the
sum of squared distances from the mean so far; two such states merge in any order (Chan, Golub and LeVeque 1983,
doi:10.1080/00031305.1983.10483115):

    δ = mean_b - mean_a    mean = mean_a + δ·n_b/n    M2 = M2_a + M2_b + δ²·n_a·n_b/n

The ladder.
  sum_of_squares  One pass for both sums, one for the result. Fast, and wrong where the mean is large.
  welford         One pass with a state for each lane, merged at its end, one for the result. Right, for more FLOPs that
                  a kernel bound by memory does not notice.
  one_pass        The row stays in registers: its mean first, then distances from it. Right, and read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer
from diag.kernels.softmax import LONGEST, warps_for

SHAPE = {"rows": 65536, "columns": 4096}
BLOCK = 1024
EPS = 1e-5


@triton.jit
def store_normed(x, weight, bias, y, row, n_columns, mean, scale, BLOCK: tl.constexpr):
    """The second pass of those that have one."""
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row + at, mask=at < n_columns, other=0.0).to(tl.float32)
        weights = tl.load(weight + at, mask=at < n_columns, other=0.0).to(tl.float32)
        offsets = tl.load(bias + at, mask=at < n_columns, other=0.0).to(tl.float32)
        result = (part - mean) * scale * weights + offsets
        tl.store(y + row + at, result.to(y.dtype.element_ty), mask=at < n_columns)


@triton.jit
def layer_norm_sum_of_squares(x, weight, bias, y, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n_columns
    sums = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row + at, mask=at < n_columns, other=0.0).to(tl.float32)
        sums += part
        squares += part * part
    mean = tl.sum(sums, 0) / n_columns
    variance = tl.maximum(tl.sum(squares, 0) / n_columns - mean * mean, 0.0)
    store_normed(x, weight, bias, y, row, n_columns, mean, 1.0 / tl.sqrt(variance + eps), BLOCK)


@triton.jit
def merged(n_a, mean_a, m2_a, n_b, mean_b, m2_b):
    """Two states as one. Empty ones have n = 0, and change nothing."""
    n = n_a + n_b
    share = n_b / tl.maximum(n, 1.0)
    delta = mean_b - mean_a
    return n, mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share


@triton.jit
def layer_norm_welford(x, weight, bias, y, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n_columns
    n = tl.zeros([BLOCK], tl.float32)
    mean = tl.zeros([BLOCK], tl.float32)
    m2 = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row + at, mask=at < n_columns, other=0.0).to(tl.float32)
        n, mean, m2 = merged(n, mean, m2, tl.where(at < n_columns, 1.0, 0.0), part, tl.zeros([BLOCK], tl.float32))
    n, mean, m2 = tl.reduce((n, mean, m2), 0, merged)
    store_normed(x, weight, bias, y, row, n_columns, mean, 1.0 / tl.sqrt(m2 / n_columns + eps), BLOCK)


@triton.jit
def layer_norm_one_pass(x, weight, bias, y, n_columns, eps, BLOCK: tl.constexpr):
    """BLOCK is a power of two that holds the whole row."""
    row = tl.program_id(0).to(tl.int64) * n_columns
    at = tl.arange(0, BLOCK)
    is_inside = at < n_columns
    whole = tl.load(x + row + at, mask=is_inside, other=0.0).to(tl.float32)
    mean = tl.sum(whole, 0) / n_columns
    apart = tl.where(is_inside, whole - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(apart * apart, 0) / n_columns + eps)
    weights = tl.load(weight + at, mask=is_inside, other=0.0).to(tl.float32)
    offsets = tl.load(bias + at, mask=is_inside, other=0.0).to(tl.float32)
    tl.store(y + row + at, (apart * scale * weights + offsets).to(y.dtype.element_ty), mask=is_inside)


def sum_of_squares(x: Any, weight: Any, bias: Any, eps: float = EPS) -> Any:
    """[rows, columns], [columns], [columns] → [rows, columns]. Loses digits where the mean exceeds the spread."""
    return _launch(layer_norm_sum_of_squares, x, weight, bias, eps, BLOCK, num_warps=4)


def welford(x: Any, weight: Any, bias: Any, eps: float = EPS) -> Any:
    """[rows, columns], [columns], [columns] → [rows, columns]"""
    return _launch(layer_norm_welford, x, weight, bias, eps, BLOCK, num_warps=4)


def one_pass(x: Any, weight: Any, bias: Any, eps: float = EPS) -> Any:
    """As `welford`. Raises UsageError for rows that no program can hold."""
    if x.shape[1] > LONGEST:
        raise UsageError(
            f"Rows of {x.shape[1]} elements do not fit into registers (at most {LONGEST}). Take `welford`."
        )
    block = triton.next_power_of_2(max(x.shape[1], 1))
    return _launch(layer_norm_one_pass, x, weight, bias, eps, block, num_warps=warps_for(block))


def _launch(kernel: Any, x: Any, weight: Any, bias: Any, eps: float, block: int, num_warps: int) -> Any:
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        kernel[(x.shape[0],)](x, weight, bias, y, x.shape[1], eps, BLOCK=block, num_warps=num_warps)
    return y


def reference(x: Any, weight: Any, bias: Any, eps: float = EPS) -> Any:
    return torch.nn.functional.layer_norm(x.double(), x.shape[-1:], weight.double(), bias.double(), eps)


def count(*, rows: int, columns: int, dtype: DType) -> Count:
    """
    >>> count(rows=2, columns=8, dtype="fp32").flops, count(rows=2, columns=8, dtype="fp32").n_bytes
    (128, 192)
    """
    size, n = ELEMENT_BYTES[dtype], rows * columns
    formula = "8 rows columns FLOP, 2 rows columns + 2 columns elements"
    return Count(8 * n, (n + 2 * columns) * size, n * size, formula)


def _builds(kernel: Any, block: int, num_warps: int) -> Callable[[DType], Sequence[Build]]:
    tensors = ("x", "weight", "bias", "y")
    return lambda dtype: [
        Build(
            kernel,
            signature={**dict.fromkeys(tensors, pointer(dtype)), "n_columns": "i32", "eps": "fp32"},
            constants={"BLOCK": block},
            num_warps=num_warps,
            programs=SHAPE["rows"],
            divisible_by_16=(*tensors, "n_columns"),
        )
    ]


OPERATOR = Operator(
    name="layer_norm",
    title="LayerNorm of rows",
    variants=[
        Variant(
            "sum_of_squares",
            "Both sums in one pass; their difference loses what they have in common.",
            sum_of_squares,
            _builds(layer_norm_sum_of_squares, BLOCK, 4),
        ),
        Variant(
            "welford",
            "A state of count, mean and squared distances, merged at the end: as many digits as there are.",
            welford,
            _builds(layer_norm_welford, BLOCK, 4),
        ),
        Variant(
            "one_pass",
            "The row stays in registers, so that distances from the mean cost no second read.",
            one_pass,
            _builds(layer_norm_one_pass, SHAPE["columns"], warps_for(SHAPE["columns"])),
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
