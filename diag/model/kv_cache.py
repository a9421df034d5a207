"""What cached keys and values take: by token, by card, and in blocks of a fixed number of tokens.

Two vectors a layer, token and head of keys and values (Pope et al. 2022, arXiv:2211.05102, section 3.3); with latent
attention, one vector a layer and token that every card keeps (DeepSeek-V2, arXiv:2405.04434, section 2.1.4). Blocks:
Kwon et al. 2023 (PagedAttention, arXiv:2309.06180), section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from diag.model.hf_config import TransformerShape
from diag.model.transformer_memory import kv_heads_per_card


@dataclass(frozen=True)
class KvShape:
    """`latent_dim`: elements of the one vector of latent attention; 0 where heads have keys and values of their own."""

    n_layers: int
    n_kv_heads: int
    head_dim: int
    latent_dim: int = 0

    @classmethod
    def of(cls, shape: TransformerShape) -> KvShape:
        latent = shape.latent_attention
        dim = latent.kv_rank + latent.rope_head_dim if latent else 0
        return cls(shape.n_layers, shape.n_kv_heads, shape.head_dim, dim)

    @property
    def formula(self) -> str:
        """Elements of a token, in figures."""
        if self.latent_dim:
            return f"{self.n_layers} layers x {self.latent_dim} of the latent"
        return f"2 x {self.n_layers} layers x {self.n_kv_heads} KV heads x {self.head_dim}"


def elements_per_token(kv: KvShape) -> int:
    """
    >>> elements_per_token(KvShape(80, 8, 128)), elements_per_token(KvShape(61, 128, 128, latent_dim=576))
    (163840, 35136)
    """
    return kv.n_layers * (kv.latent_dim or 2 * kv.n_kv_heads * kv.head_dim)


def bytes_per_token(kv: KvShape, element_bytes: float) -> float:
    """Of the whole model.

    >>> bytes_per_token(KvShape(80, 8, 128), 2), bytes_per_token(KvShape(32, 32, 128), 2) / (1 << 20)
    (327680, 0.5)
    """
    return elements_per_token(kv) * element_bytes


def bytes_per_token_and_card(kv: KvShape, element_bytes: float, tp: int) -> float:
    """Heads that do not divide by the cards lie on several: the fullest card counts. A latent lies on all."""
    whole = bytes_per_token(kv, element_bytes)
    return whole if kv.latent_dim else whole * kv_heads_per_card(kv.n_kv_heads, tp) / kv.n_kv_heads


def replicas(kv: KvShape, tp: int) -> float:
    """Copies of each cached token in a group of cards."""
    return bytes_per_token_and_card(kv, 1, tp) * tp / bytes_per_token(kv, 1)


def blocks_for(tokens: int, block_tokens: int) -> int:
    """
    >>> blocks_for(2500, 16), blocks_for(1, 16)
    (157, 1)
    """
    return -(-tokens // block_tokens)


def tail_tokens(tokens: int, block_tokens: int) -> int:
    """Places of the last block that stay empty; of lengths that are anything, (block − 1) / 2 on average.

    >>> tail_tokens(2500, 16), tail_tokens(2496, 16)
    (12, 0)
    """
    return blocks_for(tokens, block_tokens) * block_tokens - tokens
