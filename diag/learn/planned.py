"""The plan that the lesson about capacity and its exercise are of: Llama 3 70B in BF16 on H100 cards."""

from __future__ import annotations

from diag.model.card_use import CardUse
from diag.model.model_catalogue import known_model
from diag.model.planned_card import card
from diag.model.planned_model import PlannedModel, of_shape
from diag.model.precision import precision

MODEL = "llama-3-70b"
PROMPT_TOKENS = 3072
OUTPUT_TOKENS = 1024
CONTEXT_TOKENS = PROMPT_TOKENS + OUTPUT_TOKENS


def model() -> PlannedModel:
    known = known_model(MODEL)
    return of_shape(known.name, known.shape, f"Of the model: {known.source}")


def use(tp: int) -> CardUse:
    """As `diag plan memory --tp` has it where nothing else is said."""
    bf16 = precision("bf16")
    return CardUse(card("h100"), bf16, bf16, bf16, tp=tp)
