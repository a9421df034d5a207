"""Attention, backward: gradients of queries, keys and values, without a score matrix in memory.

With P the weights, dO the gradient of the output, ∘ the product of elements (Dao 2023, arXiv:2307.08691, section 3.1):

    dV = Pᵀ dO        dP = dO Vᵀ        dS = P ∘ (dP − δ)        dQ = scale · dS K        dK = scale · dSᵀ Q

δᵢ = Σⱼ p_ij dp_ij is what makes the weights of a row add up to 1. It equals dOᵢ·Oᵢ, D products a query, however many
keys there are: the first kernel works it out. Nor is P read: p_ij = exp(s_ij − lseᵢ) comes out in one step from the
log-sum-exp that the forward pass kept, at the price of S = QKᵀ once more. That makes five products of 2·D FLOPs for
each visible pair where the forward pass has two: 2.5 times its FLOPs.

dK and dV sum over queries, dQ sums over keys. One walk over all pairs would have to add one of them up in memory, by
atomics, in an order that changes from run to run. Here two kernels walk, one owning tiles of keys, one tiles of
queries. Each repeats S and dP, so that seven products run for five that count, and results are the same bits every
time. With GQA a tile of keys sums over the queries of all heads that share it.

The least to move is Q, K, V, O, dO and lse in, dQ, dK and dV out. A standard backward pass would read the weights, and
write and read dP and dS: five times 2 bytes a pair with FP16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
import triton
import triton.language as tl

from diag.errors import UsageError
from diag.kernels.attention import SHAPE, Tiling, constants_of, flash
from diag.kernels.attention_definition import AttentionShape, count_backward, reference, shape_of
from diag.kernels.operator import ELEMENT_BYTES, Build, DType, Operator, Variant
from diag.kernels.softmax_state import LOG2_E, finite_shift

LARGEST_HEAD_DIM = 128  # beyond it two sums of gradients do not fit into registers
DELTA_ROWS = 32


KEY_TILING = {2: Tiling(32, 64, 8, 2), 4: Tiling(16, 32, 4, 2)}
QUERY_TILING = {2: Tiling(128, 32, 8, 2), 4: Tiling(16, 32, 4, 2)}
"""Of `key_gradients` and `query_gradients`, by bytes of an element: within the 99 KiB of shared memory of sm_120."""


@triton.jit
def output_products(
    output, d_output, delta, n_rows, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """A program makes δ = dO·O of some queries, of all heads in a row."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, BLOCK_D)
    inside = (rows < n_rows)[:, None] & (d < HEAD_DIM)[None, :]
    o = tl.load(output + rows[:, None] * HEAD_DIM + d, mask=inside, other=0.0).to(tl.float32)
    do = tl.load(d_output + rows[:, None] * HEAD_DIM + d, mask=inside, other=0.0).to(tl.float32)
    tl.store(delta + rows, tl.sum(o * do, 1), mask=rows < n_rows)


@triton.jit
def key_gradients(
    q, k, v, d_output, lse, delta, dk, dv, q_len, kv_len, scale,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, IS_CAUSAL: tl.constexpr,
):  # fmt: skip
    """A program makes dK and dV of a tile of keys, over the queries of all heads that share them.

    All is transposed, [keys, queries], as sums over queries want it. Every tile compares its pairs with the mask:
    beside four products of D that is little.
    """
    kv_head = tl.program_id(1).to(tl.int64)
    first_key = tl.program_id(0) * KEYS
    keys = first_key + tl.arange(0, KEYS)
    d = tl.arange(0, BLOCK_D)
    inside = (keys < kv_len)[:, None] & (d < HEAD_DIM)[None, :]
    in_head = keys[:, None] * HEAD_DIM + d
    k_tile = tl.load(k + kv_head * kv_len * HEAD_DIM + in_head, mask=inside, other=0.0)
    v_tile = tl.load(v + kv_head * kv_len * HEAD_DIM + in_head, mask=inside, other=0.0)
    shift = kv_len
    if IS_CAUSAL:
        shift = kv_len - q_len
    first_query = tl.maximum(first_key - shift, 0) // QUERIES * QUERIES
    dk_tile = tl.zeros([KEYS, BLOCK_D], tl.float32)
    dv_tile = tl.zeros([KEYS, BLOCK_D], tl.float32)
    for member in range(GROUP):
        head = kv_head * GROUP + member
        q_head = q + head * q_len * HEAD_DIM
        do_head = d_output + head * q_len * HEAD_DIM
        for start in range(first_query, q_len, QUERIES):
            rows = start + tl.arange(0, QUERIES)
            is_row = rows < q_len
            row_inside = is_row[:, None] & (d < HEAD_DIM)[None, :]
            q_tile = tl.load(q_head + rows[:, None] * HEAD_DIM + d, mask=row_inside, other=0.0)
            do_tile = tl.load(do_head + rows[:, None] * HEAD_DIM + d, mask=row_inside, other=0.0)
            lse_log2 = finite_shift(tl.load(lse + head * q_len + rows, mask=is_row, other=0.0)) * LOG2_E
            delta_row = tl.load(delta + head * q_len + rows, mask=is_row, other=0.0)
            visible = (keys[:, None] <= rows[None, :] + shift) & is_row[None, :]
            s = tl.dot(k_tile, tl.trans(q_tile), input_precision="ieee") * (scale * LOG2_E)
            p = tl.where(visible, tl.exp2(s - lse_log2[None, :]), 0.0)
            dv_tile = tl.dot(p.to(do_tile.dtype), do_tile, dv_tile, input_precision="ieee")
            dp = tl.dot(v_tile, tl.trans(do_tile), input_precision="ieee")
            ds = p * (dp - delta_row[None, :])
            dk_tile = tl.dot(ds.to(q_tile.dtype), q_tile, dk_tile, input_precision="ieee")
    tl.store(dk + kv_head * kv_len * HEAD_DIM + in_head, (dk_tile * scale).to(dk.dtype.element_ty), mask=inside)
    tl.store(dv + kv_head * kv_len * HEAD_DIM + in_head, dv_tile.to(dv.dtype.element_ty), mask=inside)


@triton.jit
def query_gradients(
    q, k, v, d_output, lse, delta, dq, q_len, kv_len, scale,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, IS_CAUSAL: tl.constexpr,
):  # fmt: skip
    """A program makes dQ of a tile of queries, over all keys that they see."""
    head = tl.program_id(1).to(tl.int64)
    tile = tl.program_id(0)
    shift = kv_len
    if IS_CAUSAL:
        tile = tl.num_programs(0) - 1 - tile
        shift = kv_len - q_len
    rows = tile * QUERIES + tl.arange(0, QUERIES)
    is_row = rows < q_len
    last_key = tl.minimum(rows + shift, kv_len - 1)
    d = tl.arange(0, BLOCK_D)
    inside = is_row[:, None] & (d < HEAD_DIM)[None, :]
    in_head = rows[:, None] * HEAD_DIM + d
    q_tile = tl.load(q + head * q_len * HEAD_DIM + in_head, mask=inside, other=0.0)
    do_tile = tl.load(d_output + head * q_len * HEAD_DIM + in_head, mask=inside, other=0.0)
    lse_log2 = finite_shift(tl.load(lse + head * q_len + rows, mask=is_row, other=0.0)) * LOG2_E
    delta_row = tl.load(delta + head * q_len + rows, mask=is_row, other=0.0)
    k_head = k + head // GROUP * kv_len * HEAD_DIM
    v_head = v + head // GROUP * kv_len * HEAD_DIM
    dq_tile = tl.zeros([QUERIES, BLOCK_D], tl.float32)
    for start in range(0, tl.minimum(tile * QUERIES + QUERIES + shift, kv_len), KEYS):
        keys = start + tl.arange(0, KEYS)
        key_inside = (keys < kv_len)[:, None] & (d < HEAD_DIM)[None, :]
        k_tile = tl.load(k_head + keys[:, None] * HEAD_DIM + d, mask=key_inside, other=0.0)
        v_tile = tl.load(v_head + keys[:, None] * HEAD_DIM + d, mask=key_inside, other=0.0)
        visible = keys[None, :] <= last_key[:, None]
        s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * (scale * LOG2_E)
        p = tl.exp2(s - lse_log2[:, None])
        dp = tl.dot(do_tile, tl.trans(v_tile), input_precision="ieee")
        ds = tl.where(visible, p * (dp - delta_row[:, None]), 0.0)
        dq_tile = tl.dot(ds.to(k_tile.dtype), k_tile, dq_tile, input_precision="ieee")
    tl.store(dq + head * q_len * HEAD_DIM + in_head, (dq_tile * scale).to(dq.dtype.element_ty), mask=inside)


def flash_backward(
    q: Any, k: Any, v: Any, output: Any, lse: Any, d_output: Any, *, causal: bool = False
) -> tuple[Any, Any, Any]:
    """(dq, dk, dv) of what the forward pass took and gave, and of the gradient of its output, shaped like it."""
    shape = shape_of(q, k, v, largest_head_dim=LARGEST_HEAD_DIM)
    if d_output.shape != q.shape or d_output.dtype != q.dtype or not d_output.is_contiguous():
        raise UsageError(f"the gradient of the output is to be contiguous, of the shape {tuple(q.shape)} and {q.dtype}")
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    delta = torch.empty_like(lse)
    output_products[(triton.cdiv(lse.numel(), DELTA_ROWS),)](
        output, d_output, delta, lse.numel(), **_delta_constants(shape)
    )
    tiling = KEY_TILING[q.element_size()]
    key_gradients[(triton.cdiv(shape.kv_len, tiling.keys), shape.batch * shape.kv_heads)](
        q, k, v, d_output, lse, delta, dk, dv, shape.q_len, shape.kv_len, shape.scale,
        **constants_of(shape, tiling, causal), num_warps=tiling.num_warps, num_stages=tiling.num_stages,
    )  # fmt: skip
    tiling = QUERY_TILING[q.element_size()]
    query_gradients[(triton.cdiv(shape.q_len, tiling.queries), shape.batch * shape.q_heads)](
        q, k, v, d_output, lse, delta, dq, shape.q_len, shape.kv_len, shape.scale,
        **constants_of(shape, tiling, causal), num_warps=tiling.num_warps, num_stages=tiling.num_stages,
    )  # fmt: skip
    return dq, dk, dv


class FlashAttention(torch.autograd.Function):
    """Forward and backward as one function that PyTorch differentiates."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:
        output, lse = flash(q, k, v, causal=causal)
        ctx.save_for_backward(q, k, v, output, lse)
        ctx.causal = causal
        return output

    @staticmethod
    def backward(ctx: Any, d_output: Any) -> tuple[Any, Any, Any, None]:
        q, k, v, output, lse = ctx.saved_tensors
        return *flash_backward(q, k, v, output, lse, d_output.contiguous(), causal=ctx.causal), None


def flash_attention(q: Any, k: Any, v: Any, *, causal: bool = False) -> Any:
    """o of q, k and v as `attention.flash` takes them, with gradients."""
    return FlashAttention.apply(q, k, v, causal)


def reference_backward(
    q: Any, k: Any, v: Any, _output: Any, _lse: Any, d_output: Any, *, causal: bool = False
) -> tuple[Any, Any, Any]:
    """(dq, dk, dv) in FP64, by PyTorch's own differentiation of the forward reference."""
    leaves = [each.detach().double().requires_grad_() for each in (q, k, v)]
    output, _ = reference(*leaves, causal=causal)
    dq, dk, dv = torch.autograd.grad(output, leaves, d_output.double())
    return dq, dk, dv


def builds(dtype: DType, shape: AttentionShape = SHAPE, causal: bool = True) -> Sequence[Build]:
    element, size = f"*{dtype}", ELEMENT_BYTES[dtype]
    inputs = {**dict.fromkeys(("q", "k", "v", "d_output"), element), **dict.fromkeys(("lse", "delta"), "*fp32")}
    numbers = {"q_len": "i32", "kv_len": "i32", "scale": "fp32"}
    n_rows = shape.batch * shape.q_heads * shape.q_len
    of_keys, of_queries = KEY_TILING[size], QUERY_TILING[size]
    return [
        Build(
            output_products,
            signature={"output": element, "d_output": element, "delta": "*fp32", "n_rows": "i32"},
            constants=_delta_constants(shape),
            programs=triton.cdiv(n_rows, DELTA_ROWS),
            divisible_by_16=("output", "d_output", "delta", "n_rows"),
        ),
        Build(
            key_gradients,
            signature={**inputs, "dk": element, "dv": element, **numbers},
            constants=constants_of(shape, of_keys, causal),
            num_warps=of_keys.num_warps,
            num_stages=of_keys.num_stages,
            programs=triton.cdiv(shape.kv_len, of_keys.keys) * shape.batch * shape.kv_heads,
            divisible_by_16=(*inputs, "dk", "dv", "q_len", "kv_len"),
        ),
        Build(
            query_gradients,
            signature={**inputs, "dq": element, **numbers},
            constants=constants_of(shape, of_queries, causal),
            num_warps=of_queries.num_warps,
            num_stages=of_queries.num_stages,
            programs=triton.cdiv(shape.q_len, of_queries.queries) * shape.batch * shape.q_heads,
            divisible_by_16=(*inputs, "dq", "q_len", "kv_len"),
        ),
    ]


def _delta_constants(shape: AttentionShape) -> dict[str, int]:
    return {"HEAD_DIM": shape.head_dim, "BLOCK_D": triton.next_power_of_2(shape.head_dim), "ROWS": DELTA_ROWS}


OPERATOR = Operator(
    name="attention_backward",
    title="Gradients of scaled dot-product attention",
    variants=[
        Variant(
            "flash",
            "Weights come from the log-sum-exp again; one kernel owns tiles of keys, one tiles of queries.",
            flash_backward,
            builds,
            is_good=True,
        )
    ],
    reference=reference_backward,
    count=count_backward,
    default_shape={**asdict(SHAPE), "causal": 1},
)
