"""What of a card's memory is left for cached keys and values, when everything else has its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.hf_config import TransformerShape
from diag.model.kv_cache import blocks_for
from diag.model.precision import Precision
from diag.model.transformer_memory import Part, kv_heads_per_card

LOGIT_BYTES = 4
"""Logits are sampled from in FP32."""


@dataclass(frozen=True)
class CardBudget:
    """One card of a replica. `reserve_share`: of the memory, kept free for the context, NCCL and fragmentation."""

    memory_bytes: float
    reserve_share: float
    weights_bytes: float
    workspace_bytes: float
    graphs_bytes: float
    kv_token_bytes: float  # of a token on this card; 0: not known
    block_tokens: int

    @property
    def usable_bytes(self) -> float:
        return self.memory_bytes * (1 - self.reserve_share)

    @property
    def taken_bytes(self) -> float:
        return self.weights_bytes + self.workspace_bytes + self.graphs_bytes

    @property
    def kv_room_bytes(self) -> float:
        """Negative: by so much it does not fit."""
        return self.usable_bytes - self.taken_bytes

    @property
    def n_blocks(self) -> int:
        """Whole blocks in the room; 0 where nothing fits or nobody knows what a token takes."""
        block_bytes = self.kv_token_bytes * self.block_tokens
        return max(0, math.floor(self.kv_room_bytes / block_bytes)) if block_bytes else 0

    @property
    def kv_tokens(self) -> int:
        return self.n_blocks * self.block_tokens

    def sequences_of(self, tokens: int) -> int:
        """Sequences of one length that fit, tail blocks counted."""
        return self.n_blocks // blocks_for(tokens, self.block_tokens)


def weights_per_card_bytes(parts: Sequence[Part], tp: int, linear: Precision, other: Precision) -> float:
    """Matrices of the layers in one precision; embedding, head, norms and routers in another."""
    return sum(part.per_card(tp) * (linear if part.is_linear else other).bytes_each for part in parts)


def weights_bytes(parts: Sequence[Part], linear: Precision, other: Precision) -> float:
    """Of one copy of the model."""
    return weights_per_card_bytes(parts, 1, linear, other)


def workspace_bytes(shape: TransformerShape, tokens: int, sequences: int, tp: int, element_bytes: float = 2.0) -> float:
    """Activations of the largest step: two of hidden size, the widest pair inside of a layer, and logits in FP32.

    max(queries, keys, values + attention's output, gate and up + their product) lies on the card beside the residual
    and the input of the layer; engines gather the logits of the sequences on one card.
    """
    kv_dim = 2 * kv_heads_per_card(shape.n_kv_heads, tp) * shape.head_dim
    attention = 2 * shape.n_heads * shape.head_dim / tp + kv_dim
    width = max(shape.intermediate_size, shape.experts_per_token * shape.moe_intermediate_size)
    widest = max(attention, 3 * width / tp)
    of_tokens = tokens * (2 * shape.hidden_size + widest) * element_bytes
    return of_tokens + sequences * shape.vocab_size * (element_bytes + LOGIT_BYTES)
