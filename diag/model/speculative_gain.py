"""What speculative decoding gains: a draft of K tokens, verified by the target in one step.

Leviathan et al. 2023 (arXiv:2211.17192), equation 1 and theorem 3.8: if each drafted token is accepted with probability
α, independently, a verification yields 1 + α + … + α^K tokens, the last one the target's own. It costs K steps of the
draft and one of the target that has K + 1 tokens of each sequence, which is as fast as a step of one token only while
the step is bound by memory.
"""

from __future__ import annotations

HALVINGS = 60


def tokens_per_verification(acceptance: float, drafted: int) -> float:
    """1 + α + … + α^K.

    >>> tokens_per_verification(0.5, 2), tokens_per_verification(1.0, 4), tokens_per_verification(0.0, 4)
    (1.75, 5.0, 1.0)
    """
    return float(sum(acceptance**power for power in range(drafted + 1)))


def cost(drafted: int, draft_cost: float, verify_cost: float) -> float:
    """K·c + v, in steps of the target without speculation."""
    return drafted * draft_cost + verify_cost


def speedup(acceptance: float, drafted: int, draft_cost: float, verify_cost: float) -> float:
    """
    >>> round(speedup(0.8, 4, 0.05, 1.0), 2), speedup(0.0, 4, 0.25, 1.0)
    (2.8, 0.5)
    """
    return tokens_per_verification(acceptance, drafted) / cost(drafted, draft_cost, verify_cost)


def breakeven_acceptance(drafted: int, draft_cost: float, verify_cost: float) -> float | None:
    """The α at which nothing is gained, by halving; None: not even with every token accepted.

    >>> round(breakeven_acceptance(1, 0.25, 1.0), 6), breakeven_acceptance(4, 1.0, 2.0)
    (0.25, None)
    """
    if speedup(1.0, drafted, draft_cost, verify_cost) < 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if speedup(middle, drafted, draft_cost, verify_cost) >= 1 else (middle, high)
    return high


def acceptance_of(accepted: float, drafted: float, per_draft: int) -> float:
    """α of tokens that were accepted out of drafts of K: α + α² + … + α^K = K · accepted / drafted, by halving.

    >>> round(acceptance_of(0.75 * 100, 2 * 100, 2), 6)
    0.5
    """
    share = min(1.0, accepted / drafted) * per_draft
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if tokens_per_verification(middle, per_draft) - 1 >= share else (middle, high)
    return high
