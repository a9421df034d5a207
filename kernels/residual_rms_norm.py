"""The residual connection of a transformer and the norm behind it: h = x + r, y = RMSNorm(h).

Count. The addition and the norm, per element 5 FLOPs. Two elements are read and two are written. Bound by memory.

The ladder.
  apart  h = x + r by one kernel, the norm by another: h is written, and read again. Five elements move.
  fused  One kernel: the norm takes h from the registers of the addition. Four elements move, a fifth less time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diag.kernels import rms_norm, vector_add
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant
from diag.kernels.rms_norm import EPS, SHAPE, normed, one_pass_build


def apart(x: Any, residual: Any, weight: Any, eps: float = EPS) -> tuple[Any, Any]:
    """[rows, columns] twice, [columns] → the sum and its norm, [rows, columns] each.

    Raises UsageError for rows that no program can hold.
    """
    total = vector_add.vectorised(x.contiguous(), residual.contiguous())
    return total, rms_norm.one_pass(total, weight, eps)


def fused(x: Any, residual: Any, weight: Any, eps: float = EPS) -> tuple[Any, Any]:
    """As `apart`."""
    return normed(x, residual.contiguous(), weight, eps)


def reference(x: Any, residual: Any, weight: Any, eps: float = EPS) -> tuple[Any, Any]:
    """The norm is of the sum as it is stored: rounded to the type of `x`."""
    total = x.double() + residual.double()
    return total, rms_norm.reference(total.to(x.dtype), weight, eps)


def count(*, rows: int, columns: int, dtype: DType) -> Count:
    """
    >>> count(rows=2, columns=8, dtype="fp16").n_bytes
    144
    """
    size, n = ELEMENT_BYTES[dtype], rows * columns
    formula = "5 rows columns FLOP, 4 rows columns + columns elements"
    return Count(5 * n, (2 * n + columns) * size, 2 * n * size, formula)


def _apart_builds(dtype: DType) -> Sequence[Build]:
    return [
        *vector_add.OPERATOR.variant("vectorised").builds(dtype),
        one_pass_build(dtype, has_residual=False),
    ]


OPERATOR = Operator(
    name="residual_rms_norm",
    title="Residual addition and RMSNorm",
    variants=[
        Variant("apart", "The sum is written by one kernel, and read again by the next.", apart, _apart_builds),
        Variant(
            "fused",
            "One kernel: the norm takes the sum from registers.",
            fused,
            lambda dtype: [one_pass_build(dtype, has_residual=True)],
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
