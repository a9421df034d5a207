"""Attention, forward: FlashAttention beside standard attention, which writes the score matrix.

What has to be done (`attention_definition`): 4·D FLOPs for each visible pair of a query and a key; Q, K and V read, O
and a log-sum-exp per query written. With q_len = kv_len = N and no mask, as many heads of keys as of queries and 2
bytes an element, that is 4·N²·D FLOPs over 8·N·D bytes: N/2 FLOP per byte, which is compute-bound from N of about a
thousand on. Standard attention (`attention_standard`) moves 12 bytes more for each pair and stays memory-bound.

FlashAttention (Dao et al. 2022, arXiv:2205.14135; in this loop order Dao 2023, arXiv:2307.08691) does the same FLOPs
and moves next to the minimum. A block owns a tile of queries and walks over tiles of keys and values:

    S = Q Kᵀ (a tile)  →  m, l, u of the softmax so far (`softmax_state`)  →  at the end O = u / l, lse = m + ln l

Nothing is approximated: the state of what was seen and the state of the next tile merge into the state of both. The
tile's weights are worked out with the new maximum at once, so that only what came before needs rescaling, and
both products run on tensor cores with sums in FP32.

The last key that a row sees says all about masks: min(kv_len, i + 1 + kv_len − q_len) − 1. Tiles of keys before
the first row's last key are seen whole and skip the comparison; tiles behind the last row's are never loaded, which
halves the work of a square causal mask. A NaN or infinity in a value reaches every query that sees it, and may reach
other queries of its tile, as zero times NaN is NaN.
"""

# ruff: noqa: E741 - m, l and u are the letters of the papers

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels import attention_standard
from diag.kernels.attention_definition import AttentionShape, count, reference, shape_of
from diag.kernels.operator import ELEMENT_BYTES, Build, DType, Operator, Variant
from diag.kernels.softmax_state import LN_2, LOG2_E, finite_shift, rescale, weighted_mean

SHAPE = AttentionShape(batch=2, q_heads=16, kv_heads=4, q_len=4096, kv_len=4096, head_dim=128)


@dataclass(frozen=True)
class Tiling:
    """Of one block: rows of a tile of queries and of a tile of keys, and Triton's options."""

    queries: int
    keys: int
    num_warps: int
    num_stages: int


def tiling_of(head_dim: int, element_bytes: int) -> Tiling:
    """Fits the 99 KiB of shared memory of a block on sm_120, and spills nowhere if the head size is a power of 2."""
    width = max(64, triton.next_power_of_2(head_dim))
    if element_bytes == 4:  # multiplied without tensor cores: all operands pass through registers
        return {64: Tiling(32, 32, 4, 2), 128: Tiling(32, 16, 4, 1), 256: Tiling(16, 16, 4, 1)}[width]
    return {64: Tiling(128, 64, 8, 3), 128: Tiling(128, 64, 8, 3), 256: Tiling(64, 32, 4, 2)}[width]


@triton.jit
def flash_forward(
    q, k, v, output, lse, q_len, kv_len, scale,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, IS_CAUSAL: tl.constexpr,
):  # fmt: skip
    """A program makes the outputs of a tile of queries of one head."""
    head = tl.program_id(1).to(tl.int64)
    tile = tl.program_id(0)
    shift = kv_len
    if IS_CAUSAL:
        tile = tl.num_programs(0) - 1 - tile  # the longest rows first, so that none starts when the others are done
        shift = kv_len - q_len
    rows = tile * QUERIES + tl.arange(0, QUERIES)
    last_key = tl.minimum(rows + shift, kv_len - 1)
    d = tl.arange(0, BLOCK_D)
    inside = (rows < q_len)[:, None] & (d < HEAD_DIM)[None, :]
    in_head = rows[:, None] * HEAD_DIM + d
    q_tile = tl.load(q + head * q_len * HEAD_DIM + in_head, mask=inside, other=0.0)
    k_head = k + head // GROUP * kv_len * HEAD_DIM
    v_head = v + head // GROUP * kv_len * HEAD_DIM

    m = tl.full([QUERIES], -float("inf"), tl.float32)
    l = tl.zeros([QUERIES], tl.float32)
    u = tl.zeros([QUERIES, BLOCK_D], tl.float32)
    seen_by_all = tl.maximum(tl.minimum(tile * QUERIES + shift + 1, kv_len), 0) // KEYS * KEYS
    seen_by_any = tl.minimum(tile * QUERIES + QUERIES + shift, kv_len)
    m, l, u = attend(
        m, l, u, q_tile, k_head, v_head, 0, seen_by_all, last_key, kv_len, scale * LOG2_E,
        HEAD_DIM, BLOCK_D, KEYS, IS_MASKED=False,
    )  # fmt: skip
    m, l, u = attend(
        m, l, u, q_tile, k_head, v_head, seen_by_all, seen_by_any, last_key, kv_len, scale * LOG2_E,
        HEAD_DIM, BLOCK_D, KEYS, IS_MASKED=True,
    )  # fmt: skip
    tl.store(output + head * q_len * HEAD_DIM + in_head, weighted_mean(l, u).to(output.dtype.element_ty), mask=inside)
    tl.store(lse + head * q_len + rows, (m + tl.log2(l)) * LN_2, mask=rows < q_len)


@triton.jit
def attend(
    m, l, u, q_tile, k_head, v_head, first_key, end_key, last_key, kv_len, scale_log2,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, KEYS: tl.constexpr, IS_MASKED: tl.constexpr,
):  # fmt: skip
    """The state (m, l, u) after the keys from `first_key` to before `end_key`, in tiles of KEYS."""
    d = tl.arange(0, BLOCK_D)
    for start in range(first_key, end_key, KEYS):
        keys = start + tl.arange(0, KEYS)
        inside = (d < HEAD_DIM)[None, :]
        if IS_MASKED:
            inside = inside & (keys < kv_len)[:, None]
        k_tile = tl.load(k_head + keys[:, None] * HEAD_DIM + d, mask=inside, other=0.0)
        s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale_log2
        if IS_MASKED:
            s = tl.where(keys[None, :] <= last_key[:, None], s, -float("inf"))
        m_next = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - finite_shift(m_next)[:, None])
        shrink = rescale(m, m_next)
        l = shrink * l + tl.sum(p, 1)
        v_tile = tl.load(v_head + keys[:, None] * HEAD_DIM + d, mask=inside, other=0.0)
        u = tl.dot(p.to(v_tile.dtype), v_tile, shrink[:, None] * u, input_precision="ieee")
        m = m_next
    return m, l, u


def flash(q: Any, k: Any, v: Any, *, causal: bool = False) -> tuple[Any, Any]:
    """(o, lse) of q [batch, q_heads, q_len, head_dim] and k, v [batch, kv_heads, kv_len, head_dim]."""
    shape = shape_of(q, k, v)
    output = torch.empty_like(q)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    tiling = tiling_of(shape.head_dim, q.element_size())
    flash_forward[(triton.cdiv(shape.q_len, tiling.queries), shape.batch * shape.q_heads)](
        q, k, v, output, lse, shape.q_len, shape.kv_len, shape.scale,
        **constants_of(shape, tiling, causal), num_warps=tiling.num_warps, num_stages=tiling.num_stages,
    )  # fmt: skip
    return output, lse


def constants_of(shape: AttentionShape, tiling: Tiling, causal: bool) -> dict[str, Any]:
    return {
        "GROUP": shape.group,
        "HEAD_DIM": shape.head_dim,
        "BLOCK_D": triton.next_power_of_2(shape.head_dim),
        "QUERIES": tiling.queries,
        "KEYS": tiling.keys,
        "IS_CAUSAL": causal,
    }


def flash_builds(dtype: DType, shape: AttentionShape = SHAPE, causal: bool = True) -> Sequence[Build]:
    tiling = tiling_of(shape.head_dim, ELEMENT_BYTES[dtype])
    tensors = dict.fromkeys(("q", "k", "v", "output"), f"*{dtype}")
    lengths = {"q_len": "i32", "kv_len": "i32"}
    return [
        Build(
            flash_forward,
            signature={**tensors, "lse": "*fp32", **lengths, "scale": "fp32"},
            constants=constants_of(shape, tiling, causal),
            num_warps=tiling.num_warps,
            num_stages=tiling.num_stages,
            programs=triton.cdiv(shape.q_len, tiling.queries) * shape.batch * shape.q_heads,
            divisible_by_16=(*tensors, "lse", *lengths),
        )
    ]


def standard_builds(dtype: DType) -> Sequence[Build]:
    return attention_standard.builds(dtype, SHAPE, causal=True)


OPERATOR = Operator(
    name="attention",
    title="Scaled dot-product attention",
    variants=[
        Variant(
            "standard",
            "Three kernels pass the score matrix through memory: 12 bytes more for each pair of a query and a key.",
            attention_standard.run,
            standard_builds,
        ),
        Variant(
            "flash",
            "One kernel walks over tiles of keys with an online softmax, so that scores never leave the chip.",
            flash,
            flash_builds,
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape={**asdict(SHAPE), "causal": 1},
)
