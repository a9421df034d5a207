"""Causal attention with an online softmax: tile by tile, with two numbers for each query in the place of all scores.

For a query, let m be the largest score so far, l the sum of exp(score - m), and o the sum of exp(score - m) v. A tile
of keys with larger scores makes all three too large by exp(m_new - m_old): they shrink by that, and go on. In the end
o / l is the softmax of all scores times the values, exactly (Milakov, Gimelshein, Online normalizer calculation for
softmax, 2018; Dao et al., FlashAttention, NeurIPS 2022, algorithm 1). Tensors are (batch, heads, N, D).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any


def inverse_root(d: int) -> float:
    return 1 / sqrt(d)


def shrunk(total: Any, by: Any) -> Any:
    return total * by


def all_of(n: int, _: int) -> int:
    return n


def as_it_is(total: Any) -> Any:
    return total


@dataclass(frozen=True)
class Online:
    """Attention in operators of PyTorch. What an exercise gets wrong is a field each."""

    tile: int
    """Queries, and keys, that are worked on at once."""
    scale: Callable[[int], float] = inverse_root
    """Of scores, by the size of a head."""
    rescaled: Callable[[Any, Any], Any] = shrunk
    """The sum when scores grow, by that factor."""
    ahead: int = 0
    """How many tokens behind its own each one sees."""
    seen: Callable[[int, int], int] = all_of
    """How many of so many keys are worked on, by the size of a tile."""
    stored: Callable[[Any], Any] = as_it_is
    """Both sums between two tiles."""

    def __call__(self, q: Any, k: Any, v: Any) -> Any:
        import torch

        out = torch.empty_like(q)
        for first in range(0, q.shape[-2], self.tile):
            rows = slice(first, first + self.tile)
            out[..., rows, :] = self._rows(q[..., rows, :], k, v, first)
        return out

    def _rows(self, q: Any, k: Any, v: Any, first: int) -> Any:
        """Of one tile of queries, the first of which has that place."""
        import torch

        m = torch.full_like(q[..., :1], -inf)
        total, o = torch.zeros_like(m), torch.zeros_like(q)
        for at in range(0, min(first + q.shape[-2], self.seen(k.shape[-2], self.tile)), self.tile):
            keys = slice(at, at + self.tile)
            scores = self._scores(q, k[..., keys, :], first - at)
            larger = torch.maximum(m, scores.amax(-1, keepdim=True))
            shrink, p = (m - larger).exp(), (scores - larger).exp()
            total = self.stored(self.rescaled(total, shrink) + p.sum(-1, keepdim=True))
            o = self.stored(o * shrink + p @ v[..., keys, :])
            m = larger
        return o / total

    def _scores(self, q: Any, k: Any, offset: int) -> Any:
        """Of queries that stand `offset` behind these keys."""
        import torch

        scores = q @ k.transpose(-1, -2) * self.scale(q.shape[-1])
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1 + offset + self.ahead)
        return scores.masked_fill_(hidden, -inf)
