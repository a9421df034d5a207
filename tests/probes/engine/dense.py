"""The same decoder without a cache: whole sequences, whole score matrices, FP64. Written to be compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from diag.model.hf_config import TransformerShape
from diag.probes.engine.decoder import DecoderWeights, LayerWeights

SHAPE = TransformerShape(
    hidden_size=32, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=8, intermediate_size=48, vocab_size=40,
    max_position_embeddings=512,
)  # fmt: skip
"""Small enough to be computed a thousand times in a test."""


def log_probabilities(weights: DecoderWeights, shape: TransformerShape, tokens: Sequence[int]) -> Tensor:
    """[tokens, vocabulary] of what follows each token."""
    x = weights.embedding[torch.tensor(tokens)].double()
    for layer in weights.layers:
        x = x + _attention(layer, shape, _norm(x, layer.attention_norm, shape))
        y = _norm(x, layer.feed_forward_norm, shape)
        gate = y @ layer.gate.double().T
        x = x + (gate * torch.sigmoid(gate) * (y @ layer.up.double().T)) @ layer.down.double().T
    return (_norm(x, weights.norm, shape) @ weights.head.double().T).log_softmax(1)


def _attention(layer: LayerWeights, shape: TransformerShape, x: Tensor) -> Tensor:
    n, width = len(x), shape.head_dim
    outputs = []
    for head in range(shape.n_heads):
        kv_head = head // (shape.n_heads // shape.n_kv_heads)
        q = _projected(x, layer.query, layer.query_bias, head, width)
        k = _projected(x, layer.key, layer.key_bias, kv_head, width)
        v = _projected(x, layer.value, layer.value_bias, kv_head, width)
        if layer.query_norm is not None and layer.key_norm is not None:
            q, k = _norm(q, layer.query_norm, shape), _norm(k, layer.key_norm, shape)
        scores = _turned(q, shape) @ _turned(k, shape).T / math.sqrt(width)
        hidden_from = torch.ones(n, n, dtype=torch.bool).triu(1)
        outputs.append(scores.masked_fill(hidden_from, -math.inf).softmax(1) @ v)
    return torch.cat(outputs, 1) @ layer.output.double().T


def _projected(x: Tensor, weight: Tensor, bias: Tensor | None, head: int, width: int) -> Tensor:
    rows = slice(head * width, head * width + width)
    y = x @ weight[rows].double().T
    return y if bias is None else y + bias[rows].double()


def _turned(x: Tensor, shape: TransformerShape) -> Tensor:
    """As multiplication with complex numbers."""
    half = shape.head_dim // 2
    speeds = torch.tensor([shape.rope_theta ** (-2 * i / shape.head_dim) for i in range(half)], dtype=torch.float64)
    angles = torch.arange(len(x), dtype=torch.float64)[:, None] * speeds
    turned = torch.complex(x[:, :half], x[:, half:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat((turned.real, turned.imag), 1)


def _norm(x: Tensor, weight: Tensor, shape: TransformerShape) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + shape.rms_norm_eps).sqrt() * weight.double()
