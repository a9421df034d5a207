"""What decode attention over a paged cache takes, what it has to do at least, and a reference in FP64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from diag.errors import UsageError
from diag.kernels.attention_definition import HEAD_DIMS
from diag.kernels.attention_definition import reference as attention_reference
from diag.kernels.operator import ELEMENT_BYTES, Count, DType

INDEX_BYTES = 4  # of a length, and of an entry of the table


@dataclass(frozen=True)
class PagedShape:
    """Of q [sequences, q_heads, head_dim], caches [blocks, block_size, kv_heads, head_dim] and table [sequences, n]."""

    sequences: int
    q_heads: int
    kv_heads: int
    head_dim: int
    block_size: int
    table_blocks: int  # the most that a sequence may have

    @property
    def group(self) -> int:
        """Query heads that share a head of keys and values."""
        return self.q_heads // self.kv_heads

    @property
    def scale(self) -> float:
        return float(self.head_dim**-0.5)


def paged_shape_of(q: Any, k_cache: Any, v_cache: Any, table: Any, lengths: Any) -> PagedShape:
    """Of contiguous tensors: q and caches of one type, table and lengths [sequences] in int32.

    Entries of the table and lengths are not looked at, as they lie on the device. Raises UsageError for what the
    kernels cannot take.
    """
    if q.dim() != 3 or k_cache.dim() != 4 or k_cache.shape != v_cache.shape or table.dim() != 2:
        raise UsageError(
            "q is to be [sequences, q_heads, head_dim], both caches [blocks, block_size, kv_heads, head_dim] "
            "and the table [sequences, blocks of a sequence]"
        )
    sequences, q_heads, head_dim = q.shape
    _, block_size, kv_heads, _ = k_cache.shape
    if k_cache.shape[3] != head_dim or not HEAD_DIMS[0] <= head_dim <= HEAD_DIMS[1]:
        raise UsageError(
            f"head sizes {head_dim} and {k_cache.shape[3]} are to be equal, and {HEAD_DIMS[0]} to {HEAD_DIMS[1]}"
        )
    if not kv_heads or q_heads % kv_heads:
        raise UsageError(f"{q_heads} query heads cannot share {kv_heads} key heads evenly")
    if table.shape[0] != sequences or lengths.shape != (sequences,):
        raise UsageError(f"a table and a length for each of {sequences} sequences are needed")
    if table.dtype != torch.int32 or lengths.dtype != torch.int32:
        raise UsageError("the table and the lengths are to be int32")
    if not q.dtype == k_cache.dtype == v_cache.dtype:
        raise UsageError(
            f"q and the caches are of the types {q.dtype}, {k_cache.dtype}, {v_cache.dtype}; make them one"
        )
    if not all(each.is_contiguous() for each in (q, k_cache, v_cache, table, lengths)):
        raise UsageError("all inputs are to be contiguous: a copy made here would hide in the time of the kernel")
    return PagedShape(sequences, q_heads, kv_heads, head_dim, block_size, table.shape[1])


def count(
    *, sequences: int, length: int, q_heads: int, kv_heads: int, head_dim: int, block_size: int, dtype: DType
) -> Count:
    """Of sequences of one length."""
    return count_of_lengths(
        [length] * sequences,
        q_heads=q_heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        block_size=block_size,
        dtype=dtype,
    )


def count_of_lengths(
    lengths: Sequence[int], *, q_heads: int, kv_heads: int, head_dim: int, block_size: int, dtype: DType
) -> Count:
    """Of sequences of these lengths: every key and value of theirs read once, and the entries that find them.

    >>> work = count_of_lengths([0, 1, 33], q_heads=8, kv_heads=2, head_dim=64, block_size=16, dtype="fp16")
    >>> work.flops, work.read_bytes, work.written_bytes
    (69632, 20508, 3072)
    """
    tokens, size = sum(lengths), ELEMENT_BYTES[dtype]
    queries = len(lengths) * q_heads * head_dim * size
    entries = len(lengths) + sum(-(-length // block_size) for length in lengths)
    return Count(
        flops=4 * tokens * q_heads * head_dim,
        read_bytes=queries + 2 * tokens * kv_heads * head_dim * size + entries * INDEX_BYTES,
        written_bytes=queries,
        formula="4 tokens q_heads D FLOP; K and V of the tokens, q and o once, 4 bytes a length and a block",
    )


def reference(q: Any, k_cache: Any, v_cache: Any, table: Any, lengths: Any, **_: Any) -> Any:
    """Outputs in FP64: each sequence's blocks are laid side by side. Takes what the kernels take."""
    paged_shape_of(q, k_cache, v_cache, table, lengths)
    return torch.stack(
        [
            attention_reference(
                query[None, :, None], _gathered(k_cache, blocks, length), _gathered(v_cache, blocks, length)
            )[0][0, :, 0]
            for query, blocks, length in zip(q, table, lengths.tolist(), strict=True)
        ]
    )


def _gathered(cache: Any, blocks: Any, length: int) -> Any:
    """[1, kv_heads, length, head_dim] of one sequence."""
    used = blocks[: -(-length // cache.shape[1])].long()
    return cache[used].flatten(0, 1)[:length].transpose(0, 1)[None].contiguous()
