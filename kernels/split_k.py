"""Split-K: several programs share the long sum of one tile, for results with fewer tiles than the GPU has SMs.

One program per tile leaves SMs without work where M·N is small and K is large. 512 x 512 results in tiles of 128 x 256
are 8 tiles: on 132 SMs, 6 % of the device works, however long K is. With S splits there are 8·S programs.

Two stages. Each program sums its slice of K and writes the partial result in FP32 into a workspace [S, M, N]; a second
kernel adds the S partial results of each element. That costs 4·S·M·N bytes written and as many read, and a launch. For
K = 65,536 in BF16 and S = 16 that is 34 MB, beside inputs of 134 MB, and an L2 of 50 MB may keep it all; 16 times as
many SMs work. Where there are as many tiles as SMs, splitting only adds traffic.

Programs could instead add to one FP32 result by atomics, with no workspace and no second kernel. FP32 addition is not
associative, and who comes first differs from run to run: so would the result. Here the order is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.gemm_tile import LARGE, product_of, sum_of_products
from diag.kernels.operator import Build, DType, pointer
from diag.kernels.tile_order import tile_of

BLOCK = 1024
"""Elements of the result that a program of the second stage adds up."""


@triton.jit
def partial_product(
    a: tl.tensor, b: tl.tensor, workspace: tl.tensor,
    m: tl.tensor, n: tl.tensor, k: tl.tensor, slice_k: tl.tensor,
    stride_am: tl.tensor, stride_ak: tl.tensor, stride_bk: tl.tensor, stride_bn: tl.tensor,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, PRECISION: tl.constexpr,
) -> None:  # fmt: skip
    """One tile of the result, over one of the slices of K, each `slice_k` long but for the last."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    split = tl.program_id(1)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    first = split * slice_k
    end = tl.minimum(first + slice_k, k)
    total = sum_of_products(
        a, b, rows % m, columns % n, first, end, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_K, PRECISION
    )
    row_of_workspace = split.to(tl.int64) * m + rows
    at = workspace + row_of_workspace[:, None] * n + columns[None, :]
    tl.store(at, total, mask=(rows < m)[:, None] & (columns < n)[None, :])


@triton.jit
def add_partials(
    workspace: tl.tensor, c: tl.tensor, n_elements: tl.tensor, splits: tl.tensor, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """[splits, n_elements] → [n_elements], in the order of the splits."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_inside = at < n_elements
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(splits):
        total += tl.load(workspace + at, mask=is_inside, other=0.0)
        workspace += n_elements
    tl.store(c + at, total.to(c.dtype.element_ty), mask=is_inside)


def run(a: Any, b: Any, *, allow_tf32: bool = False, splits: int | None = None) -> Any:
    """[M, K] x [K, N] → [M, N]; at most `splits` slices of K, None: enough to fill the device. Raises UsageError."""
    of = product_of(a, b, allow_tf32)
    if splits is not None and splits < 1:
        raise UsageError(f"K cannot be cut into {splits} slices. Give 1 or more.")
    tiling = LARGE[of.dtype]
    tiles = tiling.tiles(of.m, of.n)
    slice_k = slice_length(of.k, tiling.block_k, splits or splits_to_fill(tiles, sm_count(a.device)))
    n_slices = triton.cdiv(of.k, slice_k)
    workspace = torch.empty(n_slices, of.m, of.n, dtype=torch.float32, device=a.device)
    partial_product[tiles, n_slices](
        a, b, workspace, of.m, of.n, of.k, slice_k, *a.stride(), *b.stride(),
        **tiling.constants(of.dtype), num_warps=tiling.num_warps, num_stages=tiling.num_stages,
    )  # fmt: skip
    c = a.new_empty(of.m, of.n)
    add_partials[(triton.cdiv(c.numel(), BLOCK),)](workspace, c, c.numel(), n_slices, BLOCK=BLOCK)
    return c


def slice_length(k: int, block_k: int, splits: int) -> int:
    """Of `splits` slices that cover K in whole steps of `block_k`; fewer slices may do, and none is empty.

    >>> slice_length(k=1000, block_k=64, splits=4), slice_length(k=100, block_k=64, splits=9)
    (256, 64)
    """
    steps = triton.cdiv(k, block_k)
    return int(triton.cdiv(steps, splits) * block_k)


def splits_to_fill(tiles: int, sm_count: int) -> int:
    """Programs per tile with which all SMs have one, or nearly; two where the tiles alone are enough: a split is asked.

    >>> splits_to_fill(tiles=8, sm_count=132), splits_to_fill(tiles=2048, sm_count=132)
    (16, 2)
    """
    return max(2, sm_count // tiles)


def sm_count(device: Any) -> int:
    """1 where Triton's interpreter runs one program at a time."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 1


def builds(dtype: DType, m: int, n: int) -> Sequence[Build]:
    """Both kernels, for row-major matrices."""
    tiling = LARGE[dtype]
    sized = ("m", "n", "k", "slice_k", "stride_am", "stride_bk")
    tiles = tiling.tiles(m, n)
    return [
        Build(
            partial_product,
            signature={**dict.fromkeys("ab", pointer(dtype)), "workspace": "*fp32", **dict.fromkeys(sized, "i32")},
            constants={"stride_ak": 1, "stride_bn": 1, **tiling.constants(dtype)},
            num_warps=tiling.num_warps,
            num_stages=tiling.num_stages,
            programs=tiles * splits_to_fill(tiles, sm_count=1),
            divisible_by_16=("a", "b", "workspace", *sized),
        ),
        Build(
            add_partials,
            signature={"workspace": "*fp32", "c": pointer(dtype), "n_elements": "i32", "splits": "i32"},
            constants={"BLOCK": BLOCK},
            programs=triton.cdiv(m * n, BLOCK),
            divisible_by_16=("workspace", "c", "n_elements"),
        ),
    ]
