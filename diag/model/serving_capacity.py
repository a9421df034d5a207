"""How many requests are in flight, and how many a pool of KV blocks can hold.

Little 1961: requests in flight are arrivals per second x seconds that each stays, whatever the distributions.

How many fit is asked of the distribution itself. A request holds blocks for its prompt and for the tokens it has put
out so far; at a random moment a slot is more likely to be at a long output than at a short one (by its share of the
steps), and it is anywhere in it. So `simulate` draws, for many moments, a request for each slot by its number of output
tokens and a place in it evenly, and adds the blocks up. Neither P50 nor P99 of the lengths can tell that sum: it is
narrower than a single length, and P99 of each would be held by all at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model.planned_requests import Requests

MOST_SLOTS = 1 << 14
CELLS = 1 << 23
"""Slots x moments that are drawn: 64 MB."""
MOMENTS = 4096
FEWEST_MOMENTS = 512


def in_flight(requests_per_s: float, seconds: float) -> float:
    """L = λ·W.

    >>> in_flight(8, 6)
    48
    """
    return requests_per_s * seconds


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Blocks that slots hold at random moments. `held_blocks` is (moments, slots): the first i slots together."""

    held_blocks: NDArray[np.int64]

    def overflow_share(self, slots: int, n_blocks: int) -> float:
        """Of the moments, those in which so many slots want more blocks than there are."""
        return float(np.mean(self.held_blocks[:, slots - 1] > n_blocks)) if slots else 0.0

    def largest_concurrency(self, n_blocks: int, overflow_share: float) -> int:
        """Most slots that want more than there is in at most this share of the moments."""
        shares: NDArray[np.float64] = np.mean(self.held_blocks > n_blocks, axis=0)  # grows with the slots
        return int(np.count_nonzero(shares <= overflow_share))

    @property
    def most_slots(self) -> int:
        return int(self.held_blocks.shape[1])


def simulate(requests: Requests, block_tokens: int, slots: int, seed: int) -> Occupancy:
    """Raises ValueError for no requests."""
    if not len(requests):
        raise ValueError("no request says how long it is")
    slots = min(slots, MOST_SLOTS)
    moments = max(FEWEST_MOMENTS, min(MOMENTS, CELLS // slots))
    random = np.random.default_rng(seed)
    cumulative = np.cumsum(requests.output_tokens)
    drawn = np.searchsorted(cumulative, random.integers(0, cumulative[-1], (moments, slots)), side="right")
    put_out = random.integers(0, requests.output_tokens[drawn]) + 1
    blocks = -(-(requests.prompt_tokens[drawn] + put_out) // block_tokens)
    return Occupancy(np.cumsum(blocks, axis=1))


def slots_worth_drawing(requests: Requests, block_tokens: int, n_blocks: int) -> int:
    """More than will ever fit: twice the pool over the mean blocks of a request in the middle of its output."""
    weights = requests.output_tokens / requests.output_tokens.sum()
    held = (requests.prompt_tokens + requests.output_tokens / 2) / block_tokens
    return max(1, min(MOST_SLOTS, int(2 * n_blocks / max(1.0, float(weights @ held))) + 8))


def concurrency_by_percentile(requests: Requests, block_tokens: int, n_blocks: int, percentile: float) -> int:
    """What people get who take every request to be as long as one percentile; kept to be compared with."""
    tokens = int(np.ceil(np.percentile(requests.total_tokens, percentile)))
    return n_blocks // -(-tokens // block_tokens)


def mean_context_tokens(requests: Requests) -> float:
    """Tokens that a running sequence has, at a random step: prompt + half of the output, by its share of the steps."""
    weights = requests.output_tokens / requests.output_tokens.sum()
    return float(weights @ (requests.prompt_tokens + (requests.output_tokens + 1) / 2))
