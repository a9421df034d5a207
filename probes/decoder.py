"""A small decoder of Llama's design: RMSNorm, rotary positions, grouped-query attention, SwiGLU, a cache of keys.

Touvron et al. 2023 (arXiv:2307.09288); RoPE: Su et al. 2021 (arXiv:2104.09864); GQA: Ainslie et al. 2023
(arXiv:2305.13245); SwiGLU: Shazeer 2020 (arXiv:2002.05202).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

EPSILON = 1e-5
THETA = 10_000.0


@dataclass(frozen=True)
class Sizes:
    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int  # width of SwiGLU
    vocabulary: int

    @property
    def head(self) -> int:
        return self.width // self.heads


class Decoder(nn.Module):
    """One token of each sequence at a time, at position `context`, after as many in the cache."""

    def __init__(self, sizes: Sizes, batch: int, context: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes, batch, context) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.width, EPSILON)
        self.to_logits = nn.Linear(sizes.width, sizes.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch,) → (batch, vocabulary)."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.to_logits(self.norm(x))
        return logits


class Block(nn.Module):
    def __init__(self, sizes: Sizes, batch: int, context: int) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(sizes.width, EPSILON)
        self.attention = Attention(sizes, batch, context)
        self.feed_forward_norm = nn.RMSNorm(sizes.width, EPSILON)
        self.feed_forward = SwiGlu(sizes)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        y: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return y


class Attention(nn.Module):
    keys: Tensor
    values: Tensor
    cosines: Tensor
    sines: Tensor

    def __init__(self, sizes: Sizes, batch: int, context: int) -> None:
        super().__init__()
        self.sizes = sizes
        self.context = context
        kv_width = sizes.kv_heads * sizes.head
        self.to_query = nn.Linear(sizes.width, sizes.width, bias=False)
        self.to_key_value = nn.Linear(sizes.width, 2 * kv_width, bias=False)
        self.to_output = nn.Linear(sizes.width, sizes.width, bias=False)
        cache = (batch, sizes.kv_heads, context + 1, sizes.head)
        self.register_buffer("keys", torch.randn(cache))
        self.register_buffer("values", torch.randn(cache))
        angles = context * THETA ** (-torch.arange(0, sizes.head, 2) / sizes.head)
        self.register_buffer("cosines", angles.cos().repeat(2))
        self.register_buffer("sines", angles.sin().repeat(2))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, width) → the same. The last place of the cache is that of this token."""
        sizes, n = self.sizes, len(x)
        query = self._rotated(self.to_query(x).view(n, sizes.heads, sizes.head))
        key, value = self.to_key_value(x).view(n, 2, sizes.kv_heads, sizes.head).unbind(1)
        self.keys[:n, :, self.context] = self._rotated(key)
        self.values[:n, :, self.context] = value
        # Query heads of a group go through the cache together, as rows of one small matrix.
        grouped = query.view(n, sizes.kv_heads, sizes.heads // sizes.kv_heads, sizes.head)
        attended = scaled_dot_product_attention(grouped, self.keys[:n], self.values[:n])
        y: Tensor = self.to_output(attended.reshape(n, sizes.width))
        return y

    def _rotated(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * self.cosines + torch.cat((-second, first), -1) * self.sines


class SwiGlu(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.to_gate = nn.Linear(sizes.width, sizes.inner, bias=False)
        self.to_inner = nn.Linear(sizes.width, sizes.inner, bias=False)
        self.to_output = nn.Linear(sizes.inner, sizes.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.to_output(silu(self.to_gate(x)) * self.to_inner(x))
        return y


class PaddedGraphs:
    """A CUDA graph for each of some numbers of sequences; a batch runs in the next larger one, the rest is padding."""

    def __init__(self, model: Decoder, sizes: tuple[int, ...]) -> None:
        self._tokens = {size: torch.zeros(size, dtype=torch.long, device="cuda") for size in sizes}
        self._graphs: dict[int, Any] = {}
        self._logits: dict[int, Tensor] = {}
        for size, tokens in self._tokens.items():
            self._warm_up(model, tokens)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._logits[size] = model(tokens)
            self._graphs[size] = graph

    @staticmethod
    def _warm_up(model: Decoder, tokens: Tensor) -> None:
        """In another stream, as capturing wants it: libraries allocate when they are first used."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            model(tokens)
        torch.cuda.current_stream().wait_stream(stream)

    def __call__(self, tokens: Tensor) -> Tensor:
        size = min(each for each in self._graphs if each >= len(tokens))
        self._tokens[size][: len(tokens)].copy_(tokens)
        self._graphs[size].replay()
        return self._logits[size][: len(tokens)]
