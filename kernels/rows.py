"""What the kernels that work on rows of a matrix share: which rows they take, and how large a block is.

A program takes one row. Short rows get few warps, so that each lane has several elements in flight. How long a row may
be to stay in registers, each operator says: a block of 16 warps can have 128 registers for each lane (an SM has
65,536), and what is held beside the row, such as weights, takes its share of them.
"""

from __future__ import annotations

from typing import Any

import triton

from diag.errors import UsageError

CHUNK = 2048
"""Elements that a program takes at once of a row that it walks along: 16 for each thread of four warps."""

CHUNK_WARPS = 4


def check_rows(x: Any, *columns_like: Any) -> tuple[int, int]:
    """Rows and columns of a matrix whose rows lie in one piece each; the others are vectors as long as a row.

    Raises UsageError for any other.
    """
    if x.ndim != 2 or (x.shape[1] > 1 and x.stride(1) != 1):
        shown = f"a tensor of shape {tuple(x.shape)} and strides {x.stride()}"
        raise UsageError(f"{shown} is no matrix of whole rows. Give [rows, columns], the columns contiguous.")
    for each in columns_like:
        if each.shape != x.shape[1:] or not each.is_contiguous():
            shown = f"a vector of shape {tuple(each.shape)}"
            raise UsageError(f"{shown} does not fit rows of {x.shape[1]}. Give a contiguous one of that length.")
    return x.shape[0], x.shape[1]


def row_block(columns: int, longest: int, variant: str, instead: str) -> int:
    """Lanes for a whole row, in registers. Raises UsageError for a row that is too long for them."""
    if columns > longest:
        raise UsageError(
            f"{variant} keeps a row in registers, {longest:,} elements at most, and this one has {columns:,}. "
            f"Use {instead}, which walks along rows of any length."
        )
    return max(32, int(triton.next_power_of_2(columns)))


def row_warps(block: int) -> int:
    """
    >>> [row_warps(block) for block in (256, 1024, 4096, 32_768)]
    [1, 2, 8, 16]
    """
    return min(max(block // 512, 1), 16)
