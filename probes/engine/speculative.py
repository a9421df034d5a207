"""Speculative decoding: guesses of the next tokens are checked in one pass, and the output is distributed as without.

Leviathan, Kalman, Matias 2023 (arXiv:2211.17192), algorithm 1. With p the distribution of the model and q the one that
a draft x was drawn from:

    accept x with probability min(1, p(x) / q(x)); where it is refused, draw instead from max(0, p − q), normalised

Then a token is x with probability min(q, p) + (1 − Σ min(q, p)) · max(0, p − q) / Σ max(0, p − q) = p(x), as
1 − Σ min(q, p) = Σ max(0, p − q): what is written is exactly p, whatever q is (appendix A.1). When all drafts are
accepted, the model's own distribution behind the last of them gives one token more for nothing.

A guess that was looked up rather than drawn has q(x) = 1. Then it is accepted with probability p(x), and a refused one
leaves p without x. To draw y from p and accept where y = x does the same, and more: y is the token that would have
been drawn without any draft, from the same number, so that a seed gives the same text with speculation as without.
Greedy decoding has all of p on one token and gives the same text either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from diag.probes.engine.sampler import drawn, uniform


@dataclass(frozen=True)
class Verdict:
    tokens: tuple[int, ...]  # accepted drafts, then one more
    n_accepted: int


def check_guesses(drafts: Sequence[int], chosen: Sequence[int]) -> Verdict:
    """`chosen`: what the model gives at the position of each draft, and behind the last: one more than drafts.

    >>> check_guesses((5, 6, 7), (5, 6, 9, 1))
    Verdict(tokens=(5, 6, 9), n_accepted=2)
    """
    n = next((i for i, (draft, token) in enumerate(zip(drafts, chosen, strict=False)) if draft != token), len(drafts))
    return Verdict(tuple(chosen[: n + 1]), n)


def check_drawn(target: Tensor, proposed: Tensor, drafts: Sequence[int], *, seed: int, position: int) -> Verdict:
    """`target` [drafts + 1, vocabulary] is p, `proposed` [drafts, vocabulary] q; `position` is that of the first draft.

    Draft i must have been drawn from `proposed[i]`, by numbers other than `uniform(seed, …)` for this purpose.
    """
    for i, draft in enumerate(drafts):
        p, q = target[i], proposed[i]
        if uniform(seed, position + i, "accept") * float(q[draft]) >= float(p[draft]):
            return Verdict((*drafts[:i], _drawn(_rest(p, q), seed, position + i)), i)
    return Verdict((*drafts, _drawn(target[len(drafts)], seed, position + len(drafts))), len(drafts))


def _rest(p: Tensor, q: Tensor) -> Tensor:
    """max(0, p − q). It is nothing but rounding where both are equal: then p itself will do."""
    rest = torch.clamp(p - q, min=0)
    return rest if float(rest.sum()) > 0 else p


def _drawn(shares: Tensor, seed: int, position: int) -> int:
    return int(drawn(shares[None], [uniform(seed, position)])[0])
