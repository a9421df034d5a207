"""Context parallelism: a sequence cut over ranks, and what attention then has to move.

Ring attention passes keys and values on from rank to rank while each works on those that it has. Ulysses exchanges
sequence for heads before attention, and back after it.

Sources: Liu, Zaharia, Abbeel 2023 (ring attention, arXiv:2310.01889); Jacobs et al. 2023 (DeepSpeed Ulysses,
arXiv:2309.14509).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RingStep:
    """One of the `n_ranks` steps of a layer's forward pass on one rank: it attends to a block, and sends it on."""

    moved_bytes: float  # keys and values of the block
    flops: float  # of both products


def ring_step(
    n_ranks: int, sequence: int, hidden: int, element_bytes: int, *, kv_share: float = 1.0, is_causal: bool = False
) -> RingStep:
    """Of one sequence of `sequence` tokens. `kv_share`: key and value heads over query heads.

    Bytes 2·(S/n)·h·kv_share·e, FLOPs 4·(S/n)²·h, half of that where masked parts are skipped and the load is even.

    >>> ring_step(8, 131_072, 8192, 2)
    RingStep(moved_bytes=536870912.0, flops=8796093022208.0)
    """
    tokens = sequence / n_ranks
    flops = 4 * tokens**2 * hidden * (0.5 if is_causal else 1.0)
    return RingStep(2 * tokens * hidden * kv_share * element_bytes, flops)


def tokens_to_hide(
    bytes_per_s: float, flops_per_s: float, element_bytes: int, *, kv_share: float = 1.0, is_causal: bool = False
) -> float:
    """Tokens on each rank from which on compute hides the ring: F·e·kv_share / (2·B), twice that where causal.

    Neither the hidden size nor the number of ranks matters: both terms grow with them alike.

    >>> tokens_to_hide(50e9, 400e12, 2), tokens_to_hide(350e9, 400e12, 2)
    (8000.0, 1142.857142857143)
    """
    return flops_per_s * element_bytes * kv_share / (2 * bytes_per_s) * (2 if is_causal else 1)


def ulysses_bytes(n_ranks: int, sequence: int, hidden: int, element_bytes: int, *, kv_share: float = 1.0) -> float:
    """What a rank sends in a layer's forward pass: four all-to-alls of its tokens, of queries, keys, values and output.

    (n - 1)/n · (S/n)·h·e · (2 + 2·kv_share): a ring sends n/2 times as much where kv_share is 1.

    >>> ulysses_bytes(8, 131_072, 8192, 2) / (7 * ring_step(8, 131_072, 8192, 2).moved_bytes)
    0.25
    """
    buffer = sequence / n_ranks * hidden * element_bytes
    return (n_ranks - 1) / n_ranks * buffer * (2 + 2 * kv_share)
