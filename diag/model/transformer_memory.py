"""How many parameters a decoder has, part by part, and what of each lies on a card of a tensor-parallel group.

A layer has query, key, value and output projections, a gated feed-forward part of three matrices (SwiGLU: Shazeer 2020,
arXiv:2002.05202) and two RMSNorms. Tensor parallelism splits matrices by heads, by the feed-forward's width or by the
vocabulary (Shoeybi et al. 2019, arXiv:1909.08053); norms, routers and latent projections lie on every card, and so does
a head of keys and values that several cards need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.model.hf_config import LatentAttention, TransformerShape

Split = Literal["tensor", "kv heads", "none"]


@dataclass(frozen=True)
class Part:
    """Parameters that are split, and quantised, in one way."""

    name: str
    count: float  # in the whole model
    split: Split
    is_linear: bool  # a matrix of a layer: what quantisation of weights is about
    active: float  # of them, that one token passes
    kv_heads: int = 1  # of what is split by them

    def per_card(self, tp: int) -> float:
        """Parameters on the card of a group that holds most."""
        match self.split:
            case "none":
                return self.count
            case "tensor":
                return self.count / tp
            case "kv heads":
                return self.count * kv_heads_per_card(self.kv_heads, tp) / self.kv_heads

    def replicas(self, tp: int) -> float:
        """Copies in a group: 1 where it is split evenly, `tp` where each card has all."""
        return self.per_card(tp) * tp / self.count if self.count else 1.0


def kv_heads_per_card(n_kv_heads: int, tp: int) -> int:
    """⌈heads / cards⌉: with more cards than heads each card still has one, and heads lie on several cards.

    >>> [kv_heads_per_card(8, tp) for tp in (1, 4, 8, 16)], kv_heads_per_card(4, 3)
    ([8, 2, 1, 1], 2)
    """
    return -(-n_kv_heads // tp)


def total_params(parts: Sequence[Part]) -> float:
    return sum(part.count for part in parts)


def active_params(parts: Sequence[Part]) -> float:
    """That take part in the arithmetic of a token: of experts those it is sent to, of the embedding a row."""
    return sum(part.active for part in parts)


def parts(shape: TransformerShape) -> tuple[Part, ...]:
    """Of the whole model, largest ideas first; parts without parameters are left out."""
    return tuple(part for part in _parts(shape) if part.count)


def _parts(of: TransformerShape) -> Iterator[Part]:
    table = of.vocab_size * of.hidden_size
    yield Part("embedding", table, "tensor", False, table if of.tie_word_embeddings else 0)
    if not of.tie_word_embeddings:
        yield Part("output head", table, "tensor", False, table)
    yield from _latent(of, of.latent_attention) if of.latent_attention else _attention(of)
    yield from _feed_forward(of)
    norms = 2 * of.hidden_size + (2 * of.head_dim if of.qk_norm else 0)
    count = of.n_layers * norms + of.hidden_size
    yield Part("norms", count, "none", False, count)


def _attention(of: TransformerShape) -> Iterator[Part]:
    inner = of.n_heads * of.head_dim
    per_kv = 2 * of.n_kv_heads * of.head_dim
    rows = of.hidden_size + (1 if of.attention_bias else 0)
    queries, keys = of.n_layers * (rows * inner + inner * of.hidden_size), of.n_layers * rows * per_kv
    yield Part("attention: queries, output", queries, "tensor", True, queries)
    yield Part("attention: keys, values", keys, "kv heads", True, keys, of.n_kv_heads)


def _latent(of: TransformerShape, latent: LatentAttention) -> Iterator[Part]:
    """DeepSeek-V2 (arXiv:2405.04434), section 2.1: down to the latents on every card, up from them by heads."""
    query_dim = latent.nope_head_dim + latent.rope_head_dim
    of_query = latent.q_rank or of.hidden_size
    down = of.hidden_size * (latent.kv_rank + latent.rope_head_dim + (latent.q_rank or 0))
    norms = latent.kv_rank + (latent.q_rank or 0)
    up = of.n_heads * (
        of_query * query_dim
        + latent.kv_rank * (latent.nope_head_dim + latent.value_head_dim)
        + latent.value_head_dim * of.hidden_size
    )
    yield Part("attention: by heads", of.n_layers * up, "tensor", True, of.n_layers * up)
    yield Part("attention: to latents", of.n_layers * down, "none", True, of.n_layers * down)
    yield Part("attention: norms", of.n_layers * norms, "none", False, of.n_layers * norms)


def _feed_forward(of: TransformerShape) -> Iterator[Part]:
    n_moe = moe_layers(of)
    biases = 2 * of.intermediate_size + of.hidden_size if of.mlp_bias else 0
    dense = (of.n_layers - n_moe) * (3 * of.hidden_size * of.intermediate_size + biases)
    yield Part("feed-forward", dense, "tensor", True, dense)
    expert = n_moe * 3 * of.hidden_size * of.moe_intermediate_size
    routed = of.n_experts * expert
    yield Part("experts", routed, "tensor", True, of.experts_per_token * expert)
    shared = of.n_shared_experts * expert
    yield Part("shared experts", shared, "tensor", True, shared)
    router = n_moe * of.hidden_size * of.n_experts
    yield Part("router", router, "none", False, router)


def moe_layers(of: TransformerShape) -> int:
    return of.n_layers - of.n_dense_layers if of.is_moe else 0


def active_experts(n_experts: int, experts_per_token: int, tokens: float) -> float:
    """E·(1 − (1 − k/E)^n): experts that n tokens reach together, if each takes its k at random and evenly.

    >>> active_experts(8, 2, 1), round(active_experts(8, 2, 16), 2)
    (2.0, 7.92)
    """
    missed: float = (1 - experts_per_token / n_experts) ** tokens
    return n_experts * (1 - missed)
