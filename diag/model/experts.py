"""Experts of a mixture: how many tokens one may take, and which are dropped.

Source: Lepikhin et al. 2021 (GShard, arXiv:2006.16668) and Fedus, Zoph, Shazeer 2022 (Switch Transformer,
arXiv:2101.03961): the capacity of an expert is its share of the tokens if all got alike, times a factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def capacity(tokens: int, n_experts: int, top_k: int = 1, factor: float = 1.0) -> int:
    """⌈factor · tokens · k / E⌉: most tokens that one expert takes.

    >>> capacity(4096, 64, top_k=2, factor=1.25), capacity(10, 4)
    (160, 3)
    """
    # A product such as 1.1 x 10 is a hair above its decimal value: that is no further token.
    return math.ceil(round(factor * tokens * top_k / n_experts, 9))


@dataclass(frozen=True)
class ExpertLoad:
    """How a given load fits a capacity."""

    assigned: int  # tokens that the router sent, each counted for every expert that it was sent to
    dropped: int
    imbalance: float  # largest load over the mean: without a capacity, every expert waits for that one
    padded: int  # places of experts that stay empty, computed or sent all the same

    @property
    def dropped_share(self) -> float:
        return self.dropped / self.assigned if self.assigned else 0.0


def load(tokens_of_experts: Sequence[int], capacity: int) -> ExpertLoad:
    """
    >>> load([300, 100, 100, 12], 160)
    ExpertLoad(assigned=512, dropped=140, imbalance=2.34375, padded=268)
    """
    assigned = sum(tokens_of_experts)
    return ExpertLoad(
        assigned=assigned,
        dropped=sum(max(0, tokens - capacity) for tokens in tokens_of_experts),
        imbalance=max(tokens_of_experts) * len(tokens_of_experts) / assigned if assigned else 1.0,
        padded=sum(max(0, capacity - tokens) for tokens in tokens_of_experts),
    )
