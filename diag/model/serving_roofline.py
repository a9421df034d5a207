"""How long a prefill and a decode step take at least, from the roofline: operations over FLOP/s, bytes over bytes/s.

A token passes every active weight: 2 FLOPs each (Kaplan et al. 2020, arXiv:2001.08361, section 2.1). Attention adds,
for each layer, 2·2·d·a of every pair of a token with an earlier one. A decode step reads all weights that its tokens
pass once, and all cached keys and values; a prefill does so too, but its arithmetic takes longer (Pope et al. 2022,
arXiv:2211.05102, section 2). Each matrix that is split over cards ends in a sum over them: two all-reduces a layer
(Shoeybi et al. 2019, arXiv:1909.08053).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from diag.model.collective import Primitive
from diag.model.collective import time_ns as collective_ns
from diag.model.hf_config import TransformerShape
from diag.model.kv_cache import KvShape, bytes_per_token_and_card
from diag.model.precision import Precision
from diag.model.transformer_memory import Part, active_experts, active_params

ACTIVATION_BYTES = 2
CALLS_OF_A_LAYER = 2


@dataclass(frozen=True)
class CardRates:
    """What one card sustains, and what joins it to the others of its group."""

    flops_per_s: float  # of the arithmetic that multiplies the weights
    memory_bytes_per_s: float
    bus_bytes_per_s: float  # of a collective; only read with several cards
    call_ns: float  # of the smallest all-reduce


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model as it lies on the cards of one replica."""

    shape: TransformerShape
    parts: Sequence[Part]
    weights: Precision  # of matrices in the layers
    other: Precision  # of embedding, head, norms and routers
    kv: Precision
    tp: int = 1

    @property
    def kv_token_bytes(self) -> float:
        """Of a token on one card."""
        return bytes_per_token_and_card(KvShape.of(self.shape), self.kv.bytes_each, self.tp)

    def with_tp(self, tp: int) -> ServedModel:
        return ServedModel(self.shape, self.parts, self.weights, self.other, self.kv, tp)


@dataclass(frozen=True)
class StepTime:
    """Parts of a step. Arithmetic and memory traffic go on at once, communication does not."""

    compute_ns: float
    weights_ns: float
    kv_ns: float
    communication_ns: float

    @property
    def memory_ns(self) -> float:
        return self.weights_ns + self.kv_ns

    @property
    def total_ns(self) -> float:
        return max(self.compute_ns, self.memory_ns) + self.communication_ns

    @property
    def bound(self) -> Literal["compute", "memory", "communication"]:
        if self.communication_ns > max(self.compute_ns, self.memory_ns):
            return "communication"
        return "compute" if self.compute_ns > self.memory_ns else "memory"


def prefill(model: ServedModel, rates: CardRates, tokens: float, cached: float = 0.0) -> StepTime:
    """Of one prompt, alone on the replica; `cached` tokens before it have their keys and values already."""
    flops = prefill_flops(model, tokens, cached)
    return StepTime(
        compute_ns=flops / model.tp / rates.flops_per_s * 1e9,
        weights_ns=_weights_ns(model, rates, tokens),
        kv_ns=(tokens + cached) * model.kv_token_bytes / rates.memory_bytes_per_s * 1e9,
        communication_ns=_communication_ns(model, rates, tokens),
    )


def prefill_flops(model: ServedModel, tokens: float, cached: float = 0.0) -> float:
    """2·P·n, the head for the last token only, and 4·a·d·L·(n·c + n²/2) of attention, which looks back only."""
    head = sum(part.active for part in model.parts if part.name in ("output head", "embedding"))
    of_weights = 2 * ((active_params(model.parts) - head) * tokens + head)
    pairs = tokens * cached + tokens**2 / 2
    return of_weights + _flops_of_a_pair(model.shape) * pairs


def decode(
    model: ServedModel, rates: CardRates, sequences: float, context_tokens: float, new_tokens: int = 1
) -> StepTime:
    """One step of so many sequences, each of `context_tokens` on average; `new_tokens` > 1 verifies a draft."""
    tokens = sequences * new_tokens
    flops = 2 * active_params(model.parts) * tokens + _flops_of_a_pair(model.shape) * tokens * context_tokens
    return StepTime(
        compute_ns=flops / model.tp / rates.flops_per_s * 1e9,
        weights_ns=_weights_ns(model, rates, tokens),
        kv_ns=sequences * context_tokens * model.kv_token_bytes / rates.memory_bytes_per_s * 1e9,
        communication_ns=_communication_ns(model, rates, tokens),
    )


def compute_bound_from(model: ServedModel, rates: CardRates) -> float:
    """Sequences from which on multiplying takes longer than reading the weights, KV cache aside: the ridge point.

    F·w / (2·B) with F FLOP/s, B bytes/s and w bytes that are read of each active parameter.
    """
    read_bytes = rates.memory_bytes_per_s * _weights_ns(model, rates, float("inf")) / 1e9
    return rates.flops_per_s * read_bytes * model.tp / (2 * active_params(model.parts) * rates.memory_bytes_per_s)


def _flops_of_a_pair(shape: TransformerShape) -> float:
    """Scores and their product with the values: 2 FLOPs for each element of both, in all heads and layers."""
    if (latent := shape.latent_attention) is not None:
        dims = latent.nope_head_dim + latent.rope_head_dim + latent.value_head_dim
        return 2 * dims * shape.n_heads * shape.n_layers
    return 4 * shape.head_dim * shape.n_heads * shape.n_layers


def weights_read_bytes(model: ServedModel, tokens: float) -> float:
    """Of one card in a step of so many tokens: all but rows of the embedding, and experts that no token is sent to."""
    return sum(_read_share(model.shape, part, tokens) * _card_bytes(model, part) for part in model.parts)


def _read_share(shape: TransformerShape, part: Part, tokens: float) -> float:
    if part.name == "experts":
        return active_experts(shape.n_experts, shape.experts_per_token, tokens) / shape.n_experts
    return 1.0 if part.active else 0.0


def _card_bytes(model: ServedModel, part: Part) -> float:
    return part.per_card(model.tp) * (model.weights if part.is_linear else model.other).bytes_each


def _weights_ns(model: ServedModel, rates: CardRates, tokens: float) -> float:
    return weights_read_bytes(model, tokens) / rates.memory_bytes_per_s * 1e9


def _communication_ns(model: ServedModel, rates: CardRates, tokens: float) -> float:
    """α + k·M/B of each all-reduce; M is the hidden state of the tokens of the step."""
    if model.tp == 1:
        return 0.0
    size = tokens * model.shape.hidden_size * ACTIVATION_BYTES
    call_ns = collective_ns(Primitive.ALL_REDUCE, size, model.tp, rates.bus_bytes_per_s, rates.call_ns)
    return CALLS_OF_A_LAYER * model.shape.n_layers * call_ns
