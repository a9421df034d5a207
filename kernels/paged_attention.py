"""Decode attention over a paged cache: one query a sequence, keys and values in blocks that a table finds.

A server keeps the keys and values of all sequences in one pool of blocks of `block_size` tokens. Token t of a sequence
lies in block table[sequence, t // block_size], at t % block_size: no two blocks need to be neighbours, and no more than
a part of one block is wasted per sequence (Kwon et al. 2023, arXiv:2309.06180). A sequence may hold any number of
tokens, none included; then its output is 0. The new query is the last token and sees all of them.

Each of the q_heads queries meets each token in two products of D: 4·tokens·q_heads·D FLOPs. Each key and value has to
be read once, 2·tokens·kv_heads·D elements, beside which queries, outputs, lengths and table are little. So the
arithmetic intensity is 2·group / (bytes of an element), group = q_heads / kv_heads: 1 FLOP per byte for multi-head
attention in FP16, 8 with 8 query heads a key head, whatever the length or the batch. GPUs need some hundreds to be
bound by their tensor cores: decode is bound by memory, and what counts is to read K and V once, for all queries of a
group, and to keep all SMs at it. Standard attention would also write and read a row of scores a head, 12 bytes a token
with FP16 and scores in FP32, against 4·D/group bytes of K and V.

`single_pass` has a block per sequence and key head, which walks over all tokens. Few or unequal sequences leave most
SMs idle. `split` cuts every sequence into parts, in the manner of Flash-Decoding: each block writes the state (m, l, u)
of its part, a second kernel merges them (`softmax_state`), which is exact but for rounding. It costs a launch, and
splits·(D + 2) numbers in FP32 a query head, written and read.
"""

# ruff: noqa: E741 - m, l and u are the letters of the papers

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from diag.kernels.operator import ELEMENT_BYTES, Build, DType, Operator, Variant
from diag.kernels.paged_definition import PagedShape, count, paged_shape_of, reference
from diag.kernels.softmax_state import LOG2_E, finite_shift, merge_states, rescale, weighted_mean

SHAPE = PagedShape(sequences=32, q_heads=32, kv_heads=8, head_dim=128, block_size=16, table_blocks=512)
LENGTH = SHAPE.table_blocks * SHAPE.block_size

TOKENS = {2: 64, 4: 32}  # of a tile, by bytes of an element
SMALLEST_GROUP = 16  # rows that a tensor core takes: a smaller group of query heads is filled up
SPLIT_TOKENS = 256  # the fewest that a split is worth
BLOCKS_PER_SM = 2  # of the grid, before sequences are split no further
SMS_WITHOUT_A_GPU = 4


@triton.jit
def state_of_tokens(
    q, k_cache, v_cache, table_row, sequence, kv_head, first_token, end_token, scale_log2,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    BLOCK_GROUP: tl.constexpr, BLOCK_D: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    """(m, l, u) of the queries of one group over the tokens from `first_token` to before `end_token`."""
    member = tl.arange(0, BLOCK_GROUP)
    d = tl.arange(0, BLOCK_D)
    q_at = (sequence * KV_HEADS + kv_head) * GROUP * HEAD_DIM + member[:, None] * HEAD_DIM + d
    q_tile = tl.load(q + q_at, mask=(member < GROUP)[:, None] & (d < HEAD_DIM)[None, :], other=0.0)
    m = tl.full([BLOCK_GROUP], -float("inf"), tl.float32)
    l = tl.zeros([BLOCK_GROUP], tl.float32)
    u = tl.zeros([BLOCK_GROUP, BLOCK_D], tl.float32)
    for start in range(first_token, end_token, TOKENS):
        tokens = start + tl.arange(0, TOKENS)
        is_token = tokens < end_token
        block = tl.load(table_row + tokens // BLOCK_SIZE, mask=is_token, other=0).to(tl.int64)
        slot = (block * BLOCK_SIZE + tokens % BLOCK_SIZE) * KV_HEADS + kv_head
        inside = is_token[:, None] & (d < HEAD_DIM)[None, :]
        k_tile = tl.load(k_cache + slot[:, None] * HEAD_DIM + d, mask=inside, other=0.0)
        v_tile = tl.load(v_cache + slot[:, None] * HEAD_DIM + d, mask=inside, other=0.0)
        s = tl.dot(q_tile, tl.trans(k_tile), input_precision="ieee") * scale_log2
        s = tl.where(is_token[None, :], s, -float("inf"))
        m_next = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - finite_shift(m_next)[:, None])
        shrink = rescale(m, m_next)
        l = shrink * l + tl.sum(p, 1)
        u = tl.dot(p.to(v_tile.dtype), v_tile, shrink[:, None] * u, input_precision="ieee")
        m = m_next
    return m, l, u


@triton.jit
def attend_whole(
    q, k_cache, v_cache, table, lengths, output, table_blocks, scale,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    BLOCK_GROUP: tl.constexpr, BLOCK_D: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    """A program makes the outputs of the queries that share a key head of a sequence."""
    sequence = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    _, l, u = state_of_tokens(
        q, k_cache, v_cache, table + sequence * table_blocks, sequence, kv_head, 0, tl.load(lengths + sequence),
        scale * LOG2_E, KV_HEADS, GROUP, HEAD_DIM, BLOCK_SIZE, BLOCK_GROUP, BLOCK_D, TOKENS,
    )  # fmt: skip
    member = tl.arange(0, BLOCK_GROUP)
    d = tl.arange(0, BLOCK_D)
    at = (sequence * KV_HEADS + kv_head) * GROUP * HEAD_DIM + member[:, None] * HEAD_DIM + d
    inside = (member < GROUP)[:, None] & (d < HEAD_DIM)[None, :]
    tl.store(output + at, weighted_mean(l, u).to(output.dtype.element_ty), mask=inside)


@triton.jit
def attend_part(
    q, k_cache, v_cache, table, lengths, m_parts, l_parts, u_parts, table_blocks, scale,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    BLOCK_GROUP: tl.constexpr, BLOCK_D: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    """A program writes the state of its part of a sequence, all parts being of whole tiles and as equal as that allows.

    Parts behind the end of a short sequence are empty.
    """
    sequence = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    n_splits = tl.num_programs(2)
    length = tl.load(lengths + sequence)
    part = tl.cdiv(tl.cdiv(length, n_splits), TOKENS) * TOKENS
    m, l, u = state_of_tokens(
        q, k_cache, v_cache, table + sequence * table_blocks, sequence, kv_head, split * part,
        tl.minimum(split * part + part, length), scale * LOG2_E,
        KV_HEADS, GROUP, HEAD_DIM, BLOCK_SIZE, BLOCK_GROUP, BLOCK_D, TOKENS,
    )  # fmt: skip
    member = tl.arange(0, BLOCK_GROUP)
    d = tl.arange(0, BLOCK_D)
    row = ((sequence * KV_HEADS + kv_head) * n_splits + split) * GROUP + member
    tl.store(m_parts + row, m, mask=member < GROUP)
    tl.store(l_parts + row, l, mask=member < GROUP)
    inside = (member < GROUP)[:, None] & (d < HEAD_DIM)[None, :]
    tl.store(u_parts + row[:, None] * HEAD_DIM + d, u, mask=inside)


@triton.jit
def merge_parts(
    m_parts, l_parts, u_parts, output, n_splits,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_GROUP: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """A program merges the states of all parts for the queries that share a key head of a sequence."""
    group = tl.program_id(0).to(tl.int64)
    member = tl.arange(0, BLOCK_GROUP)
    d = tl.arange(0, BLOCK_D)
    inside = (member < GROUP)[:, None] & (d < HEAD_DIM)[None, :]
    m = tl.full([BLOCK_GROUP], -float("inf"), tl.float32)
    l = tl.zeros([BLOCK_GROUP], tl.float32)
    u = tl.zeros([BLOCK_GROUP, BLOCK_D], tl.float32)
    for split in range(n_splits):
        row = (group * n_splits + split) * GROUP + member
        m_part = tl.load(m_parts + row, mask=member < GROUP, other=-float("inf"))
        l_part = tl.load(l_parts + row, mask=member < GROUP, other=0.0)
        u_part = tl.load(u_parts + row[:, None] * HEAD_DIM + d, mask=inside, other=0.0)
        m, l, u = merge_states(m, l, u, m_part, l_part, u_part)
    to = output + group * GROUP * HEAD_DIM + member[:, None] * HEAD_DIM + d
    tl.store(to, weighted_mean(l, u).to(output.dtype.element_ty), mask=inside)


def single_pass(q: Any, k_cache: Any, v_cache: Any, table: Any, lengths: Any) -> Any:
    """Outputs [sequences, q_heads, head_dim]; inputs as `paged_shape_of` takes them."""
    shape = paged_shape_of(q, k_cache, v_cache, table, lengths)
    output = torch.empty_like(q)
    attend_whole[(shape.sequences, shape.kv_heads)](
        q,
        k_cache,
        v_cache,
        table,
        lengths,
        output,
        shape.table_blocks,
        shape.scale,
        **_constants(shape, q.element_size()),
    )
    return output


def split(q: Any, k_cache: Any, v_cache: Any, table: Any, lengths: Any, *, n_splits: int | None = None) -> Any:
    """As `single_pass`; the number of parts of a sequence follows from the size of the device unless it is given."""
    shape = paged_shape_of(q, k_cache, v_cache, table, lengths)
    n_splits = n_splits or splits_for(shape, _sm_count(q.device))
    rows = shape.sequences * shape.q_heads * n_splits
    m_parts, l_parts = (torch.empty(rows, dtype=torch.float32, device=q.device) for _ in range(2))
    u_parts = torch.empty(rows, shape.head_dim, dtype=torch.float32, device=q.device)
    output = torch.empty_like(q)
    constants = _constants(shape, q.element_size())
    attend_part[(shape.sequences, shape.kv_heads, n_splits)](
        q, k_cache, v_cache, table, lengths, m_parts, l_parts, u_parts, shape.table_blocks, shape.scale, **constants
    )
    merge_parts[(shape.sequences * shape.kv_heads,)](
        m_parts, l_parts, u_parts, output, n_splits, **{name: constants[name] for name in MERGE_CONSTANTS}
    )
    return output


def splits_for(shape: PagedShape, sm_count: int) -> int:
    """Enough parts to give each SM some blocks, each part being worth its state. Lengths are on the device, and to read
    them would stall the host: the width of the table bounds them.

    >>> splits_for(PagedShape(1, 32, 8, 128, 16, 512), 132), splits_for(PagedShape(64, 32, 8, 128, 16, 512), 132)
    (32, 1)
    """
    wanted = triton.cdiv(BLOCKS_PER_SM * sm_count, max(1, shape.sequences * shape.kv_heads))
    most = triton.cdiv(shape.table_blocks * shape.block_size, SPLIT_TOKENS)
    return int(max(1, min(wanted, most)))


def _sm_count(device: Any) -> int:
    if device.type != "cuda":
        return SMS_WITHOUT_A_GPU
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


MERGE_CONSTANTS = ("GROUP", "HEAD_DIM", "BLOCK_GROUP", "BLOCK_D")


def _constants(shape: PagedShape, element_bytes: int) -> dict[str, int]:
    return {
        "KV_HEADS": shape.kv_heads,
        "GROUP": shape.group,
        "HEAD_DIM": shape.head_dim,
        "BLOCK_SIZE": shape.block_size,
        "BLOCK_GROUP": max(SMALLEST_GROUP, triton.next_power_of_2(shape.group)),
        "BLOCK_D": triton.next_power_of_2(shape.head_dim),
        "TOKENS": TOKENS[element_bytes],
    }


def _attend_build(kernel: Any, dtype: DType, results: dict[str, str], programs: int) -> Build:
    element = f"*{dtype}"
    inputs = {**dict.fromkeys(("q", "k_cache", "v_cache"), element), **dict.fromkeys(("table", "lengths"), "*i32")}
    return Build(
        kernel,
        signature={**inputs, **results, "table_blocks": "i32", "scale": "fp32"},
        constants=_constants(SHAPE, ELEMENT_BYTES[dtype]),
        programs=programs,
        divisible_by_16=(*inputs, *results, "table_blocks"),
    )


def single_pass_builds(dtype: DType) -> Sequence[Build]:
    return [_attend_build(attend_whole, dtype, {"output": f"*{dtype}"}, SHAPE.sequences * SHAPE.kv_heads)]


def split_builds(dtype: DType) -> Sequence[Build]:
    """With as many programs as a device of 132 SMs is given."""
    groups = SHAPE.sequences * SHAPE.kv_heads
    parts = dict.fromkeys(("m_parts", "l_parts", "u_parts"), "*fp32")
    return [
        _attend_build(attend_part, dtype, parts, groups * splits_for(SHAPE, 132)),
        Build(
            merge_parts,
            signature={**parts, "output": f"*{dtype}", "n_splits": "i32"},
            constants={name: _constants(SHAPE, ELEMENT_BYTES[dtype])[name] for name in MERGE_CONSTANTS},
            programs=groups,
            divisible_by_16=(*parts, "output"),
        ),
    ]


OPERATOR = Operator(
    name="paged_attention",
    title="Decode attention over a paged cache",
    variants=[
        Variant(
            "single_pass",
            "A block per sequence and key head walks over all its tokens; few sequences leave most SMs idle.",
            single_pass,
            single_pass_builds,
        ),
        Variant(
            "split",
            "Several blocks share a sequence and a second kernel merges their states, at the price of writing them.",
            split,
            split_builds,
            is_good=True,
        ),
    ],
    reference=reference,
    count=count,
    default_shape={
        "sequences": SHAPE.sequences,
        "length": LENGTH,
        "q_heads": SHAPE.q_heads,
        "kv_heads": SHAPE.kv_heads,
        "head_dim": SHAPE.head_dim,
        "block_size": SHAPE.block_size,
    },
)
