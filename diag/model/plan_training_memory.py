"""Does a training step fit: every state of a card with its lifetime, replicas and shards, and the peaks of a step."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.plan import Answer, Column, Figure, whole_number
from diag.model.planned_card import Card
from diag.model.planned_model import PlannedModel
from diag.model.training_memory import ADAMW_BYTES, GRADIENT_BYTES, TrainingLayout, peaks, states


def training(model: PlannedModel, card: Card, reserve_share: float, layout: TrainingLayout) -> Answer:
    of = states(model.parts, model.shape, layout)
    most = peaks(of, layout)
    usable = card.memory_bytes * (1 - reserve_share)
    per_param = ADAMW_BYTES - GRADIENT_BYTES + layout.gradient_bytes
    parts = f"2 parameter + {layout.gradient_bytes} gradient + 4 master copy + 8 moments"
    figures = [
        Figure("parameters", whole_number(model.params), "count", "of all parts"),
        Figure("states of one copy", model.params * per_param, "bytes", f"{per_param} B each: {parts}"),
        Figure("between steps, a card", most.between_steps, "bytes", "what lives for the whole run"),
        Figure("start of backward, a card", most.start_of_backward, "bytes", "and activations" + _carried(layout)),
        Figure("optimizer step, a card", most.optimizer, "bytes", "whole run + gradients"),
        Figure("usable on a card", usable, "bytes", f"{units.size(card.memory_bytes)} x (1 - {reserve_share:g})"),
    ]
    return Answer(
        f"Training {model.name} on {layout.n_ranks:,} x {card.name}: {_words(layout)}",
        figures,
        [model.origin, *_assumptions(model, card, reserve_share, layout)],
        (
            Column("on a card", "bytes", [each.card_bytes for each in of]),
            Column("whole", "bytes", [each.whole_bytes for each in of]),
            Column("x replicas", "count", [whole_number(each.replicas) for each in of]),
            Column("/ shards", "count", [each.shards for each in of]),
            Column("lifetime", "text", [each.lifetime for each in of]),
            Column("state", "text", [each.name for each in of]),
        ),
        _verdict(most.largest, usable, layout),
    )


def _carried(layout: TrainingLayout) -> str:
    return ", gradients of earlier micro-batches" if layout.micro_batches > 1 else ""


def _words(layout: TrainingLayout) -> str:
    return f"tp {layout.tp} x pp {layout.pp} x dp {layout.dp}, ZeRO {layout.zero}"


def _verdict(peak: float, usable: float, layout: TrainingLayout) -> str:
    if peak <= usable:
        return f"Fits: {units.size(usable - peak)} remain at the peak of a step."
    ways = [
        *(["--zero 3"] if layout.zero < 3 and layout.dp > 1 else []),
        *(["--recompute full"] if layout.recompute != "full" and layout.sequence else []),
        "more ranks (--tp, --pp, --dp)",
    ]
    return f"Does not fit: {units.size(peak - usable)} too much at the peak of a step. Try {' or '.join(ways)}."


def _assumptions(model: PlannedModel, card: Card, reserve_share: float, layout: TrainingLayout) -> Iterator[str]:
    yield (
        f"{card.name} with {units.size(card.memory_bytes)}, of which {units.share(reserve_share)} stay free for the "
        "CUDA context, NCCL and fragmentation (--gpu, --memory, --reserve)."
    )
    yield (
        "Lifetimes: the whole run; from backward to the optimizer's step; from forward to the backward of its layer; "
        "while one layer is computed."
    )
    yield "AdamW in mixed precision: parameters in 16 bits, a master copy and two moments in FP32."
    if layout.zero == 3:
        yield (
            f"FSDP gathers a layer and {layout.prefetched_units} ahead of it (--prefetch); embedding and head stay "
            "gathered."
        )
    if layout.pp > 1:
        yield "Stages hold equal parts; the first one keeps activations of as many micro-batches as there are stages."
    if not layout.sequence:
        yield "No activations are counted: name the tokens of a sequence (--seq)."
    elif model.shape is None:
        yield "No activations are counted: without a model's shape nobody can work them out (--model, --config)."
    else:
        attention = "FlashAttention" if layout.has_flash_attention else "attention that keeps its probabilities"
        yield (
            f"{layout.micro_batch} x {layout.sequence:,} tokens a micro-batch, {attention}, recomputation: "
            f"{layout.recompute} (--micro-batch, --seq, --no-flash, --recompute)."
        )
