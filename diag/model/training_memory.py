"""What a training step keeps on a card: every state with its lifetime, its replicas and its shards.

states          2 bytes of a parameter, 2 of its gradient and 12 of AdamW in FP32 (the master copy and two moments):
                16 in all (Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054, section 3.1)
ZeRO            stage 1 shards the optimizer, 2 gradients too, 3 parameters too (the same, section 5)
FSDP            a unit is gathered whole while it is computed, and the next one ahead of it (Zhao et al. 2023,
                arXiv:2304.11277, section 3)
activations     Korthikanti et al. 2022 (arXiv:2205.05198), equations 1 to 4 for a GPT; the same count, tensor by
                tensor, for a layer of Llama's design
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from diag.model.hf_config import TransformerShape
from diag.model.parallelism import ZeroStage
from diag.model.transformer_memory import Part, kv_heads_per_card, moe_layers

PARAM_BYTES = 2
GRADIENT_BYTES = 2
MASTER_BYTES = 4
MOMENTS_BYTES = 8
ADAMW_BYTES = PARAM_BYTES + GRADIENT_BYTES + MASTER_BYTES + MOMENTS_BYTES

Recompute = Literal["none", "selective", "full"]
"""What backward works out anew: nothing; what grows with the square of the sequence; all but the input of a layer."""

Lifetime = Literal["run", "to optimizer", "to backward", "one layer"]
"""The whole run; from backward to the optimizer's step; from forward to the layer's backward; while it is computed."""


@dataclass(frozen=True)
class TrainingLayout:
    """Ranks, and what each works on at once."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    zero: ZeroStage = 0
    is_sequence_parallel: bool = False
    micro_batch: int = 1  # sequences
    sequence: int = 0  # tokens; 0: activations are not asked for
    micro_batches: int = 1  # of a replica in a step
    recompute: Recompute = "none"
    has_flash_attention: bool = True
    gradient_bytes: int = GRADIENT_BYTES
    prefetched_units: int = 1  # of FSDP, gathered ahead of the one that is computed

    @property
    def n_ranks(self) -> int:
        return self.tp * self.pp * self.dp

    @property
    def in_flight(self) -> int:
        """Micro-batches whose activations the first stage keeps (1F1B; Narayanan et al. 2021, arXiv:2104.04473)."""
        return min(self.pp, self.micro_batches)


@dataclass(frozen=True)
class State:
    """`whole_bytes` is one copy for the model and the tokens of a replica; a card holds whole x replicas / ranks."""

    name: str
    lifetime: Lifetime
    whole_bytes: float
    replicas: float  # copies among all ranks
    shards: int  # ranks

    @property
    def card_bytes(self) -> float:
        return self.whole_bytes * self.replicas / self.shards


def states(parts: Sequence[Part], shape: TransformerShape | None, layout: TrainingLayout) -> tuple[State, ...]:
    """On the first pipeline stage, which keeps the activations of most micro-batches."""
    count = sum(part.count for part in parts)
    copies = sum(part.count * part.replicas(layout.tp) for part in parts) / count
    activations = _activation_states(shape, layout) if shape and layout.sequence else ()
    gathered = _gathered(parts, shape, layout) if layout.zero == 3 and layout.dp > 1 else ()
    return (
        _model_state("parameters", "run", count * PARAM_BYTES, copies, layout, 3),
        _model_state("gradients", "to optimizer", count * layout.gradient_bytes, copies, layout, 2),
        _model_state("master copy, FP32", "run", count * MASTER_BYTES, copies, layout, 1),
        _model_state("moments of AdamW, FP32", "run", count * MOMENTS_BYTES, copies, layout, 1),
        *gathered,
        *activations,
    )


def _model_state(
    name: str, lifetime: Lifetime, whole: float, copies: float, layout: TrainingLayout, sharded_from: ZeroStage
) -> State:
    replicas = copies * (1 if layout.zero >= sharded_from else layout.dp)
    return State(name, lifetime, whole, replicas, layout.n_ranks)


def _gathered(parts: Sequence[Part], shape: TransformerShape | None, layout: TrainingLayout) -> tuple[State, ...]:
    """The unit that is computed and those fetched ahead; embedding and head are a unit that stays gathered."""
    n_units = shape.n_layers if shape else 1
    layers = sum(part.per_card(layout.tp) for part in parts if part.is_linear or part.split == "none")
    outer = sum(part.per_card(layout.tp) for part in parts) - layers
    at_once = min(n_units, 1 + layout.prefetched_units)
    own = PARAM_BYTES * (layers / n_units * at_once + outer)
    return (State("parameters gathered (FSDP)", "one layer", own, layout.n_ranks, layout.n_ranks),)


# ---- activations -----------------------------------------------------------------------------------------------------


def gpt_layer_bytes(sequence: int, batch: int, hidden: int, heads: int, tp: int = 1, *, sp: bool = False) -> float:
    """s·b·h·(10 + 24/t + 5·a·s/(h·t)) of a GPT layer in 16 bits; all of it over t with sequence parallelism.

    Equations 2 and 4 of Korthikanti et al. 2022; without tensor parallelism both are equation 1, s·b·h·(34 + 5·a·s/h).

    >>> gpt_layer_bytes(2048, 1, 12288, 96) / (2048 * 12288)
    114.0
    """
    tokens = sequence * batch * hidden
    split = tokens * (24 + 5 * heads * sequence / hidden) / tp
    return split + tokens * 10 / (tp if sp else 1)


def layer_bytes(shape: TransformerShape, layout: TrainingLayout) -> float:
    """What a layer of Llama's design keeps for its backward pass on a card, in 16 bits, without recomputation.

    Inputs and outputs of two norms: 8·s·b·h. Queries, keys, values and attention's output: 2·s·b·(2·a + 2·g)·d with g
    heads of keys and values. Gate, up, its activation and the product: 8·s·b·I. Without FlashAttention the
    probabilities, 2·a·s²·b; with it (Dao et al. 2022, arXiv:2205.14135) the sums of rows in FP32, 4·a·s·b.
    """
    tokens = layout.micro_batch * layout.sequence
    norms = 8 * tokens * shape.hidden_size / (layout.tp if layout.is_sequence_parallel else 1)
    kv_heads = kv_heads_per_card(shape.n_kv_heads, layout.tp)
    projections = 2 * tokens * (2 * shape.n_heads / layout.tp + 2 * kv_heads) * shape.head_dim
    feed_forward = 8 * tokens * _mean_width(shape) / layout.tp
    return norms + projections + feed_forward + attention_bytes(shape, layout)


def attention_bytes(shape: TransformerShape, layout: TrainingLayout) -> float:
    """Of a layer on a card: what FlashAttention and selective recomputation are about."""
    per_row = layout.micro_batch * layout.sequence * shape.n_heads / layout.tp
    saves_probabilities = not layout.has_flash_attention and layout.recompute == "none"
    return per_row * (2 * layout.sequence if saves_probabilities else 4)


def _mean_width(shape: TransformerShape) -> float:
    """Of the feed-forward part that a token passes, over the layers."""
    n_moe = moe_layers(shape)
    experts = (shape.experts_per_token + shape.n_shared_experts) * shape.moe_intermediate_size
    return ((shape.n_layers - n_moe) * shape.intermediate_size + n_moe * experts) / shape.n_layers


def _activation_states(shape: TransformerShape, layout: TrainingLayout) -> tuple[State, ...]:
    layer = layer_bytes(shape, layout)
    n_layers = -(-shape.n_layers // layout.pp) * layout.in_flight
    tokens = layout.micro_batch * layout.sequence
    if layout.recompute == "full":
        inputs = 2 * tokens * shape.hidden_size / (layout.tp if layout.is_sequence_parallel else 1)
        kept: tuple[State, ...] = (
            _on_every("inputs of layers", "to backward", inputs * n_layers, layout),
            _on_every("a layer, recomputed", "one layer", layer, layout),
        )
    else:
        kept = (_on_every("activations of layers", "to backward", layer * n_layers, layout),)
    # 4 bytes a logit (Korthikanti et al., section 4.3), once more for the gradient; on the last stage only.
    logits = 8 * tokens * shape.vocab_size / layout.tp if layout.pp == 1 else 0.0
    return (*kept, *([_on_every("logits and their gradient", "to backward", logits, layout)] if logits else []))


def _on_every(name: str, lifetime: Lifetime, card_bytes: float, layout: TrainingLayout) -> State:
    """What each rank has of its own tokens and heads."""
    return State(name, lifetime, card_bytes * layout.n_ranks, 1, layout.n_ranks)


# ---- peaks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peaks:
    """Of a card, in bytes, at the moments of a step when most lies there."""

    between_steps: float
    start_of_backward: float
    optimizer: float

    @property
    def largest(self) -> float:
        return max(self.between_steps, self.start_of_backward, self.optimizer)


def peaks(of: Sequence[State], layout: TrainingLayout) -> Peaks:
    """Gradients lie there at the start of backward only when earlier micro-batches have added to them."""

    def total(*lifetimes: Lifetime) -> float:
        return sum(each.card_bytes for each in of if each.lifetime in lifetimes)

    persistent, gradients = total("run"), total("to optimizer")
    of_step = total("to backward", "one layer")
    carried = gradients if layout.micro_batches > 1 else 0.0
    return Peaks(persistent, persistent + of_step + carried, persistent + gradients)
