"""A step as tensors: the tokens of all its chunks one after the other, each a row, and where their cache lies.

Rows of different sequences go through all products with weights together, which is what makes batching pay: a weight is
read once for all of them. Attention alone asks which rows belong together (`attention`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from diag.errors import InputError
from diag.probes.engine.plan import StepPlan


@dataclass(frozen=True)
class ChunkRows:
    """The rows of one chunk. Row i has position `start` + i and sees all positions up to its own."""

    first: int
    n: int
    start: int
    blocks: Sequence[int]

    @property
    def rows(self) -> range:
        return range(self.first, self.first + self.n)

    @property
    def length(self) -> int:
        """Tokens that its last row sees."""
        return self.start + self.n


@dataclass(frozen=True)
class Batch:
    """`tokens`, `positions` and `slots` are int64 [rows]; `wanted`, int64, names the rows whose logits are needed.

    A slot is a token's place in a cache: block · block_tokens + offset.
    """

    chunks: Sequence[ChunkRows]
    tokens: Tensor
    positions: Tensor
    slots: Tensor
    wanted: Tensor

    @property
    def n_rows(self) -> int:
        return len(self.tokens)


def batch_of(plan: StepPlan, *, block_tokens: int, padding_block: int, vocab_size: int, device: str = "cpu") -> Batch:
    """Rows of padding, up to `padded_rows`, are sequences of one token in a block that no sequence has.

    Raises InputError for tokens that the model does not know, ValueError for a block table that cannot be.
    """
    tokens, positions, wanted = list[int](), list[int](), list[int]()
    chunks = list[ChunkRows]()
    for chunk in plan.chunks:
        rows = ChunkRows(len(tokens), chunk.n_tokens, chunk.start, chunk.blocks)
        _check_blocks(rows, block_tokens, padding_block)
        chunks.append(rows)
        tokens += chunk.tokens + chunk.drafts
        positions += range(rows.start, rows.length)
        if chunk.sampling:
            wanted += rows.rows[-len(chunk.drafts) - 1 :]
    _check_known(tokens, vocab_size)
    n_padding = max(0, (plan.padded_rows or 0) - len(tokens))
    chunks += [ChunkRows(row, 1, 0, (padding_block,)) for row in range(len(tokens), len(tokens) + n_padding)]
    slots = [slot for chunk in chunks for slot in slots_of(chunk.blocks, chunk.start, chunk.length, block_tokens)]
    padding = [0] * n_padding
    return Batch(chunks, *(_rows(each, device) for each in (tokens + padding, positions + padding, slots, wanted)))


def slots_of(blocks: Sequence[int], start: int, end: int, block_tokens: int) -> list[int]:
    """Of the positions from `start` to before `end`.

    >>> slots_of((7, 2), 2, 6, block_tokens=4)
    [30, 31, 8, 9]
    """
    return [blocks[at // block_tokens] * block_tokens + at % block_tokens for at in range(start, end)]


def _check_blocks(chunk: ChunkRows, block_tokens: int, n_blocks: int) -> None:
    if chunk.n < 1 or chunk.length > len(chunk.blocks) * block_tokens:
        raise ValueError(f"{chunk.n} tokens from position {chunk.start} on do not lie in {len(chunk.blocks)} blocks")
    if min(chunk.blocks) < 0 or max(chunk.blocks) >= n_blocks:
        raise ValueError(f"the blocks {chunk.blocks} are not all among the {n_blocks} of the cache")


def _check_known(tokens: Sequence[int], vocab_size: int) -> None:
    """A GPU would fail at an unknown token, and never run again in this process."""
    unknown = next((token for token in tokens if not 0 <= token < vocab_size), None)
    if unknown is not None:
        raise InputError(
            f"The model knows tokens 0 to {vocab_size - 1}, and a request has {unknown}. Check its tokenizer."
        )


def _rows(values: Sequence[int], device: str) -> Tensor:
    return torch.tensor(values, dtype=torch.int64).to(device)
