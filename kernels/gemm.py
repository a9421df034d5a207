"""Matrix product, C = A·B with A [M, K], B [K, N]: the operator that everything else is measured by.

Count. Each of the M·N results sums K products: 2·M·N·K FLOPs. The least that must move is A and B once in, C once out:
(M·K + K·N + M·N) elements. For squares of size n that is 2n³ FLOPs over 3n² elements, n/3 FLOP per byte in 16-bit
types: above any ridge point from n ≈ 1,000 on. A product *can* be bound by compute; the ladder shows what it takes.

Reuse. A program that makes a tile of BLOCK_M x BLOCK_N results reads (BLOCK_M + BLOCK_N)·K elements
for 2·BLOCK_M·BLOCK_N·K FLOPs: its intensity is 2·BLOCK_M·BLOCK_N / (BLOCK_M + BLOCK_N) FLOP per element, so that larger
tiles ask less of the caches, until registers and shared memory are full.

The ladder.
  naive      A strip of one row per program: each element of B is fetched M times over, nothing is reused.
  tiled      Square tiles through `tl.dot`, which puts them into shared memory and onto the tensor cores.
  grouped    The same tiles in another order: programs that run at the same time share rows of A *and* columns of B,
             so that L2 serves what DRAM did (`tile_of`, `l2_tiles`).
  pipelined  Larger tiles, and the next ones are fetched while this one is multiplied (num_stages).
  split_k    Few results of long sums leave SMs without work: several programs share a sum, each writes a partial one in
             FP32, a second kernel adds them in a fixed order. (Atomic additions would save the second kernel and make
             the result depend on who comes first.) It costs SPLITS·M·N extra FP32 elements, written and read.

The last wave counts: a grid of 133 tiles on 132 SMs takes as long as one of 264.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.operator import ELEMENT_BYTES, Build, Count, DType, Operator, Variant, pointer

SHAPE = {"m": 8192, "n": 8192, "k": 8192}
STRIP = 128
SPLITS = 4
REDUCED = 1024


@dataclass(frozen=True)
class Tiling:
    """One configuration. Shared memory of a block: (block_m + block_n) x block_k elements for each stage."""

    block_m: int
    block_n: int
    block_k: int
    group_m: int = 1
    num_warps: int = 4
    num_stages: int = 1


SMALL = Tiling(64, 64, 32)
_PIPELINED = {
    "fp16": Tiling(128, 128, 64, group_m=8, num_warps=8, num_stages=3),
    "bf16": Tiling(128, 128, 64, group_m=8, num_warps=8, num_stages=3),
    "tf32": Tiling(128, 128, 32, group_m=8, num_warps=8, num_stages=3),
    "fp32": Tiling(64, 64, 16, group_m=8, num_warps=4, num_stages=3),
}
"""The largest that fit into the 99 KiB of shared memory that a block of 12.0 can have; 9.0 and 10.0 would take more
stages. FP32 runs on the plain pipelines, where registers are what bounds a tile."""


# ---- kernels -------------------------------------------------------------------------------------------------------


@triton.jit
def strip_product(
    a, b, c, n_columns, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, STRIP: tl.constexpr
):  # fmt: skip
    """A program makes STRIP results of one row, one product at a time."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1).to(tl.int64) * STRIP + tl.arange(0, STRIP)
    is_inside = column < n_columns
    total = tl.zeros([STRIP], tl.float32)
    for at in range(k):
        left = tl.load(a + row * stride_am + at * stride_ak).to(tl.float32)
        right = tl.load(b + at * stride_bk + column * stride_bn, mask=is_inside, other=0.0).to(tl.float32)
        total += left * right
    tl.store(c + row * stride_cm + column * stride_cn, total.to(c.dtype.element_ty), mask=is_inside)


@triton.jit
def tile_of(program, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of a program's tile: GROUP_M rows of tiles are walked column by column, then the next ones."""
    in_group = GROUP_M * tiles_n
    first_m = program // in_group * GROUP_M
    height = tl.minimum(tiles_m - first_m, GROUP_M)
    return first_m + program % in_group % height, program % in_group // height


@triton.jit
def tile_product(
    a, b, c, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cs, stride_cm, stride_cn, k_per_split,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A program makes one tile, of the sum over its slice of K: the whole of it where there is one slice.

    Rows and columns beyond the end are taken from the beginning (modulo) instead of being masked: what comes of them is
    not stored, and loads stay wide.
    """
    tile_m, tile_n = tile_of(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    split = tl.program_id(1).to(tl.int64)
    row = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = split * k_per_split + tl.arange(0, BLOCK_K)
    left = a + (row % m)[:, None] * stride_am + depth[None, :] * stride_ak
    right = b + depth[:, None] * stride_bk + (column % n)[None, :] * stride_bn
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    end = tl.minimum(k, (split + 1) * k_per_split)
    for at in range(split * k_per_split, end, BLOCK_K):
        is_left = tl.arange(0, BLOCK_K) < end - at
        total = tl.dot(
            tl.load(left, mask=is_left[None, :], other=0.0),
            tl.load(right, mask=is_left[:, None], other=0.0),
            total,
            input_precision=PRECISION,
        )
        left += BLOCK_K * stride_ak
        right += BLOCK_K * stride_bk
    into = c + split * stride_cs + row[:, None] * stride_cm + column[None, :] * stride_cn
    tl.store(into, total.to(c.dtype.element_ty), mask=(row < m)[:, None] & (column < n)[None, :])


@triton.jit
def add_partials(partials, c, n_elements, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """Sums [SPLITS, n_elements] over the splits, always in the same order."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_inside = at < n_elements
    total = tl.zeros([BLOCK], tl.float32)
    for split in tl.static_range(SPLITS):
        total += tl.load(partials + split * n_elements + at, mask=is_inside, other=0.0)
    tl.store(c + at, total.to(c.dtype.element_ty), mask=is_inside)


# ---- launchers -----------------------------------------------------------------------------------------------------


def naive(a: Any, b: Any) -> Any:
    """[m, k] x [k, n] → [m, n], of the type of `a`. Raises UsageError where they do not fit."""
    m, n, k = _sizes(a, b)
    c = a.new_empty(m, n)
    strip_product[m, triton.cdiv(n, STRIP)](
        a, b, c, n, k, *a.stride(), *b.stride(), *c.stride(), STRIP=STRIP, num_warps=4
    )
    return c


def product(a: Any, b: Any, tiling: Tiling, *, splits: int = 1, tf32: bool = False) -> Any:
    """As `naive`, by tiles. Sums over K are cut into `splits` parts, which a second kernel adds."""
    m, n, k = _sizes(a, b)
    c = a.new_empty(m, n)
    into = c[None] if splits == 1 else torch.empty(splits, m, n, dtype=torch.float32, device=a.device)
    depths = triton.cdiv(triton.cdiv(k, tiling.block_k), splits)
    tile_product[triton.cdiv(m, tiling.block_m) * triton.cdiv(n, tiling.block_n), splits](
        a, b, into, m, n, k, *a.stride(), *b.stride(), *into.stride(), depths * tiling.block_k,
        BLOCK_M=tiling.block_m, BLOCK_N=tiling.block_n, BLOCK_K=tiling.block_k, GROUP_M=tiling.group_m,
        PRECISION="tf32" if tf32 else "ieee", num_warps=tiling.num_warps, num_stages=tiling.num_stages,
    )  # fmt: skip
    if splits > 1:
        add_partials[(triton.cdiv(m * n, REDUCED),)](into, c, m * n, SPLITS=splits, BLOCK=REDUCED)
    return c


def tiled(a: Any, b: Any, *, tf32: bool = False) -> Any:
    return product(a, b, SMALL, tf32=tf32)


def grouped(a: Any, b: Any, *, tf32: bool = False) -> Any:
    return product(a, b, replace(SMALL, group_m=8), tf32=tf32)


def pipelined(a: Any, b: Any, *, tf32: bool = False) -> Any:
    return product(a, b, _pipelined_for(a, tf32), tf32=tf32)


def split_k(a: Any, b: Any, *, splits: int = SPLITS, tf32: bool = False) -> Any:
    return product(a, b, _pipelined_for(a, tf32), splits=splits, tf32=tf32)


def _pipelined_for(a: Any, tf32: bool) -> Tiling:
    names = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "tf32" if tf32 else "fp32"}
    return _PIPELINED[names[a.dtype]]


def _sizes(a: Any, b: Any) -> tuple[int, int, int]:
    """M, N and K. Raises UsageError."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        shown = f"{tuple(a.shape)} {a.dtype} and {tuple(b.shape)} {b.dtype}"
        raise UsageError(f"{shown} cannot be multiplied. Give [M, K] and [K, N] of one type.")
    if 0 in (*a.shape, *b.shape):
        raise UsageError("A product of empty matrices is not worth a kernel. Give M, N and K of at least 1.")
    return a.shape[0], b.shape[1], a.shape[1]


# ---- what it does --------------------------------------------------------------------------------------------------


def reference(a: Any, b: Any, **_: Any) -> Any:
    return a.double() @ b.double()


def count(*, m: int, n: int, k: int, dtype: DType) -> Count:
    """
    >>> count(m=128, n=32, k=64, dtype="fp16").flops, count(m=128, n=32, k=64, dtype="fp16").n_bytes
    (524288, 28672)
    """
    size = ELEMENT_BYTES[dtype]
    return Count(2 * m * n * k, (m * k + k * n) * size, m * n * size, "2 M N K FLOP, (M K + K N + M N) elements")


def l2_tiles(tiles_m: int, tiles_n: int, group_m: int, at_once: int) -> int:
    """Strips of A and of B that the first `at_once` programs need together: what they ask DRAM for, if L2 keeps it.

    A strip is block_m rows of A, or block_n columns of B. Each costs K times its width, whoever shares it.

    >>> l2_tiles(64, 64, group_m=1, at_once=128), l2_tiles(64, 64, group_m=8, at_once=128)
    (66, 24)
    """
    tiles = [_tile(program, tiles_m, tiles_n, group_m) for program in range(min(at_once, tiles_m * tiles_n))]
    return len({row for row, _ in tiles}) + len({column for _, column in tiles})


def _tile(program: int, tiles_m: int, tiles_n: int, group_m: int) -> tuple[int, int]:
    """`tile_of`, on numbers."""
    first_m = program // (group_m * tiles_n) * group_m
    height = min(tiles_m - first_m, group_m)
    within = program % (group_m * tiles_n)
    return first_m + within % height, within // height


# ---- for compiling without a GPU -----------------------------------------------------------------------------------

_STRIDES = ("stride_am", "stride_bk", "stride_cm")
_ONE = {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
"""Row-major matrices; the launcher makes a constant of each stride that is 1."""


def _naive_builds(dtype: DType) -> Sequence[Build]:
    whole = ("n_columns", "k", *_STRIDES)
    return [
        Build(
            strip_product,
            signature={**dict.fromkeys("abc", pointer(dtype)), **dict.fromkeys(whole, "i32")},
            constants={**_ONE, "STRIP": STRIP},
            programs=SHAPE["m"] * triton.cdiv(SHAPE["n"], STRIP),
            divisible_by_16=(*"abc", *whole),
        )
    ]


def _tile_build(dtype: DType, tiling: Tiling, splits: int = 1) -> Build:
    whole = ("m", "n", "k", *_STRIDES, "stride_cs", "k_per_split")
    into = pointer("fp32") if splits > 1 else pointer(dtype)
    return Build(
        tile_product,
        signature={"a": pointer(dtype), "b": pointer(dtype), "c": into, **dict.fromkeys(whole, "i32")},
        constants={
            **_ONE,
            "BLOCK_M": tiling.block_m,
            "BLOCK_N": tiling.block_n,
            "BLOCK_K": tiling.block_k,
            "GROUP_M": tiling.group_m,
            "PRECISION": "tf32" if dtype == "tf32" else "ieee",
        },
        num_warps=tiling.num_warps,
        num_stages=tiling.num_stages,
        programs=triton.cdiv(SHAPE["m"], tiling.block_m) * triton.cdiv(SHAPE["n"], tiling.block_n) * splits,
        divisible_by_16=(*"abc", *whole),
    )


def _split_k_builds(dtype: DType) -> Sequence[Build]:
    n_elements = SHAPE["m"] * SHAPE["n"]
    return [
        _tile_build(dtype, _PIPELINED[dtype], SPLITS),
        Build(
            add_partials,
            signature={"partials": pointer("fp32"), "c": pointer(dtype), "n_elements": "i32"},
            constants={"SPLITS": SPLITS, "BLOCK": REDUCED},
            programs=triton.cdiv(n_elements, REDUCED),
            divisible_by_16=("partials", "c", "n_elements"),
        ),
    ]


_TYPES: Sequence[DType] = ("fp32", "tf32", "fp16", "bf16")

OPERATOR = Operator(
    name="gemm",
    title="Matrix product",
    variants=[
        Variant("naive", "A strip of one row per program: nothing that is read serves twice.", naive, _naive_builds),
        Variant(
            "tiled",
            "Tiles of 64 x 64 through shared memory: each element read serves 64 results.",
            tiled,
            lambda dtype: [_tile_build(dtype, SMALL)],
            dtypes=_TYPES,
        ),
        Variant(
            "grouped",
            "The same tiles, ordered so that those at work together share rows and columns in L2.",
            grouped,
            lambda dtype: [_tile_build(dtype, replace(SMALL, group_m=8))],
            dtypes=_TYPES,
        ),
        Variant(
            "pipelined",
            "Larger tiles, and the next ones on their way while this one is multiplied; costs shared memory.",
            pipelined,
            lambda dtype: [_tile_build(dtype, _PIPELINED[dtype])],
            is_good=True,
            dtypes=_TYPES,
        ),
        Variant(
            "split_k",
            "Several programs share a long sum, for shapes with fewer tiles than SMs; costs a second kernel.",
            split_k,
            _split_k_builds,
            dtypes=_TYPES,
        ),
    ],
    reference=reference,
    count=count,
    default_shape=SHAPE,
)
