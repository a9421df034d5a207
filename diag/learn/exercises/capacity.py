"""Exercise 11: the figures of a plan, in which one assumption is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from diag.learn import planned
from diag.learn.lesson import Figure, Incident, Lab
from diag.model.card_budget import CardBudget, weights_bytes
from diag.model.card_use import CardUse
from diag.model.kv_cache import bytes_per_token
from diag.model.planned_model import PlannedModel
from diag.model.precision import precision

TP = 16
"""More cards than there are heads of keys and values."""
SEQUENCES = 300
"""That the plan is asked for; they fit."""


@dataclass(frozen=True)
class Plan:
    model: PlannedModel
    use: CardUse
    budget: CardBudget
    context_tokens: int = planned.CONTEXT_TOKENS


def exercise(lab: Lab, draw: random.Random) -> Incident:  # noqa: ARG001 - there is nothing to record
    fault = draw.choice(sorted(FAULTS))
    said, injected = FAULTS[fault](right())
    wanted = ("--sequences", str(SEQUENCES), "--context", str(planned.CONTEXT_TOKENS))
    command = ("plan", "memory", "--model", planned.MODEL, "--tp", str(TP), *wanted)
    return Incident(fault, [command], None, (injected,), claims(said))


def right() -> Plan:
    model, use = planned.model(), planned.use(TP)
    return Plan(model, use, use.budget(model))


def claims(of: Plan) -> list[Figure]:
    """Without their formulas, as plans are when they come by mail."""
    kv = of.model.kv
    assert kv is not None, "the shape is known"
    fit = of.budget.sequences_of(of.context_tokens)
    return [
        Figure("weights_bytes", weights_bytes(of.model.parts, of.use.weights, of.use.other), "bytes", ""),
        Figure("kv_token_bytes", bytes_per_token(kv, of.use.kv.bytes_each), "bytes", ""),
        Figure("kv_card_bytes", of.budget.kv_token_bytes, "bytes", ""),
        Figure("kv_tokens", of.budget.kv_tokens, "tokens", ""),
        Figure("sequences", fit, "sequences", ""),
    ]


# ---- one wrong assumption each -------------------------------------------------------------------------------------

Wrong = tuple[Plan, Figure]


def gqa_ignored(of: Plan) -> Wrong:
    """The model itself stays: of its KV cache alone each head of queries has keys and values."""
    kv, shape = of.model.kv, of.model.shape
    assert kv is not None
    assert shape is not None
    own = replace(of.model, kv=replace(kv, n_kv_heads=shape.n_heads))
    claimed = replace(of, model=own, budget=of.use.budget(own))
    return claimed, Figure("injected", shape.n_heads / kv.n_kv_heads, "x", "KV heads counted / KV heads")


def byte_a_parameter(of: Plan) -> Wrong:
    fp8 = replace(of.use, weights=precision("fp8"), other=precision("fp8"))
    return replace(of, use=fp8, budget=fp8.budget(of.model)), Figure("injected", 1, "bytes", "for a parameter of BF16")


def keys_alone(of: Plan) -> Wrong:
    """Half as many elements, whichever factor of them is missing."""
    kv = of.model.kv
    assert kv is not None
    half = replace(of.model, kv=replace(kv, head_dim=kv.head_dim // 2))
    budget = replace(of.budget, kv_token_bytes=of.budget.kv_token_bytes / 2)
    return replace(of, model=half, budget=budget), Figure("injected", 0.5, "share", "keys / (keys + values)")


def output_forgotten(of: Plan) -> Wrong:
    missing = Figure("injected", planned.OUTPUT_TOKENS, "tokens", "of each sequence that are left out")
    return replace(of, context_tokens=planned.PROMPT_TOKENS), missing


def all_divided(of: Plan) -> Wrong:
    kv = of.model.kv
    assert kv is not None
    each = bytes_per_token(kv, of.use.kv.bytes_each) / TP
    copies = Figure("injected", of.budget.kv_token_bytes / each, "x", "copies of each KV head, counted as one")
    return replace(of, budget=replace(of.budget, kv_token_bytes=each)), copies


def nothing_reserved(of: Plan) -> Wrong:
    use = replace(of.use, reserve_share=0.0)
    return replace(of, use=use, budget=use.budget(of.model)), Figure("injected", 0.0, "share", "of a card kept free")


FAULTS: Mapping[str, Callable[[Plan], Wrong]] = {
    each.__name__: each
    for each in (gqa_ignored, byte_a_parameter, keys_alone, output_forgotten, all_divided, nothing_reserved)
}
