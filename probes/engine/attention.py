"""Attention of a step's rows over the paged cache: with PyTorch anywhere, with Triton's kernels on a GPU.

A row of query head h at position p sees the keys at positions 0 … p of its sequence:

    o = Σ_j softmax_j(q·k_j / √D) v_j                             (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1)

where key j lies in slot table[j // block_tokens] · block_tokens + j % block_tokens (Kwon et al. 2023,
arXiv:2309.06180). What does not depend on the layer (which rows, which slots, what is visible) is prepared once a step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from diag.probes.engine.batch import Batch, ChunkRows

AttentionKind: TypeAlias = Literal["torch", "triton"]

MOST_ROWS_OF_DECODE = 8
"""A chunk with no more rows is computed by the kernel for decode, which reads its cache again for each of them."""


class Attend(Protocol):
    def __call__(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """[rows, heads, D] of queries like it, and of one layer's caches [blocks, block_tokens, kv_heads, D]."""
        ...


Prepare: TypeAlias = Callable[[Batch, int, int], Attend]
"""Of a batch, `block_tokens` and the block of padding."""


# ---- PyTorch -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Chunks with equally many rows each: b of them, of n rows, the longest of which sees L tokens."""

    rows: Tensor  # int64 [b, n]
    slots: Tensor  # int64 [b, L]; behind a sequence's end a slot of padding, so that no other's content is touched
    visible: Tensor  # bool [b, 1, n, L]


@dataclass(frozen=True)
class GatheredAttention:
    """Keys and values are gathered out of their blocks, then attended densely: simple, at the price of a copy."""

    groups: Sequence[Group]

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        output = torch.empty_like(q)
        for group in self.groups:
            seen_keys, seen_values = (each.flatten(0, 1)[group.slots].transpose(1, 2) for each in (keys, values))
            output[group.rows] = grouped_attention(q[group.rows], seen_keys, seen_values, group.visible)
        return output


def grouped_attention(q: Tensor, keys: Tensor, values: Tensor, visible: Tensor) -> Tensor:
    """[b, n, heads, D] of q like it, keys and values [b, kv_heads, L, D] and what each row sees [b, 1, n, L].

    Query heads that share a key head go through it together, as rows of one matrix (GQA, Ainslie et al. 2023,
    arXiv:2305.13245).
    """
    b, n, heads, width = q.shape
    kv_heads = keys.shape[1]
    group = heads // kv_heads
    together = q.view(b, n, kv_heads, group, width).transpose(1, 2).reshape(b, kv_heads, n * group, width)
    mask = visible.repeat_interleave(group, 2)
    output = scaled_dot_product_attention(together, keys, values, attn_mask=mask)
    return output.view(b, kv_heads, n, group, width).transpose(1, 2).reshape(b, n, heads, width)


def prepare_torch(batch: Batch, block_tokens: int, padding_block: int) -> Attend:
    by_rows = defaultdict[int, list[ChunkRows]](list)
    for chunk in batch.chunks:
        by_rows[chunk.n].append(chunk)
    return GatheredAttention(
        [_group(each, block_tokens, padding_block, batch.tokens.device) for each in by_rows.values()]
    )


def _group(chunks: Sequence[ChunkRows], block_tokens: int, padding_block: int, device: torch.device) -> Group:
    longest = max(chunk.length for chunk in chunks)
    starts = torch.tensor([chunk.start for chunk in chunks])
    positions = starts[:, None] + torch.arange(chunks[0].n)
    slots = slots_of_tables(tables_of(chunks, padding_block), block_tokens)[:, :longest]
    is_token = torch.arange(longest) <= positions[:, -1:]
    return Group(
        rows=torch.tensor([list(chunk.rows) for chunk in chunks]).to(device),
        slots=torch.where(is_token, slots, padding_block * block_tokens).to(device),
        visible=(torch.arange(longest) <= positions[:, None, :, None]).to(device),
    )


def tables_of(chunks: Sequence[ChunkRows], padding_block: int) -> Tensor:
    """int64 [chunks, blocks of the longest], filled up with the block of padding."""
    longest = max((len(chunk.blocks) for chunk in chunks), default=1)
    tables = [[*chunk.blocks, *[padding_block] * (longest - len(chunk.blocks))] for chunk in chunks]
    return torch.tensor(tables, dtype=torch.int64).view(len(chunks), longest)


def slots_of_tables(tables: Tensor, block_tokens: int) -> Tensor:
    """int64 [chunks, blocks · block_tokens] of [chunks, blocks]."""
    return (tables[:, :, None] * block_tokens + torch.arange(block_tokens)).flatten(1)


# ---- Triton --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DecodeRows:
    """Rows that the kernel for decode takes as sequences of their own: each has the table of its chunk."""

    tables: Tensor  # int32 [rows, blocks]
    lengths: Tensor  # int32 [rows]: tokens that each sees

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        from diag.kernels import paged_attention

        return paged_attention.split(q, keys, values, self.tables, self.lengths)


@dataclass(frozen=True)
class KernelAttention:
    """Few rows: straight out of the blocks. Many: keys and values are gathered once, then FlashAttention."""

    decode_rows: Tensor  # int64
    decode: DecodeRows
    prefills: Sequence[tuple[range, Tensor]]  # rows, and the slots that the last of them sees

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        output = torch.empty_like(q)
        if len(self.decode_rows):
            output[self.decode_rows] = self.decode(q[self.decode_rows], keys, values)
        for rows, slots in self.prefills:
            output[rows.start : rows.stop] = _prefill(q[rows.start : rows.stop], keys, values, slots)
        return output


def _prefill(q: Tensor, keys: Tensor, values: Tensor, slots: Tensor) -> Tensor:
    """The last query sees all the slots, the one before it one less, and so on."""
    from diag.kernels import attention

    seen_keys, seen_values = (each.flatten(0, 1)[slots].transpose(0, 1)[None].contiguous() for each in (keys, values))
    output, _ = attention.flash(q.transpose(0, 1)[None].contiguous(), seen_keys, seen_values, causal=True)
    return output[0].transpose(0, 1)


def prepare_triton(batch: Batch, block_tokens: int, padding_block: int) -> Attend:
    device = batch.tokens.device
    few = [chunk for chunk in batch.chunks if chunk.n <= MOST_ROWS_OF_DECODE]
    many = [chunk for chunk in batch.chunks if chunk.n > MOST_ROWS_OF_DECODE]
    rows = torch.tensor([row for chunk in few for row in chunk.rows], dtype=torch.int64).to(device)
    prefills = [(chunk.rows, _slots(chunk, block_tokens).to(device)) for chunk in many]
    return KernelAttention(rows, decode_rows(few, padding_block, device), prefills)


def _slots(chunk: ChunkRows, block_tokens: int) -> Tensor:
    return slots_of_tables(torch.tensor([chunk.blocks]), block_tokens)[0, : chunk.length]


def decode_rows(chunks: Sequence[ChunkRows], padding_block: int, device: torch.device) -> DecodeRows:
    rows_of_chunks = torch.tensor([chunk.n for chunk in chunks], dtype=torch.int64)
    tables = tables_of(chunks, padding_block).repeat_interleave(rows_of_chunks, 0)
    lengths = [chunk.start + i + 1 for chunk in chunks for i in range(chunk.n)]
    return DecodeRows(tables.to(device, torch.int32), torch.tensor(lengths, dtype=torch.int32).to(device))


PREPARE: dict[AttentionKind, Prepare] = {"torch": prepare_torch, "triton": prepare_triton}
