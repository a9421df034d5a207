"""Speed of light: how near the SMs and the memory system come to their peaks, and what that says of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from diag.model.tables import table

Bound = Literal["memory", "compute", "latency", "balanced"]
Side = Literal["sm", "memory"]


def bound(sm_pct: float, memory_pct: float, *, low_pct: float, apart_pct: float) -> Bound:
    """What binds a kernel: neither side reaches `low_pct` of its peak, one is `apart_pct` ahead of the other, or both.

    Source: Nsight Compute, rule SOLBottleneck.

    >>> bound(35.7, 29.5, low_pct=60, apart_pct=10), bound(62.0, 71.0, low_pct=60, apart_pct=10)
    ('latency', 'balanced')
    >>> bound(11.8, 97.5, low_pct=60, apart_pct=10), bound(75.0, 65.0, low_pct=60, apart_pct=10)
    ('memory', 'compute')
    """
    if max(sm_pct, memory_pct) < low_pct:
        return "latency"
    if abs(sm_pct - memory_pct) < apart_pct:
        return "balanced"
    return "compute" if sm_pct > memory_pct else "memory"


@cache
def parts(side: Side) -> Mapping[str, str]:
    """What the units behind a side's throughput are called, by the names of their counters."""
    return dict(table("throughput_parts.toml")[side])
