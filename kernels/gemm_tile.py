"""One tile of a matrix product: how large it is, and the loop over K that all tiled variants of GEMM share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.operator import DType


@dataclass(frozen=True)
class Tiling:
    """How the result is cut up, and who makes a piece.

    Shared memory of a block is (block_m + block_n) · block_k elements for each buffer. There are `num_stages` buffers
    where the tensor cores read shared memory themselves (9.0, 10.0), one fewer where registers hold what is multiplied
    now (8.x, 12.0).
    """

    block_m: int
    block_n: int
    block_k: int
    group_m: int = 1
    num_warps: int = 4
    num_stages: int = 1

    def constants(self, dtype: DType) -> Mapping[str, Any]:
        """What is fixed when a kernel is compiled."""
        return {
            "BLOCK_M": self.block_m,
            "BLOCK_N": self.block_n,
            "BLOCK_K": self.block_k,
            "GROUP_M": self.group_m,
            "PRECISION": "tf32" if dtype == "tf32" else "ieee",
        }

    def tiles(self, m: int, n: int) -> int:
        return -(-m // self.block_m) * -(-n // self.block_n)


LARGE: Mapping[DType, Tiling] = {
    "fp32": Tiling(128, 128, 16, group_m=8, num_warps=8, num_stages=3),
    "tf32": Tiling(128, 128, 32, group_m=8, num_warps=8, num_stages=3),
    "fp16": Tiling(128, 256, 64, group_m=8, num_warps=8, num_stages=3),
    "bf16": Tiling(128, 256, 64, group_m=8, num_warps=8, num_stages=3),
}
"""By what is multiplied. One choice serves every architecture: 144 KiB of shared memory at most on 9.0 and 10.0, of
227; 96 KiB on 8.0 and 12.0, of 163 and 99. The next larger tiles of FP32 and TF32 spill registers on some of them."""


# ---- in the kernel -------------------------------------------------------------------------------------------------


@triton.jit
def sum_of_products(
    a: tl.tensor, b: tl.tensor, rows: tl.tensor, columns: tl.tensor, first: tl.tensor, end: tl.tensor,
    stride_am: tl.tensor, stride_ak: tl.tensor, stride_bk: tl.tensor, stride_bn: tl.tensor,
    BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """[rows, columns] of A·B over `first` ≤ k < `end`, in FP32.

    Offsets have 64 bits: a matrix may hold more than 2³¹ elements. What lies behind `end` counts as zero on both sides,
    so that no infinity from there meets a zero.
    """
    depths = (first + tl.arange(0, BLOCK_K)).to(tl.int64)
    at_a = a + rows.to(tl.int64)[:, None] * stride_am + depths[None, :] * stride_ak
    at_b = b + depths[:, None] * stride_bk + columns.to(tl.int64)[None, :] * stride_bn
    total = tl.zeros([rows.shape[0], columns.shape[0]], tl.float32)
    for k in range(first, end, BLOCK_K):
        is_inside = tl.arange(0, BLOCK_K) < end - k
        left = tl.load(at_a, mask=is_inside[None, :], other=0.0)
        right = tl.load(at_b, mask=is_inside[:, None], other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
        at_a += BLOCK_K * stride_ak
        at_b += BLOCK_K * stride_bk
    return total


# ---- what is multiplied --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """A [m, k] times B [k, n]."""

    m: int
    n: int
    k: int
    dtype: DType


_DTYPES: Mapping[torch.dtype, DType] = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}


def product_of(a: Any, b: Any, allow_tf32: bool = False) -> Product:
    """Of two matrices of any strides. Raises UsageError where they have no product."""
    given = f"{_shown(a)} and {_shown(b)}"
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise UsageError(f"{given} have no matrix product. Give A as [M, K] and B as [K, N], with the same K.")
    if a.dtype != b.dtype or a.dtype not in _DTYPES:
        raise UsageError(f"{given} cannot be multiplied here. Give both in FP32, both in FP16 or both in BF16.")
    if a.device != b.device:
        raise UsageError(f"A is on {a.device} and B on {b.device}. Move one of them to the other's device.")
    if 0 in (*a.shape, *b.shape):
        raise UsageError(f"{given} hold nothing to multiply. Give M, N and K of at least 1.")
    dtype = _DTYPES[a.dtype]
    return Product(a.shape[0], b.shape[1], a.shape[1], "tf32" if allow_tf32 and dtype == "fp32" else dtype)


def _shown(tensor: Any) -> str:
    return f"{list(tensor.shape)} of {str(tensor.dtype).removeprefix('torch.')}"
