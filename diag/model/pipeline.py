"""The bubble of a pipeline: the share of a step in which a stage has nothing to do.

Sources: Huang et al. 2019 (GPipe, arXiv:1811.06965): (p - 1)/(m + p - 1) of the step; Narayanan et al. 2021
(Megatron-LM, arXiv:2104.04473): with v model chunks on each stage the bubble is v times shorter, and a stage talks v
times as often. 1F1B has the bubble of GPipe; it needs memory for p instead of m micro-batches.
"""

from __future__ import annotations

import math


def bubble_share(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """(p - 1)/(v·m + p - 1) of the step, where every micro-batch takes every stage equally long and sending no time.

    With chunks, m is a multiple of p: only then can every stage go through its chunks in turn.

    >>> bubble_share(4, 12), bubble_share(4, 12, chunks=3), bubble_share(1, 8)
    (0.2, 0.07692307692307693, 0.0)
    """
    return (stages - 1) / (chunks * micro_batches + stages - 1)


def micro_batches_for(stages: int, share: float, chunks: int = 1) -> int:
    """The fewest micro-batches with a bubble of at most `share`: (p - 1)(1 - share)/(v·share), rounded up; with chunks
    to a multiple of p.

    >>> micro_batches_for(4, 0.2), micro_batches_for(8, 0.05), micro_batches_for(4, 0.1, chunks=3)
    (12, 133, 12)
    """
    exact = (stages - 1) * (1 - share) / (share * chunks)
    fewest = max(1, math.ceil(exact - 1e-9))
    return fewest if chunks == 1 else stages * math.ceil(fewest / stages)


def sends_per_step(stages: int, micro_batches: int, chunks: int = 1) -> int:
    """Activations forward and gradients backward that an inner stage sends; one of two stages sends half of them.

    With chunks, the last stage sends its output of all but the last chunk to the first one: all stages are inner ones.

    >>> sends_per_step(4, 12), sends_per_step(2, 12), sends_per_step(1, 12), sends_per_step(4, 12, chunks=2)
    (24, 12, 0, 48)
    """
    if stages == 1:
        return 0
    return (1 if stages == 2 and chunks == 1 else 2) * micro_batches * chunks
