"""From the options of `diag plan speculative` to a target and its draft on the same cards."""

from __future__ import annotations

from dataclasses import dataclass

from diag.cli.plan_subject import (
    ModelWords,
    RateWords,
    card_rates,
    check_tp,
    planned_card,
    planned_model,
    rate_assumptions,
    type_assumption,
    weights_of,
)
from diag.model.plan_speculative import Pair
from diag.model.planned_model import PlannedModel
from diag.model.precision import Precision, precision
from diag.model.serving_roofline import ServedModel


@dataclass(frozen=True)
class PairWords:
    target: ModelWords
    draft: ModelWords
    gpu: str
    tp: int
    dtype: str | None
    kv_dtype: str
    context_tokens: int
    rates: RateWords


def pair(of: PairWords) -> tuple[Pair, list[str]]:
    """And the assumptions, a sentence each. The draft lies on as many cards as the target, in its own precision."""
    target, draft = planned_model(of.target), planned_model(of.draft)
    on = planned_card(of.gpu, None)
    weights = weights_of(of.dtype, target)
    made = Pair(
        target=_served(target, weights, of),
        target_rates=card_rates(of.rates, on, weights, of.tp),
        draft=_served(draft, draft.stored, of),
        draft_rates=card_rates(of.rates, on, draft.stored, of.tp),
        context_tokens=of.context_tokens,
    )
    return made, [
        f"Target: {target.name} in {weights.name}. {target.origin}",
        f"Draft: {draft.name} in {draft.stored.name}, on the same cards. {draft.origin}",
        type_assumption(weights, of.kv_dtype),
        *rate_assumptions(of.rates, on, weights, of.tp),
    ]


def _served(model: PlannedModel, weights: Precision, of: PairWords) -> ServedModel:
    check_tp(model, of.tp)
    assert model.shape is not None
    return ServedModel(model.shape, model.parts, weights, precision("bf16"), precision(of.kv_dtype), of.tp)
