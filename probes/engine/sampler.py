"""Which token follows: greedy, by temperature, among the top k, among the most likely that add up to p.

Every way of choosing is a distribution over the vocabulary (greedy: all of it on one token), and one number between 0
and 1 draws from it. That number is worked out from the seed and the position of the token alone, so that a token does
not depend on which other sequences are computed beside it, nor on how often its sequence was preempted. (Its logits
still do by their last bits, as sums are ordered by the size of a batch.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from diag.probes.engine.sequence import SamplingParams

Purpose: TypeAlias = Literal["token", "accept"]

_UNIFORM_BYTES = 6


def uniform(seed: int, position: int, purpose: Purpose = "token") -> float:
    """In [0, 1), one of 2⁴⁸ values: FP64 holds its product with any sum exactly enough to stay below that sum.

    >>> uniform(1, 7) == uniform(1, 7), uniform(1, 7) == uniform(1, 8)
    (True, False)
    """
    digest = blake2b(f"{purpose} {seed} {position}".encode(), digest_size=_UNIFORM_BYTES).digest()
    return int.from_bytes(digest, "little") / 256.0**_UNIFORM_BYTES


def probabilities(logits: Tensor, samplings: Sequence[SamplingParams]) -> Tensor:
    """[rows, vocabulary] in FP64, as each row's parameters ask: softmax(logits / temperature), then top k, then top p.

    Top k keeps the k likeliest, of equal ones those that come first in the vocabulary. Top p keeps as few of the
    likeliest as add up to p at least (Holtzman et al. 2020, arXiv:1904.09751, section 3.1), of what top k left.
    """
    logits = logits.double()
    if all(each.temperature <= 0 for each in samplings):
        return _greedy(logits)
    is_greedy = torch.tensor([[each.temperature <= 0] for each in samplings], device=logits.device)
    return torch.where(is_greedy, _greedy(logits), _drawn(logits, samplings))


def _greedy(logits: Tensor) -> Tensor:
    return torch.zeros_like(logits).scatter_(1, logits.argmax(1, keepdim=True), 1.0)


def _drawn(logits: Tensor, samplings: Sequence[SamplingParams]) -> Tensor:
    temperatures = _column([each.temperature if each.temperature > 0 else 1.0 for each in samplings], logits)
    shares = ((logits - logits.amax(1, keepdim=True)) / temperatures).softmax(1)
    vocabulary = logits.shape[1]
    if all(each.top_k <= 0 and each.top_p >= 1 for each in samplings):
        return shares
    ordered, tokens = shares.sort(dim=1, descending=True, stable=True)
    ranks = torch.arange(vocabulary, device=logits.device)
    ordered = ordered * (ranks < _column([each.top_k if each.top_k > 0 else vocabulary for each in samplings], logits))
    ordered = ordered / ordered.sum(1, keepdim=True)
    before = ordered.cumsum(1) - ordered  # what the likelier ones add up to
    most = _column([each.top_p if each.top_p < 1 else math.inf for each in samplings], logits)
    kept = (before < most) | (ranks == 0)
    ordered = ordered * kept
    return torch.zeros_like(shares).scatter_(1, tokens, ordered / ordered.sum(1, keepdim=True))


def drawn(shares: Tensor, uniforms: Sequence[float]) -> Tensor:
    """Tokens [rows], int64, by the inverse of each row's cumulative distribution; `shares` need not add up to 1."""
    cumulative = shares.double().cumsum(1)
    targets = _column(uniforms, cumulative) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, targets, right=True)[:, 0]


def choose(logits: Tensor, samplings: Sequence[SamplingParams], positions: Sequence[int]) -> Tensor:
    """Tokens [rows] of logits [rows, vocabulary]; `positions` are those that the tokens will have."""
    if all(each.temperature <= 0 for each in samplings):
        return logits.argmax(1)
    uniforms = [uniform(each.seed, position) for each, position in zip(samplings, positions, strict=True)]
    return drawn(probabilities(logits, samplings), uniforms)


def best(logits: Tensor, n: int) -> tuple[tuple[int, float], ...]:
    """The n likeliest tokens of one row [vocabulary] with their log-probabilities, likeliest first."""
    shares, tokens = logits.double().log_softmax(0).topk(min(n, len(logits)))
    return tuple(zip(tokens.tolist(), shares.tolist(), strict=True))


def _column(values: Sequence[float], like: Tensor) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, device=like.device)[:, None]
