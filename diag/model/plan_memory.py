"""Does a model fit: weights, workspace and graphs on each card, and how many tokens of KV cache remain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diag.model import units
from diag.model.card_budget import CardBudget, weights_bytes
from diag.model.card_use import CardUse, tensor_parallel_sizes
from diag.model.kv_cache import blocks_for, bytes_per_token, bytes_per_token_and_card, replicas, tail_tokens
from diag.model.plan import Answer, Column, Figure, whole_number
from diag.model.planned_model import PlannedModel, unaccounted

MOST_CARDS = 64
"""Sizes of a group that are tried when one does not fit."""


@dataclass(frozen=True)
class Wanted:
    """Sequences that should fit at once, each of `context_tokens`. None: not asked."""

    sequences: int | None = None
    context_tokens: int | None = None


def memory(model: PlannedModel, use: CardUse, wanted: Wanted, n_replicas: int = 1) -> Answer:
    budget = use.budget(model)
    cards = f"{units.count(use.tp, 'card')} of {use.card.name}" + (f", {n_replicas} times" if n_replicas > 1 else "")
    return Answer(
        f"{model.name} on {cards}",
        [
            *_of_weights(model, use, budget),
            *_of_cache(model, use, budget, n_replicas),
            *_of_sequences(model, use, budget, wanted, n_replicas),
        ],
        [
            model.origin,
            *use.assumptions(model),
            *(unaccounted(model.shape) if model.shape else ()),
            f"Blocks of {use.block_tokens} tokens (--block).",
        ],
        _states(model, use, budget, n_replicas),
        _verdict(model, use, budget, wanted, n_replicas),
    )


def _of_weights(model: PlannedModel, use: CardUse, budget: CardBudget) -> Iterator[Figure]:
    whole = weights_bytes(model.parts, use.weights, use.other)
    yield Figure("parameters", whole_number(model.params), "count", "of all parts")
    if model.active < 0.9 * model.params:
        yield Figure("active parameters", whole_number(model.active), "count", "that a token passes")
    linear, other = (f"{each.bits_with_scales:g}" for each in (use.weights, use.other))
    bits = f"{linear} bits" + (f" in layers, {other} elsewhere" if linear != other else "")
    yield Figure("weights", whole, "bytes", f"each x {bits}")
    yield Figure("weights on a card", budget.weights_bytes, "bytes", f"/ {use.tp}, norms and routers whole")
    yield Figure("workspace on a card", budget.workspace_bytes, "bytes", "tokens x (2h + widest) + logits")
    yield Figure("graphs on a card", budget.graphs_bytes, "bytes", "as given")
    usable = f"{units.size(budget.memory_bytes)} x (1 - {budget.reserve_share:g})"
    yield Figure("usable on a card", budget.usable_bytes, "bytes", usable)
    yield Figure("left for KV on a card", budget.kv_room_bytes, "bytes", "usable - weights - workspace - graphs")


def _of_cache(model: PlannedModel, use: CardUse, budget: CardBudget, n_replicas: int) -> Iterator[Figure]:
    if model.kv is None:
        return
    of_token = bytes_per_token(model.kv, use.kv.bytes_each)
    yield Figure(
        "KV of a token", of_token, "bytes", f"{model.kv.formula} x {use.kv.bytes_each:g} B = {of_token:,.0f} B"
    )
    copies = replicas(model.kv, use.tp)
    shared = f"/ {use.tp}" + (f", each head on {copies:g} cards" if copies > 1 else "")
    yield Figure("KV of a token on a card", budget.kv_token_bytes, "bytes", shared)
    of_one = f"{budget.n_blocks:,} blocks x {use.block_tokens}"
    times = f" x {n_replicas} replicas" if n_replicas > 1 else ""
    yield Figure("KV cache holds", budget.kv_tokens * n_replicas, "tokens", of_one + times)


def _of_sequences(
    model: PlannedModel, use: CardUse, budget: CardBudget, wanted: Wanted, n_replicas: int
) -> Iterator[Figure]:
    if model.kv is None or wanted.context_tokens is None:
        return
    context = wanted.context_tokens
    if wanted.sequences is not None:
        of_token = bytes_per_token(model.kv, use.kv.bytes_each)
        size = wanted.sequences * context * of_token
        formula = f"{wanted.sequences:,} x {context:,} x {of_token:,.0f} B = {size / (1 << 30):.1f} GiB"
        yield Figure("KV of the sequences", size, "bytes", formula)
        tail = tail_tokens(context, use.block_tokens) * wanted.sequences * of_token
        yield Figure("and in tail blocks", tail, "bytes", f"{tail_tokens(context, use.block_tokens)} empty places each")
    fit = budget.sequences_of(context) * n_replicas
    blocks = f"{budget.n_blocks:,} / {blocks_for(context, use.block_tokens):,} blocks"
    yield Figure(f"sequences of {context:,} that fit", fit, "sequences", blocks)


def _states(model: PlannedModel, use: CardUse, budget: CardBudget, n_replicas: int) -> tuple[Column, ...]:
    """Every state of the cards: whole x replicas / shards is what one card has."""
    n_cards = use.tp * n_replicas
    rows: list[tuple[str, float, float, str]] = []
    for part in model.parts:
        each = (use.weights if part.is_linear else use.other).bytes_each
        rows.append((part.name, part.count * each, part.replicas(use.tp) * n_replicas, "run"))
    if model.kv is not None:
        per_card = bytes_per_token_and_card(model.kv, use.kv.bytes_each, use.tp) * budget.kv_tokens
        copies = replicas(model.kv, use.tp)
        rows.append(("KV cache", per_card * n_cards / copies, copies, "run"))
    rows.append(("graphs", budget.graphs_bytes * n_cards, 1, "run"))
    rows.append(("workspace", budget.workspace_bytes * n_cards, 1, "step"))
    return (
        Column("on a card", "bytes", [whole * copies / n_cards for _, whole, copies, _ in rows]),
        Column("whole", "bytes", [whole for _, whole, _, _ in rows]),
        Column("x replicas", "count", [whole_number(copies) for _, _, copies, _ in rows]),
        Column("/ shards", "count", [n_cards] * len(rows)),
        Column("lifetime", "text", [lifetime for *_, lifetime in rows]),
        Column("state", "text", [name for name, *_ in rows]),
    )


def _verdict(model: PlannedModel, use: CardUse, budget: CardBudget, wanted: Wanted, n_replicas: int) -> str:
    if budget.kv_room_bytes < 0 or (model.kv is not None and budget.n_blocks == 0):
        return f"Does not fit: {_lacking(budget)}. {_larger_group(model, use)}"
    if model.kv is None:
        return f"Fits: {units.size(budget.kv_room_bytes)} remain on each card for keys and values."
    if wanted.sequences is not None and wanted.context_tokens is not None:
        fit = budget.sequences_of(wanted.context_tokens) * n_replicas
        said = f"{wanted.sequences:,} sequences of {wanted.context_tokens:,} tokens"
        if wanted.sequences > fit:
            return f"The model fits, but {said} do not: {fit:,} do."
        return f"Fits, with {said}: {fit:,} would."
    return f"Fits: {budget.kv_tokens * n_replicas:,} tokens of KV cache remain."


def _lacking(budget: CardBudget) -> str:
    if budget.kv_room_bytes >= 0:
        return "not one block of KV cache has room"
    return f"{units.size(-budget.kv_room_bytes)} too much for each card"


def _larger_group(model: PlannedModel, use: CardUse) -> str:
    """The next size of a group with room for a block, or that none up to MOST_CARDS has it."""
    for tp in tensor_parallel_sizes(model, MOST_CARDS):
        other = use.with_tp(tp).budget(model)
        if tp > use.tp and other.kv_room_bytes > 0 and (other.n_blocks or model.kv is None):
            return f"With --tp {tp} it does."
    return "Nor does it with more cards: quantise it (--dtype), or take a larger card."
