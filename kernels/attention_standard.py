"""Standard attention, three kernels that hand each other the score matrix through memory.

Beside Q, K, V and O, for each pair of a query and a key (visible or not) 4 bytes of score are written and read, and a
weight in the type of the inputs is written and read: 12 bytes a pair with FP16, against 4·D FLOPs. With D = 128 that is
43 FLOP per byte at most, however long the sequence; a GPU needs some hundreds to be bound by its tensor cores. And
the matrix has to fit: 32 heads of 16,384 × 16,384 scores are 34 GB. Causal masks save nothing here.

Scores stay in FP32, as FP16 overflows beyond 65,504.
"""

# ruff: noqa: E741 - m, l and u are the letters of the papers

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels.attention_definition import AttentionShape, shape_of
from diag.kernels.operator import Build, DType
from diag.kernels.softmax_state import LN_2, LOG2_E, finite_shift, rescale

TILE = {2: 64, 4: 32}  # queries, and keys, by bytes of an element: products in FP32 take more registers
NUM_WARPS = 8
COLUMNS = 1024  # of a row of scores, at a time


@triton.jit
def write_scores(
    q, k, scores, q_len, kv_len, scale,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, IS_CAUSAL: tl.constexpr,
):  # fmt: skip
    """A program makes a tile of S = QKᵀ · scale, in units of log 2, −inf where the mask hides it."""
    head = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(1) * QUERIES + tl.arange(0, QUERIES)
    keys = tl.program_id(0) * KEYS + tl.arange(0, KEYS)
    d = tl.arange(0, BLOCK_D)
    q_mask = (rows < q_len)[:, None] & (d < HEAD_DIM)[None, :]
    k_mask = (keys < kv_len)[:, None] & (d < HEAD_DIM)[None, :]
    q_tile = tl.load(q + head * q_len * HEAD_DIM + rows[:, None] * HEAD_DIM + d, mask=q_mask, other=0.0)
    k_tile = tl.load(k + head // GROUP * kv_len * HEAD_DIM + keys[:, None] * HEAD_DIM + d, mask=k_mask, other=0.0)
    s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale * LOG2_E
    if IS_CAUSAL:
        s = tl.where(keys[None, :] <= rows[:, None] + (kv_len - q_len), s, -float("inf"))
    to = scores + (head * q_len + rows[:, None]) * kv_len + keys[None, :]
    tl.store(to, s, mask=(rows < q_len)[:, None] & (keys < kv_len)[None, :])


@triton.jit
def softmax_rows(scores, weights, lse, kv_len, COLUMNS: tl.constexpr):
    """A program makes a row: its maximum and sum in a first pass, its weights in a second."""
    row = tl.program_id(0).to(tl.int64)
    m = tl.full([1], -float("inf"), tl.float32)
    l = tl.zeros([1], tl.float32)
    for start in range(0, kv_len, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        s = tl.load(scores + row * kv_len + columns, mask=columns < kv_len, other=-float("inf"))
        m_next = tl.maximum(m, tl.max(s, 0))
        l = rescale(m, m_next) * l + tl.sum(tl.exp2(s - finite_shift(m_next)), 0)
        m = m_next
    for start in range(0, kv_len, COLUMNS):
        columns = start + tl.arange(0, COLUMNS)
        s = tl.load(scores + row * kv_len + columns, mask=columns < kv_len, other=-float("inf"))
        p = tl.exp2(s - finite_shift(m)) / tl.where(l == 0.0, 1.0, l)
        tl.store(weights + row * kv_len + columns, p.to(weights.dtype.element_ty), mask=columns < kv_len)
    tl.store(lse + row + tl.arange(0, 1), (m + tl.log2(l)) * LN_2)


@triton.jit
def weigh_values(
    weights, v, output, q_len, kv_len,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """A program makes a tile of O = PV."""
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    d = tl.arange(0, BLOCK_D)
    total = tl.zeros([QUERIES, BLOCK_D], tl.float32)
    for start in range(0, kv_len, KEYS):
        keys = start + tl.arange(0, KEYS)
        p_mask = (rows < q_len)[:, None] & (keys < kv_len)[None, :]
        v_mask = (keys < kv_len)[:, None] & (d < HEAD_DIM)[None, :]
        p = tl.load(weights + (head * q_len + rows[:, None]) * kv_len + keys[None, :], mask=p_mask, other=0.0)
        v_tile = tl.load(v + head // GROUP * kv_len * HEAD_DIM + keys[:, None] * HEAD_DIM + d, mask=v_mask, other=0.0)
        total = tl.dot(p, v_tile, total, input_precision="ieee")
    to = output + head * q_len * HEAD_DIM + rows[:, None] * HEAD_DIM + d
    tl.store(to, total.to(output.dtype.element_ty), mask=(rows < q_len)[:, None] & (d < HEAD_DIM)[None, :])


def run(q: Any, k: Any, v: Any, *, causal: bool = False) -> tuple[Any, Any]:
    """(o, lse) of q [batch, q_heads, q_len, head_dim] and k, v [batch, kv_heads, kv_len, head_dim]."""
    shape = shape_of(q, k, v)
    heads = shape.batch * shape.q_heads
    scores = torch.empty(heads, shape.q_len, shape.kv_len, dtype=torch.float32, device=q.device)
    weights = torch.empty_like(scores, dtype=q.dtype)
    output = torch.empty_like(q)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    tiling = _constants(shape, q.element_size())
    query_tiles, key_tiles = _tiles(shape, q.element_size())
    write_scores[(key_tiles, query_tiles, heads)](
        q, k, scores, shape.q_len, shape.kv_len, shape.scale, **tiling, IS_CAUSAL=causal, num_warps=NUM_WARPS
    )
    softmax_rows[(heads * shape.q_len,)](scores, weights, lse, shape.kv_len, COLUMNS=COLUMNS)
    weigh_values[(query_tiles, heads)](weights, v, output, shape.q_len, shape.kv_len, **tiling, num_warps=NUM_WARPS)
    return output, lse


def builds(dtype: DType, shape: AttentionShape, causal: bool) -> Sequence[Build]:
    element, size = f"*{dtype}", 2 if dtype in ("fp16", "bf16") else 4
    heads = shape.batch * shape.q_heads
    query_tiles, key_tiles = _tiles(shape, size)
    tiling = _constants(shape, size)
    lengths = {"q_len": "i32", "kv_len": "i32"}
    return [
        Build(
            write_scores,
            signature={"q": element, "k": element, "scores": "*fp32", **lengths, "scale": "fp32"},
            constants={**tiling, "IS_CAUSAL": causal},
            num_warps=NUM_WARPS,
            programs=key_tiles * query_tiles * heads,
            divisible_by_16=("q", "k", "scores", *lengths),
        ),
        Build(
            softmax_rows,
            signature={"scores": "*fp32", "weights": element, "lse": "*fp32", "kv_len": "i32"},
            constants={"COLUMNS": COLUMNS},
            programs=heads * shape.q_len,
            divisible_by_16=("scores", "weights", "lse", "kv_len"),
        ),
        Build(
            weigh_values,
            signature={"weights": element, "v": element, "output": element, **lengths},
            constants=tiling,
            num_warps=NUM_WARPS,
            programs=query_tiles * heads,
            divisible_by_16=("weights", "v", "output", *lengths),
        ),
    ]


def _constants(shape: AttentionShape, element_bytes: int) -> dict[str, int]:
    return {
        "GROUP": shape.group,
        "HEAD_DIM": shape.head_dim,
        "BLOCK_D": triton.next_power_of_2(shape.head_dim),
        "QUERIES": TILE[element_bytes],
        "KEYS": TILE[element_bytes],
    }


def _tiles(shape: AttentionShape, element_bytes: int) -> tuple[int, int]:
    """Of queries, of keys."""
    return triton.cdiv(shape.q_len, TILE[element_bytes]), triton.cdiv(shape.kv_len, TILE[element_bytes])
