"""GEMM, C = A·B of A [M, K] and B [K, N]: five ways to the same sums, each cheaper in what the one before ran out of.

Work
    Each of the M·N results sums K products: 2·M·N·K FLOPs. At least A and B must be read and C written once:
    M·K + K·N + M·N elements. Both are of the definition; no variant can do with less.

Intensity
    For squares of size n, 2·n³ FLOPs over 3·n² elements: n / 3 FLOP per byte in 16 bits, n / 6 in FP32. An H100 (SXM)
    does 989 TFLOP/s of BF16 and moves 3.35 TB/s: its ridge point is 295 FLOP/byte, so that squares from n ≈ 900 on are
    bound by compute. That is a promise of the definition; code keeps it only if it reuses what it reads. With K = 1, an
    outer product, every result is written for 2 FLOPs, and any code is bound by memory.

Reuse in a tile
    A program that makes a tile of block_m x block_n results reads (block_m + block_n)·K elements for
    2·block_m·block_n·K FLOPs: for 64 x 64 in 16 bits 32 FLOP per byte that L2 delivers, for 128 x 256 it is 85. The
    tile's sums stay in registers (on 10.0 in tensor memory), where 128 x 256 of them in FP32 take half of what an SM
    has; the strips of A and B pass through shared memory. Those two bound the tile.

Reuse between tiles
    Tiles in one row read the same strip of A, tiles in one column the same strip of B. What programs of one wave share
    comes from DRAM once: `tile_order` counts it. 128 programs with tiles of 128 x 128, of 8192 x 8192 results,
    need 66 strips in plain order and 24 in groups of 8 rows.

Pipelining
    A load from DRAM takes several hundred nanoseconds, one step along K a fraction of that. With `num_stages` buffers
    the loads of the next steps are under way while this one is multiplied (`cp.async`); the price is shared memory.

Waves
    Each SM holds one block of 128 x 256. 8192 x 8192 results are 2048 such tiles: on 132 SMs 15.5 waves, which take as
    long as 16. 133 tiles would take as long as 264 (`diag.model.occupancy.tail_loss`). With fewer tiles than SMs the
    rest has no work at all, and sums over a long K are worth splitting (`split_k`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import triton
import triton.language as tl

from diag.kernels import split_k
from diag.kernels.gemm_tile import LARGE, Product, Tiling, product_of, sum_of_products
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer
from diag.kernels.tile_order import tile_of

SHAPE = {"m": 8192, "n": 8192, "k": 8192}

STRIP = 128
"""Results of one program of the naive kernel: one for each of its threads."""

SMALL = Tiling(64, 64, 32)
GROUPED = replace(SMALL, group_m=8)


# ---- kernels -------------------------------------------------------------------------------------------------------


@triton.jit
def strip_product(
    a: tl.tensor, b: tl.tensor, c: tl.tensor, n: tl.tensor, k: tl.tensor,
    stride_am: tl.tensor, stride_ak: tl.tensor, stride_bk: tl.tensor, stride_bn: tl.tensor,
    stride_cm: tl.tensor, stride_cn: tl.tensor, STRIP: tl.constexpr,
) -> None:  # fmt: skip
    """Part of one row of C: a thread sums one result, one product after the other."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1).to(tl.int64) * STRIP + tl.arange(0, STRIP)
    is_inside = columns < n
    at_a = a + row * stride_am
    at_b = b + columns * stride_bn
    total = tl.zeros([STRIP], tl.float32)
    for _ in range(k):
        left = tl.load(at_a).to(tl.float32)
        right = tl.load(at_b, mask=is_inside, other=0.0).to(tl.float32)
        total += left * right
        at_a += stride_ak
        at_b += stride_bk
    tl.store(c + row * stride_cm + columns * stride_cn, total.to(c.dtype.element_ty), mask=is_inside)


@triton.jit
def tile_product(
    a: tl.tensor, b: tl.tensor, c: tl.tensor, m: tl.tensor, n: tl.tensor, k: tl.tensor,
    stride_am: tl.tensor, stride_ak: tl.tensor, stride_bk: tl.tensor, stride_bn: tl.tensor,
    stride_cm: tl.tensor, stride_cn: tl.tensor,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, PRECISION: tl.constexpr,
) -> None:  # fmt: skip
    """One tile of C. Rows and columns behind the edge are read from the beginning again (modulo) and not stored: loads
    along K then need no mask for them."""
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    total = sum_of_products(
        a, b, rows % m, columns % n, 0, k, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_K, PRECISION
    )
    at = c + rows.to(tl.int64)[:, None] * stride_cm + columns.to(tl.int64)[None, :] * stride_cn
    tl.store(at, total.to(c.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


# ---- variants ------------------------------------------------------------------------------------------------------


def naive(a: Any, b: Any) -> Any:
    """[M, K] x [K, N] → [M, N], of the inputs' type; A and B may have any strides. Raises UsageError."""
    of = product_of(a, b)
    c = a.new_empty(of.m, of.n)
    strip_product[of.m, triton.cdiv(of.n, STRIP)](
        a, b, c, of.n, of.k, *a.stride(), *b.stride(), *c.stride(), STRIP=STRIP, num_warps=STRIP // 32
    )
    return c


def tiled(a: Any, b: Any, *, allow_tf32: bool = False) -> Any:
    """As `naive`; `allow_tf32`: the tensor cores take FP32 inputs, rounded to TF32."""
    return _by_tiles(a, b, product_of(a, b, allow_tf32), SMALL)


def grouped(a: Any, b: Any, *, allow_tf32: bool = False) -> Any:
    """As `tiled`."""
    return _by_tiles(a, b, product_of(a, b, allow_tf32), GROUPED)


def pipelined(a: Any, b: Any, *, allow_tf32: bool = False) -> Any:
    """As `tiled`."""
    of = product_of(a, b, allow_tf32)
    return _by_tiles(a, b, of, LARGE[of.dtype])


def _by_tiles(a: Any, b: Any, of: Product, tiling: Tiling) -> Any:
    c = a.new_empty(of.m, of.n)
    tile_product[(tiling.tiles(of.m, of.n),)](
        a, b, c, of.m, of.n, of.k, *a.stride(), *b.stride(), *c.stride(),
        **tiling.constants(of.dtype), num_warps=tiling.num_warps, num_stages=tiling.num_stages,
    )  # fmt: skip
    return c


# ---- the same for a compiler without a GPU: row-major matrices of `SHAPE` --------------------------------------------

_STRIDES = ("stride_am", "stride_bk", "stride_cm")
_CONTIGUOUS = {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
"""The launcher compiles a stride of 1 into the kernel, so that loads can be wide."""


def _naive_builds(dtype: DType) -> Sequence[Build]:
    sized = ("n", "k", *_STRIDES)
    return [
        Build(
            strip_product,
            signature={**dict.fromkeys("abc", pointer(dtype)), **dict.fromkeys(sized, "i32")},
            constants={**_CONTIGUOUS, "STRIP": STRIP},
            num_warps=STRIP // 32,
            programs=SHAPE["m"] * triton.cdiv(SHAPE["n"], STRIP),
            divisible_by_16=(*"abc", *sized),
        )
    ]


def _tile_builds(dtype: DType, tiling: Tiling) -> Sequence[Build]:
    sized = ("m", "n", "k", *_STRIDES)
    return [
        Build(
            tile_product,
            signature={**dict.fromkeys("abc", pointer(dtype)), **dict.fromkeys(sized, "i32")},
            constants={**_CONTIGUOUS, **tiling.constants(dtype)},
            num_warps=tiling.num_warps,
            num_stages=tiling.num_stages,
            programs=tiling.tiles(SHAPE["m"], SHAPE["n"]),
            divisible_by_16=(*"abc", *sized),
        )
    ]


# ---- what it is ----------------------------------------------------------------------------------------------------


def reference(a: Any, b: Any, **_: Any) -> Any:
    """In FP64, whatever a variant is told of precision or splits."""
    return a.double() @ b.double()


def count(*, m: int, n: int, k: int, dtype: DType) -> Count:
    """
    >>> count(m=128, n=32, k=64, dtype="fp16").flops, count(m=128, n=32, k=64, dtype="fp16").n_bytes
    (524288, 28672)
    """
    size = ELEMENT_BYTES[dtype]
    return Count(
        flops=2 * m * n * k,
        read_bytes=(m * k + k * n) * size,
        written_bytes=m * n * size,
        formula=f"2 x M x N x K FLOPs; (M x K + K x N + M x N) x {size} bytes",
    )


_ALL: Sequence[DType] = ("fp32", "tf32", "fp16", "bf16")

OPERATOR = Operator(
    name="gemm",
    title="Matrix product",
    variants=[
        Variant(
            "naive",
            "One result per thread, which fetches a row of A and a column of B for itself.",
            naive,
            _naive_builds,
        ),
        Variant(
            "tiled",
            "64 x 64 results per program, on the tensor cores: what is read serves 64 of them; registers and shared "
            "memory are the price.",
            tiled,
            lambda dtype: _tile_builds(dtype, SMALL),
            dtypes=_ALL,
        ),
        Variant(
            "grouped",
            "The same tiles in another order, so that programs at work together share rows and columns: L2 serves what "
            "came from DRAM, at no price.",
            grouped,
            lambda dtype: _tile_builds(dtype, GROUPED),
            dtypes=_ALL,
        ),
        Variant(
            "pipelined",
            "Larger tiles, and loads under way for the next steps while this one is multiplied; shared memory for each "
            "step leaves room for one block per SM.",
            pipelined,
            lambda dtype: _tile_builds(dtype, LARGE[dtype]),
            is_good=True,
            dtypes=_ALL,
        ),
        Variant(
            "split_k",
            "Several programs share a long sum where there are fewer tiles than SMs; partial results take a workspace "
            "and a second kernel.",
            split_k.run,
            lambda dtype: split_k.builds(dtype, SHAPE["m"], SHAPE["n"]),
            dtypes=_ALL,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
