"""What quantisation makes faster and where, and why weights of 4 bits are not four times as fast.

A decode step of few sequences reads weights: there fewer bytes are less time. The rest of the step stays: keys and
values, sums over cards, and what is kept in 16 bits (Amdahl 1967). A prefill multiplies: it gains only where the card
has arithmetic for the type, which weights that are stored small and unpacked before do not use (Lin et al. 2024, AWQ,
arXiv:2306.00978, section 4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from diag.model import units
from diag.model.card_budget import weights_bytes
from diag.model.card_use import CardUse
from diag.model.plan import Answer, Column, Figure
from diag.model.planned_card import multiplier
from diag.model.planned_model import PlannedModel
from diag.model.precision import Precision, precision
from diag.model.serving_roofline import CardRates, ServedModel, StepTime, decode, prefill

RatesOf = Callable[[Precision], CardRates]


@dataclass(frozen=True, eq=False)
class Case:
    """A decode step and a prefill that precisions are compared at."""

    model: PlannedModel
    use: CardUse  # its weights are those that are compared against
    rates: RatesOf
    sequences: int
    context_tokens: int
    prompt_tokens: int

    def served(self, weights: Precision, kv: Precision | None = None, other: Precision | None = None) -> ServedModel:
        """Raises ValueError for a model of which only numbers are known."""
        if self.model.shape is None:
            raise ValueError("the shape of the model is not known")
        parts, use = self.model.parts, self.use
        return ServedModel(self.model.shape, parts, weights, other or use.other, kv or use.kv, use.tp)

    def decode(self, weights: Precision, kv: Precision | None = None) -> StepTime:
        return decode(self.served(weights, kv), self.rates(weights), self.sequences, self.context_tokens)

    def prefill(self, weights: Precision) -> StepTime:
        return prefill(self.served(weights), self.rates(weights), self.prompt_tokens)


def quantisation(
    case: Case, precisions: Sequence[Precision], chosen: Precision, assumptions: Sequence[str]
) -> list[Answer]:
    return [_compared(case, precisions, assumptions), _why_not(case, chosen), _cache(case)]


def _compared(case: Case, precisions: Sequence[Precision], assumptions: Sequence[str]) -> Answer:
    base = case.use.weights
    decode_ns, prefill_ns = case.decode(base).total_ns, case.prefill(base).total_ns
    decodes = [case.decode(each) for each in precisions]
    prefills = [case.prefill(each) for each in precisions]
    sizes = [weights_bytes(case.model.parts, each, case.use.other) for each in precisions]
    room = [replace(case.use, weights=each).budget(case.model) for each in precisions]
    return Answer(
        f"{case.model.name} on {units.count(case.use.tp, 'card')} of {case.use.card.name}: types of weights",
        [],
        [
            case.model.origin,
            f"A decode step of {case.sequences:,} sequences of {case.context_tokens:,} tokens, and a prompt of "
            f"{case.prompt_tokens:,} (--sequences, --context, --prompt).",
            *assumptions,
        ],
        (
            Column("decode", "x", [decode_ns / each.total_ns for each in decodes]),
            Column("prefill", "x", [prefill_ns / each.total_ns for each in prefills]),
            Column("decode step", "ns", [each.total_ns for each in decodes]),
            Column("prompt", "ns", [each.total_ns for each in prefills]),
            Column("weights", "bytes", sizes),
            Column("KV tokens", "tokens", [each.kv_tokens for each in room]),
            Column("type", "text", [_type_words(case, each) for each in precisions]),
        ),
        f"'decode' and 'prefill' are times as fast as {base.name}. Bound by: decode {_bounds(decodes)}, prompt "
        f"{_bounds(prefills)}.",
    )


def _bounds(steps: Sequence[StepTime]) -> str:
    return " or ".join(sorted({step.bound for step in steps}))


def _type_words(case: Case, of: Precision) -> str:
    by = multiplier(case.use.card, of)
    how = "unpacked to 16 bits" if by and by.is_unpacked else by.ceiling.name if by else "no arithmetic known"
    return f"{of.name}: {how}"


def _why_not(case: Case, chosen: Precision) -> Answer:
    """One after another, what takes away from the ratio of the bits."""
    base = case.use.weights
    before, after = case.decode(base), case.decode(chosen)
    sizes = [weights_bytes(case.model.parts, each, case.use.other) for each in (base, chosen)]
    by_memory = before.memory_ns / after.memory_ns
    figures = [
        Figure("by bits alone", base.bits / chosen.bits, "x", f"{base.bits} / {chosen.bits}"),
        Figure(
            "with scales",
            base.bits_with_scales / chosen.bits_with_scales,
            "x",
            f"{base.bits_with_scales:g} / ({chosen.formula})",
        ),
        Figure(
            "with what stays wide",
            sizes[0] / sizes[1],
            "x",
            f"all weights: embedding, head, norms in {case.use.other.name}",
        ),
        Figure(
            "weights as read",
            before.weights_ns / after.weights_ns,
            "x",
            "of a decode step: no embedding, experts that are used",
        ),
        Figure("with the KV cache", by_memory, "x", f"{units.time(before.kv_ns)} of keys and values stay"),
        Figure("with arithmetic and sums", before.total_ns / after.total_ns, "x", "the decode step as a whole"),
        Figure(
            "of a prompt",
            case.prefill(base).total_ns / case.prefill(chosen).total_ns,
            "x",
            f"{case.prefill(chosen).bound}-bound",
        ),
    ]
    bits, total = base.bits / chosen.bits, before.total_ns / after.total_ns
    return Answer(
        f"Why {chosen.bits} bits are not {bits:g} x as fast as {base.bits}",
        figures,
        ["Unpacking is free: kernels that are not as good lose more (--mfu, --mbu)."],
        verdict=f"A decode step is {total:.2f} x as fast, not {bits:g} x.",
    )


def _cache(case: Case) -> Answer:
    """Keys and values in one byte: what it does for the step, and for how many fit."""
    narrow = precision("fp8")
    base = case.decode(case.use.weights)
    small = case.decode(case.use.weights, narrow)
    rooms = [replace(case.use, kv=each).budget(case.model).kv_tokens for each in (case.use.kv, narrow)]
    figures = [
        Figure(
            "decode step",
            base.total_ns / small.total_ns,
            "x",
            f"{units.time(base.total_ns)} / {units.time(small.total_ns)}",
        ),
        Figure("share of KV in the step", base.kv_ns / base.total_ns, "share", f"of the step with {case.use.kv.name}"),
        Figure("KV tokens", rooms[1], "tokens", f"instead of {rooms[0]:,}"),
    ]
    return Answer("And with keys and values in FP8", figures, ["Weights as they are; prompts gain next to nothing."])
