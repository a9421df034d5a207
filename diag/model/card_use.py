"""How an engine uses the cards of a replica: precisions, blocks, and what it keeps free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from diag.model import units
from diag.model.card_budget import CardBudget, weights_per_card_bytes, workspace_bytes
from diag.model.kv_cache import bytes_per_token_and_card
from diag.model.planned_card import Card
from diag.model.planned_model import PlannedModel
from diag.model.precision import Precision

GRAPHS_BYTES = 1 << 30
"""Nobody can work out beforehand what captured graphs take: engines print it after they captured them."""


@dataclass(frozen=True, eq=False)
class CardUse:
    """`workspace_bytes` None: worked out from `step_tokens` and `max_sequences`."""

    card: Card
    weights: Precision
    other: Precision
    kv: Precision
    tp: int = 1
    block_tokens: int = 16
    reserve_share: float = 0.1
    graphs_bytes: float = GRAPHS_BYTES
    workspace_bytes: float | None = None
    step_tokens: int = 8192
    max_sequences: int = 256

    def with_tp(self, tp: int) -> CardUse:
        return replace(self, tp=tp)

    def budget(self, model: PlannedModel) -> CardBudget:
        return CardBudget(
            memory_bytes=self.card.memory_bytes,
            reserve_share=self.reserve_share,
            weights_bytes=weights_per_card_bytes(model.parts, self.tp, self.weights, self.other),
            workspace_bytes=self.workspace(model),
            graphs_bytes=self.graphs_bytes,
            kv_token_bytes=bytes_per_token_and_card(model.kv, self.kv.bytes_each, self.tp) if model.kv else 0.0,
            block_tokens=self.block_tokens,
        )

    def workspace(self, model: PlannedModel) -> float:
        if self.workspace_bytes is not None:
            return self.workspace_bytes
        if model.shape is None:
            return 0.0
        return workspace_bytes(model.shape, self.step_tokens, self.max_sequences, self.tp)

    def assumptions(self, model: PlannedModel) -> Iterator[str]:
        yield (
            f"{self.card.name} with {units.size(self.card.memory_bytes)}, of which {units.share(self.reserve_share)} "
            "stay free for the CUDA context, NCCL and fragmentation (--gpu, --memory, --reserve)."
        )
        yield (
            f"Layers in {self.weights.name} ({self.weights.formula}); embedding, head, norms and routers in "
            f"{self.other.name}; keys and values in {self.kv.name} (--dtype, --other-dtype, --kv-dtype)."
        )
        yield f"Graphs: {units.size(self.graphs_bytes)}, a guess; engines print what they took (--graphs)."
        if self.workspace_bytes is None and model.shape is None:
            yield "No workspace is counted: without a model's shape nobody can work it out (--workspace)."
        elif self.workspace_bytes is None:
            yield (
                f"Workspace of a step of {self.step_tokens:,} tokens and {self.max_sequences:,} sequences "
                "(--step-tokens, --max-sequences, --workspace)."
            )


def tensor_parallel_sizes(model: PlannedModel, most: int) -> list[int]:
    """Sizes of a group up to `most`, over which the heads divide: engines refuse others."""
    heads = model.shape.n_heads if model.shape else 0
    return [tp for tp in range(1, most + 1) if heads % tp == 0] if heads else list(range(1, most + 1))
