"""What a step has to do at least, in closed form: FLOPs of its products, bytes of weights and cache. No tensors here.

With h the hidden size, H and K the heads of queries and of keys, D their size, I the inner size, V the vocabulary, L
the layers; a multiply-add is two FLOPs, and everything but products is left out, as it is usual (Kaplan et al. 2020,
arXiv:2001.08361, section 2.1):

    weights of a layer    w = 2·h·H·D + 2·h·K·D + 3·h·I
    GEMMs                 2·w·L FLOPs a token, and 2·h·V for each row whose logits are needed
    attention             4·H·D·L FLOPs for each pair of a query and a key that it sees: a chunk of n tokens that
                          begins at position s has n·s + n(n+1)/2 pairs
    KV                    2·K·D·L elements a token: n written; s + n read, once for all n queries

Decode (n = 1) reads all weights for a token of each sequence: 2 FLOPs for each element of a weight and each row, so
that it is bound by memory until the batch has some hundreds of rows. Prefill, with n in the hundreds, is bound by
arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from diag.model.hf_config import TransformerShape
from diag.model.kv_cache import KvShape, elements_per_token

Span: TypeAlias = tuple[int, int]
"""Of a chunk: position of its first token, number of tokens."""


@dataclass(frozen=True)
class StepWork:
    """The cache is read once for a chunk, weights once for a step. Activations stay out: they are small beside both."""

    gemm_flops: int
    attention_flops: int
    weight_bytes: int  # read
    kv_read_bytes: int
    kv_written_bytes: int

    @property
    def flops(self) -> int:
        return self.gemm_flops + self.attention_flops

    @property
    def n_bytes(self) -> int:
        return self.weight_bytes + self.kv_read_bytes + self.kv_written_bytes

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.n_bytes


def work(spans: Sequence[Span], n_logits: int, shape: TransformerShape, element_bytes: int) -> StepWork:
    """Of the chunks of a step, of which so many rows need logits. Rows of padding are none of it: they are waste.

    >>> llama_8b = TransformerShape(4096, 32, 32, 8, 128, 14336, 128256, 131072)
    >>> decode = work([(4095, 1)], 1, llama_8b, element_bytes=2)
    >>> decode.flops, decode.kv_read_bytes, round(decode.intensity, 2)
    (17156800512, 536870912, 1.1)
    """
    n_tokens = sum(n for _, n in spans)
    pairs = visible_pairs(spans)
    of_layer, of_head = layer_weights(shape), shape.hidden_size * shape.vocab_size
    kv_token_bytes = elements_per_token(KvShape.of(shape)) * element_bytes
    return StepWork(
        gemm_flops=2 * n_tokens * of_layer * shape.n_layers + 2 * n_logits * of_head,
        attention_flops=4 * shape.n_heads * shape.head_dim * shape.n_layers * pairs,
        weight_bytes=element_bytes * (of_layer * shape.n_layers + (of_head if n_logits else 0)) if spans else 0,
        kv_read_bytes=kv_token_bytes * sum(start + n for start, n in spans),
        kv_written_bytes=kv_token_bytes * n_tokens,
    )


def layer_weights(shape: TransformerShape) -> int:
    """Elements of a layer's matrices; vectors such as norms are left out."""
    heads = 2 * (shape.n_heads + shape.n_kv_heads) * shape.head_dim
    return shape.hidden_size * (heads + 3 * shape.intermediate_size)


def visible_pairs(spans: Iterable[Span]) -> int:
    """Of a query and a key at its position or before.

    >>> visible_pairs([(0, 4), (10, 1)])
    21
    """
    return sum(n * start + n * (n + 1) // 2 for start, n in spans)
