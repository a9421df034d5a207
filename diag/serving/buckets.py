"""Latencies by length of prompt: a mean over short and long requests together is that of neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model.serving_metrics import ServedRequest, completed

MOST_BUCKETS = 4
FEWEST_REQUESTS = 20
"""In a bucket: below that a P95 is the largest value."""


@dataclass(frozen=True)
class Bucket:
    """Completed requests with prompts of `least` to `most` tokens, both included."""

    least: int
    most: int
    requests: Sequence[ServedRequest]


def by_prompt_length(requests: Sequence[ServedRequest]) -> list[Bucket]:
    """Buckets of about equally many requests, ascending; prompts of one length share one. Empty where there would be
    one only: all are alike, or too few.
    """
    known = [(n, each) for each in completed(requests) if (n := each.prompt_tokens) is not None]
    wanted = min(MOST_BUCKETS, len(known) // FEWEST_REQUESTS)
    if wanted < 2:
        return []
    of = bounds(np.array([n for n, _ in known]), wanted)
    buckets = [Bucket(least, most, [each for n, each in known if least <= n <= most]) for least, most in of]
    return buckets if len(buckets) > 1 else []


def bounds(lengths: NDArray[np.int64], wanted: int) -> list[tuple[int, int]]:
    """Least and most, both included, of at most so many buckets of about equally many of (n,) lengths, ascending.

    A bucket ends with the length at its quantile, and holds all of that length.
    """
    ordered = np.sort(lengths)
    ends = np.unique(np.quantile(ordered, np.arange(1, wanted + 1) / wanted, method="higher"))
    begins = [0, *np.searchsorted(ordered, ends[:-1], side="right")]
    return [(int(ordered[begin]), int(end)) for begin, end in zip(begins, ends, strict=True)]


@dataclass(frozen=True)
class EarlyStops:
    """Completed requests that put out fewer tokens than were asked for, of those where both are known."""

    stopped: int
    known: int


def early_stops(requests: Sequence[ServedRequest]) -> EarlyStops | None:
    """None where no request says what was asked for. Two runs that stop differently compare by actual output tokens."""
    known = [each.stopped_early for each in completed(requests) if each.stopped_early is not None]
    return EarlyStops(sum(known), len(known)) if known else None
