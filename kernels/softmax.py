"""Softmax of the rows of a matrix: exp(x - max) / sum of that, and what it takes to read a row only once.

Count. Per element a subtraction, an exponential, an addition and a division, and a comparison for the maximum: counted
as 5 FLOPs. One element is read and one is written: 5/8 FLOP per byte in FP32, bound by memory.

Why the maximum. exp(89) is beyond FP32: rows are shifted by their largest element, which changes nothing in the result
and keeps every exponential in (0, 1].

Online. A maximum m and a sum l over a part of the row can be carried on: with a new maximum m' the old sum counts
exp(m - m') times. Two parts merge in any order, (m₁, l₁) and (m₂, l₂) to m = max(m₁, m₂) and
l = l₁·exp(m₁ - m) + l₂·exp(m₂ - m) (Milakov and Gimelshein 2018, arXiv:1805.02867). FlashAttention carries the output
along in the same way.

The ladder, by times that a row goes over the bus:
  three_pass  maximum, sum, result: read three times, written once.
  online      maximum and sum in one pass, then the result: read twice, written once.
  one_pass    The row stays in the registers of one program: read once, written once. It must fit there (LONGEST).

A row whose elements are all -inf has no softmax: NaN, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer

SHAPE = {"rows": 65536, "columns": 4096}
BLOCK = 1024
LONGEST = 32768
"""Elements of a row that fit into the registers of one program: 64 for each thread of 16 warps."""


@triton.jit
def softmax_three_pass(x, y, stride_x, stride_y, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row * stride_x + at, mask=at < n_columns, other=float("-inf")).to(tl.float32)
        largest = tl.maximum(largest, part, propagate_nan=tl.PropagateNan.ALL)
    shift = tl.reduce(largest, 0, larger)
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row * stride_x + at, mask=at < n_columns, other=float("-inf")).to(tl.float32)
        sums += tl.where(at < n_columns, tl.exp(part - shift), 0.0)
    total = tl.sum(sums, 0)
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row * stride_x + at, mask=at < n_columns, other=0.0).to(tl.float32)
        result = tl.exp(part - shift) / total
        tl.store(y + row * stride_y + at, result.to(y.dtype.element_ty), mask=at < n_columns)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def merged(m1, l1, m2, l2):
    """Two states of the same row as one. An empty part is (-inf, 0); two of them stay one, and do not become NaN."""
    m = larger(m1, m2)
    shift = tl.where(m == float("-inf"), 0.0, m)
    return m, l1 * tl.exp(m1 - shift) + l2 * tl.exp(m2 - shift)


@triton.jit
def softmax_online(x, y, stride_x, stride_y, n_columns, BLOCK: tl.constexpr):
    """Each lane carries a state of its own; they are merged at the end of the first pass."""
    row = tl.program_id(0).to(tl.int64)
    m = tl.full([BLOCK], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK], tl.float32)  # noqa: E741 - as the paper names it
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row * stride_x + at, mask=at < n_columns, other=float("-inf")).to(tl.float32)
        m, l = merged(m, l, part, tl.where(at < n_columns, 1.0, 0.0))  # noqa: E741
    shift, total = tl.reduce((m, l), 0, merged)
    for first in range(0, n_columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        part = tl.load(x + row * stride_x + at, mask=at < n_columns, other=0.0).to(tl.float32)
        result = tl.exp(part - shift) / total
        tl.store(y + row * stride_y + at, result.to(y.dtype.element_ty), mask=at < n_columns)


@triton.jit
def softmax_one_pass(x, y, stride_x, stride_y, n_columns, BLOCK: tl.constexpr):
    """BLOCK is a power of two that holds the whole row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    whole = tl.load(x + row * stride_x + at, mask=at < n_columns, other=float("-inf")).to(tl.float32)
    shifted = tl.exp(whole - tl.reduce(whole, 0, larger))
    result = shifted / tl.sum(tl.where(at < n_columns, shifted, 0.0), 0)
    tl.store(y + row * stride_y + at, result.to(y.dtype.element_ty), mask=at < n_columns)


def three_pass(x: Any) -> Any:
    """[rows, columns] → the same, of the type of `x`; columns lie side by side."""
    return _launch(softmax_three_pass, x, BLOCK, num_warps=4)


def online(x: Any) -> Any:
    """As `three_pass`."""
    return _launch(softmax_online, x, BLOCK, num_warps=4)


def one_pass(x: Any) -> Any:
    """As `three_pass`. Raises UsageError for rows that no program can hold."""
    if x.shape[1] > LONGEST:
        raise UsageError(f"Rows of {x.shape[1]} elements do not fit into registers (at most {LONGEST}). Take `online`.")
    block = triton.next_power_of_2(max(x.shape[1], 1))
    return _launch(softmax_one_pass, x, block, num_warps=warps_for(block))


def warps_for(block: int) -> int:
    """So that a thread holds some dozen elements: 4 to 16 warps.

    >>> warps_for(256), warps_for(4096), warps_for(32768)
    (4, 8, 16)
    """
    return min(max(block // 512, 4), 16)


def _launch(kernel: Any, x: Any, block: int, num_warps: int) -> Any:
    x = x if x.stride(-1) == 1 else x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        kernel[(x.shape[0],)](x, y, x.stride(0), y.stride(0), x.shape[1], BLOCK=block, num_warps=num_warps)
    return y


def reference(x: Any) -> Any:
    return torch.softmax(x.double(), dim=-1)


def count(*, rows: int, columns: int, dtype: DType) -> Count:
    """
    >>> count(rows=2, columns=8, dtype="fp16").flops, count(rows=2, columns=8, dtype="fp16").n_bytes
    (80, 64)
    """
    n_bytes = rows * columns * ELEMENT_BYTES[dtype]
    return Count(5 * rows * columns, n_bytes, n_bytes, "5 rows columns FLOP, 2 rows columns elements")


def _builds(kernel: Any, block: int, num_warps: int) -> Callable[[DType], Sequence[Build]]:
    whole = ("stride_x", "stride_y", "n_columns")
    return lambda dtype: [
        Build(
            kernel,
            signature={**dict.fromkeys("xy", pointer(dtype)), **dict.fromkeys(whole, "i32")},
            constants={"BLOCK": block},
            num_warps=num_warps,
            programs=SHAPE["rows"],
            divisible_by_16=(*"xy", *whole),
        )
    ]


OPERATOR = Operator(
    name="softmax",
    title="Softmax of rows",
    variants=[
        Variant(
            "three_pass",
            "Maximum, sum and result in a pass each: a row is read three times.",
            three_pass,
            _builds(softmax_three_pass, BLOCK, 4),
        ),
        Variant(
            "online",
            "Maximum and sum in one pass, by rescaling: a row is read twice, however long it is.",
            online,
            _builds(softmax_online, BLOCK, 4),
        ),
        Variant(
            "one_pass",
            "The row stays in registers: it is read once, and may not be longer than they hold.",
            one_pass,
            _builds(softmax_one_pass, SHAPE["columns"], warps_for(SHAPE["columns"])),
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
