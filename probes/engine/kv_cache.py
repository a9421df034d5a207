"""Keys and values of all sequences in one pool of blocks, and a second pool in the host's memory to swap to.

A block holds `block_tokens` tokens of one sequence, in every layer. That all layers have the same table is why a block
is copied and swapped whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from diag.model.hf_config import TransformerShape
from diag.model.kv_cache import KvShape, elements_per_token
from diag.probes.engine.plan import BlockCopy

KEYS_AND_VALUES = 2


class KvCache:
    """`blocks` [layers, 2, n_blocks + 1, block_tokens, kv_heads, D], `host` [n_host_blocks, layers, 2, …].

    The last block of the device is of no sequence: rows of padding write to it, and it is what they see. In the host's
    pool all of a block lies in one piece, so that it moves in one transfer; there the memory is pinned, as transfers
    that do not block need it.
    """

    def __init__(
        self,
        shape: TransformerShape,
        *,
        n_blocks: int,
        block_tokens: int,
        n_host_blocks: int = 0,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
    ) -> None:
        self.n_blocks, self.block_tokens = n_blocks, block_tokens
        of_block = (block_tokens, shape.n_kv_heads, shape.head_dim)
        # Zeros, as what no row may see is multiplied with a weight of zero, and zero times NaN is NaN.
        self.blocks = torch.zeros(shape.n_layers, KEYS_AND_VALUES, n_blocks + 1, *of_block, dtype=dtype, device=device)
        self.host = torch.zeros(
            n_host_blocks, shape.n_layers, KEYS_AND_VALUES, *of_block, dtype=dtype, pin_memory=device != "cpu"
        )

    @property
    def padding_block(self) -> int:
        return self.n_blocks

    def keys(self, layer: int) -> Tensor:
        """[n_blocks + 1, block_tokens, kv_heads, D]."""
        return self.blocks[layer, 0]

    def values(self, layer: int) -> Tensor:
        return self.blocks[layer, 1]

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Keys and values [rows, kv_heads, D] of one layer go to the slots [rows]."""
        self.keys(layer).flatten(0, 1).index_copy_(0, slots, keys)
        self.values(layer).flatten(0, 1).index_copy_(0, slots, values)

    def copy(self, copies: Sequence[BlockCopy]) -> None:
        """Within the device. All sources are read before any target is written."""
        if copies:
            self.blocks[:, :, self._index([each.target for each in copies])] = self._taken(copies)

    def swap_out(self, copies: Sequence[BlockCopy]) -> None:
        """Device → host, under way when this returns: the caller waits for the device before it uses the host's."""
        if copies:
            for packed, each in zip(self._taken(copies).movedim(2, 0).contiguous(), copies, strict=True):
                self.host[each.target].copy_(packed, non_blocking=True)

    def swap_in(self, copies: Sequence[BlockCopy]) -> None:
        """Host → device, in order with what the device does next."""
        for each in copies:
            self.blocks[:, :, each.target] = self.host[each.source].to(self.blocks.device, non_blocking=True)

    def _taken(self, copies: Sequence[BlockCopy]) -> Tensor:
        return self.blocks[:, :, self._index([each.source for each in copies])]

    def _index(self, blocks: Sequence[int]) -> Tensor:
        return torch.tensor(blocks, device=self.blocks.device)


def block_bytes(shape: TransformerShape, block_tokens: int, element_bytes: int) -> int:
    """Of all layers: 2 · layers · block_tokens · kv_heads · D elements.

    >>> llama_70b = TransformerShape(8192, 80, 64, 8, 128, 28672, 128256, 131072)
    >>> block_bytes(llama_70b, block_tokens=1, element_bytes=2)
    327680
    """
    return elements_per_token(KvShape.of(shape)) * block_tokens * element_bytes
