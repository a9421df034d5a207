"""What it takes to have keys and values where they are needed: to send them, to fetch them, or to work them out anew.

A transfer takes latency + bytes / bandwidth. Where each layer is sent as soon as it is computed (Patel et al. 2024,
Splitwise, arXiv:2311.18677, section 4.3), only what the computation cannot hide lies on the critical path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Way:
    """A link from where keys and values lie."""

    name: str
    bytes_per_s: float
    latency_ns: float = 0.0


def transfer_ns(size_bytes: float, way: Way) -> float:
    """
    >>> round(transfer_ns(1 << 30, Way("network", 50e9)) / 1e6, 1)
    21.5
    """
    return way.latency_ns + size_bytes * 1e9 / way.bytes_per_s


def layerwise_ns(n_layers: int, compute_ns: float, send_ns: float) -> float:
    """End to end, when layer i is sent while i + 1 is computed: a pipeline of two stages and `n_layers` items.

    c + (L − 1)·max(c, s) + s, with c to compute and s to send a layer.

    >>> layerwise_ns(10, 3, 1), layerwise_ns(10, 1, 3), layerwise_ns(1, 1, 3)
    (31, 31, 4)
    """
    return compute_ns + (n_layers - 1) * max(compute_ns, send_ns) + send_ns


def exposed_ns(n_layers: int, compute_ns: float, send_ns: float) -> float:
    """What of the transfer lies on the critical path: never less than the last layer's.

    >>> exposed_ns(10, 3, 1), exposed_ns(10, 1, 3)
    (1, 21)
    """
    return layerwise_ns(n_layers, compute_ns, send_ns) - n_layers * compute_ns


def breakeven_tokens(way: Way, token_bytes: float, linear_ns: float, square_ns: float) -> float | None:
    """Tokens from which on fetching is faster than computing them: α + m·n/B = l·n + q·n².

    l: time of a token by its weights; q: of a pair in attention, halved. 0: fetching is always faster; None: never.

    >>> breakeven_tokens(Way("a", 1e9, latency_ns=1000), 1, 2, 0), breakeven_tokens(Way("a", 1e9), 1, 2, 0)
    (1000.0, 0.0)
    >>> breakeven_tokens(Way("a", 1e9), 3, 2, 0) is None, breakeven_tokens(Way("a", 1e9), 3, 2, 0.5)
    (True, 2.0)
    """
    slower = token_bytes * 1e9 / way.bytes_per_s - linear_ns
    if square_ns == 0:
        if slower < 0:
            return way.latency_ns / -slower
        return 0.0 if way.latency_ns == 0 and slower == 0 else None
    root = math.sqrt(slower * slower + 4 * square_ns * way.latency_ns)
    return max(0.0, (slower + root) / (2 * square_ns))
