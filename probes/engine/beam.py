"""Beam search: the `width` likeliest sequences go on together, a token at a time.

A hypothesis that ends by a stop token is set aside. The search is over when `width` are, or at the longest output.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Continuation:
    beam: int  # index of the one that it continues
    token: int
    log_probability: float  # of all output, this token included


@dataclass(frozen=True)
class Selection:
    alive: list[Continuation]  # at most `width`, likeliest first
    ended: list[Continuation]  # by a stop token


def select(
    log_probabilities: Sequence[float],
    candidates: Sequence[Sequence[tuple[int, float]]],
    width: int,
    stop_tokens: Collection[int],
) -> Selection:
    """What continues the beams, out of the likeliest tokens after each.

    `log_probabilities`: (beams,), of their output so far; `candidates`: (beams, n), token and log-probability. With
    n ≥ 2 width and one stop token, `width` continue. An end counts only if it is likelier than the last that continues.
    """
    ranked = sorted(
        (
            Continuation(beam, token, so_far + log_probability)
            for beam, (so_far, best) in enumerate(zip(log_probabilities, candidates, strict=True))
            for token, log_probability in best
        ),
        key=lambda each: -each.log_probability,
    )
    selection = Selection([], [])
    for each in ranked:
        if len(selection.alive) == width:
            break
        (selection.ended if each.token in stop_tokens else selection.alive).append(each)
    return selection
