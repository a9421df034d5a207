"""A decoder of Llama's design, for all rows of a step at once, whatever sequences they belong to.

Touvron et al. 2023 (arXiv:2307.09288). RMSNorm: Zhang, Sennrich 2019 (arXiv:1910.07467); RoPE: Su et al. 2021
(arXiv:2104.09864); GQA: Ainslie et al. 2023 (arXiv:2305.13245); SwiGLU: Shazeer 2020 (arXiv:2002.05202). For each layer

    x ← x + W_o · attention(norm(x))          x ← x + W_down · (silu(W_gate · norm(x)) ∘ W_up · norm(x))

Weights are matrices [out, in], as checkpoints have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, rms_norm, silu

from diag.model.hf_config import RopeScaling, TransformerShape
from diag.probes.engine.attention import Attend
from diag.probes.engine.kv_cache import KvCache


@dataclass(frozen=True)
class LayerWeights:
    attention_norm: Tensor  # [hidden]
    query: Tensor  # [heads · D, hidden]
    key: Tensor  # [kv_heads · D, hidden]
    value: Tensor  # the same
    output: Tensor  # [hidden, heads · D]
    feed_forward_norm: Tensor  # [hidden]
    gate: Tensor  # [inner, hidden]
    up: Tensor  # the same
    down: Tensor  # [hidden, inner]
    query_bias: Tensor | None = None  # Qwen2
    key_bias: Tensor | None = None
    value_bias: Tensor | None = None
    query_norm: Tensor | None = None  # [D], Qwen3
    key_norm: Tensor | None = None


@dataclass(frozen=True)
class DecoderWeights:
    embedding: Tensor  # [vocabulary, hidden]
    layers: Sequence[LayerWeights]
    norm: Tensor  # [hidden]
    head: Tensor  # [vocabulary, hidden]; the embedding itself where both are tied


class Decoder:
    """Weights and shape. `compiled`: torch.compile fuses what lies between two attentions to a few kernels."""

    def __init__(self, shape: TransformerShape, weights: DecoderWeights, *, compiled: bool = False) -> None:
        self.shape, self.weights = shape, weights
        self.frequencies = frequencies(shape).to(weights.embedding.device)
        self._project: Callable[..., Any] = torch.compile(project) if compiled else project
        self._feed_forward: Callable[..., Any] = torch.compile(feed_forward) if compiled else feed_forward

    @property
    def device(self) -> torch.device:
        return self.weights.embedding.device

    def hidden(self, tokens: Tensor, positions: Tensor, slots: Tensor, cache: KvCache, attend: Attend) -> Tensor:
        """[rows, hidden] of rows [rows]; their keys and values are in the cache afterwards."""
        x = self.weights.embedding[tokens]
        turn = rotation(positions, self.frequencies, x.dtype)
        for layer, weights in enumerate(self.weights.layers):
            q, k, v = self._project(x, weights, self.shape, turn)
            cache.write(layer, slots, k, v)
            attended = attend(q, cache.keys(layer), cache.values(layer)).flatten(1)
            x = self._feed_forward(x + linear(attended, weights.output), weights, self.shape.rms_norm_eps)
        return _norm(x, self.weights.norm, self.shape.rms_norm_eps)

    def logits(self, hidden: Tensor) -> Tensor:
        """[rows, hidden] → [rows, vocabulary], in FP32 or wider, as sampling wants them."""
        return _wide(linear(hidden, self.weights.head))


def project(
    x: Tensor, weights: LayerWeights, shape: TransformerShape, turn: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries [rows, heads, D], keys and values [rows, kv_heads, D] of x [rows, hidden]; the first two rotated."""
    y = _norm(x, weights.attention_norm, shape.rms_norm_eps)
    q = linear(y, weights.query, weights.query_bias).unflatten(1, (shape.n_heads, shape.head_dim))
    k = linear(y, weights.key, weights.key_bias).unflatten(1, (shape.n_kv_heads, shape.head_dim))
    v = linear(y, weights.value, weights.value_bias).unflatten(1, (shape.n_kv_heads, shape.head_dim))
    if weights.query_norm is not None and weights.key_norm is not None:
        q, k = _norm(q, weights.query_norm, shape.rms_norm_eps), _norm(k, weights.key_norm, shape.rms_norm_eps)
    return rotated(q, turn), rotated(k, turn), v


def feed_forward(x: Tensor, weights: LayerWeights, epsilon: float) -> Tensor:
    """SwiGLU, with the sum around it."""
    y = _norm(x, weights.feed_forward_norm, epsilon)
    return x + linear(silu(linear(y, weights.gate)) * linear(y, weights.up), weights.down)


def frequencies(shape: TransformerShape) -> Tensor:
    """θ^(-2i/D) for i < D/2 in FP64, by which a position turns each pair, stretched as the model asks."""
    half = shape.head_dim // 2
    plain = shape.rope_theta ** (-torch.arange(half, dtype=torch.float64) / half)
    return plain if shape.rope_scaling is None else _stretched(plain, shape.rope_scaling)


def _stretched(plain: Tensor, of: RopeScaling) -> Tensor:
    """'linear': all pairs (Chen et al. 2023, arXiv:2306.15595). 'llama3': slow pairs, with a ramp to the fast ones
    (Llama 3.1; `_compute_llama3_parameters` in transformers, `modeling_rope_utils.py`)."""
    factor = of.factor or 1.0
    if of.kind == "linear":
        return plain / factor
    low, high = of.low_freq_factor or 1.0, of.high_freq_factor or 4.0
    turns = (of.original_max_position_embeddings or 8192) * plain / (2 * math.pi)  # within the length of training
    share = ((turns - low) / (high - low)).clamp(0, 1)  # of a pair's own frequency
    return share * plain + (1 - share) * plain / factor


def rotation(positions: Tensor, frequencies: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines [rows, 1, D/2]: angles in FP64, rounded once."""
    angles = positions[:, None, None] * frequencies
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotated(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """[rows, heads, D]: element i and its partner i + D/2 are turned."""
    cosines, sines = turn
    first, second = x.chunk(2, -1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), -1)


def _norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return rms_norm(x, weight.shape, weight, epsilon)


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()
