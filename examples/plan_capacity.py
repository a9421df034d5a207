"""A capacity plan in Python: 70 billion parameters on eight H100s, from what fits to what a request costs.

    python examples/plan_capacity.py

The same formulas answer `diag plan memory` and `diag plan serving`; docs/capacity.md works the case to a decision. It
needs neither a GPU nor PyTorch.
"""

from __future__ import annotations

from dataclasses import replace

from diag.model.card_use import CardUse
from diag.model.deployment import Objectives
from diag.model.model_catalogue import known_model
from diag.model.plan_serving import Layout, Load, best_of, lay_out
from diag.model.planned_card import card, multiplier
from diag.model.planned_model import PlannedModel, of_shape
from diag.model.planned_requests import Requests, lengths
from diag.model.precision import precision
from diag.model.serving_roofline import CardRates

CARDS = 8
DOLLARS_PER_HOUR = 2.5
REQUESTS_PER_S = 6.0
REACHED_FLOPS, REACHED_BANDWIDTH = 0.6, 0.8
"""Shares of the printed peaks; `diag calibrate` measures those of a card."""


def load() -> Load:
    """Chats: prompts of about 1,000 tokens, answers of about 250, both with a long tail."""
    requests = Requests.drawn(lengths("prompt", "lognormal:1000:0.8"), lengths("output", "lognormal:250:0.8"), seed=0)
    objectives = Objectives(ttft_ns=1e9, tpot_ns=50e6)
    return Load(requests, REQUESTS_PER_S, objectives, 0.01, 0.8, DOLLARS_PER_HOUR, seed=0)


def rates(use: CardUse) -> CardRates:
    by = multiplier(use.card, use.weights)
    assert by is not None
    assert use.card.memory_bytes_per_s is not None
    assert use.card.nvlink_bytes_per_s is not None
    return CardRates(
        flops_per_s=by.ceiling.per_s * REACHED_FLOPS,
        memory_bytes_per_s=use.card.memory_bytes_per_s * REACHED_BANDWIDTH,
        bus_bytes_per_s=use.card.nvlink_bytes_per_s * REACHED_BANDWIDTH,
        call_ns=10_000,
    )


def layouts(model: PlannedModel, use: CardUse) -> list[Layout]:
    """All eight cards as one replica, as two, and so on."""
    sizes = [replace(use, tp=tp) for tp in (8, 4, 2, 1)]
    return [lay_out(model, each, rates(each), CARDS // each.tp, load()) for each in sizes]


def told(layout: Layout) -> str:
    if layout.best is None:
        return f"{layout.name:9} no room for it" if not layout.fits else f"{layout.name:9} misses the objectives"
    admitted = layout.rate_per_s * load().safety
    cost = 1000 * CARDS * DOLLARS_PER_HOUR / (admitted * 3600)
    return f"{layout.name:9} {admitted:5.1f} requests/s, {cost:5.2f} $ for 1,000 requests"


def main() -> None:
    known = known_model("llama-3.1-70b")
    model = of_shape(known.name, known.shape, known.source)
    bf16 = precision("bf16")
    for weights in (bf16, precision("fp8")):
        use = CardUse(card("h100"), weights, other=bf16, kv=bf16)
        found = layouts(model, use)
        print(f"Weights in {weights.name}")
        for layout in found:
            print(f"  {told(layout)}")
        if (best := best_of(found)) is not None:
            print(f"  Take {best.name}.")


if __name__ == "__main__":
    main()
