"""Collectives in closed form: how many bytes of each a rank moves, how long that takes, and two bandwidths of it.

The size of a call is counted as nccl-tests counts it, and called `size_bytes` everywhere (M in formulas): the buffer of
one rank for all-reduce, broadcast, reduce and send/receive; the *whole* buffer, of which every rank has or gets a part,
for all-gather, reduce-scatter, all-to-all, gather and scatter.

Algorithm bandwidth is M / time: how fast the caller's data are done. Bus bandwidth is k·M / time with the factor k
of the primitive: how fast the busiest link must have been. Only the second can be held against a link, and neither is
ever mixed with the other. Volumes are those of algorithms that move the least (ring); a tree moves as much per rank.

Sources: nccl-tests, doc/PERFORMANCE.md (both bandwidths, the factors); Thakur, Rabenseifner, Gropp 2005
(doi:10.1177/1094342005051521); Patarasuk, Yuan 2009 (doi:10.1016/j.jpdc.2008.09.002): no all-reduce moves less.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Primitive(enum.StrEnum):
    """What a group of ranks does together. The values stand in the case, in `comm_measurement.op`."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    GATHER = "gather"
    SCATTER = "scatter"
    SEND_RECV = "send_recv"

    @property
    def words(self) -> str:
        """As people write it.

        >>> Primitive.ALL_REDUCE.words, Primitive.SEND_RECV.words
        ('all-reduce', 'send/receive')
        """
        return "send/receive" if self is Primitive.SEND_RECV else self.value.replace("_", "-")


_SHARED_OUT = frozenset(
    {Primitive.ALL_GATHER, Primitive.REDUCE_SCATTER, Primitive.ALL_TO_ALL, Primitive.GATHER, Primitive.SCATTER}
)
"""Of whose M every rank has a part of its own already, which need not move."""


def bus_factor(primitive: Primitive, n_ranks: int) -> float:
    """k: bytes that the busiest rank sends for each byte of M. 0 for a rank alone, which sends to nobody.

    >>> bus_factor(Primitive.ALL_REDUCE, 8), bus_factor(Primitive.ALL_GATHER, 8), bus_factor(Primitive.BROADCAST, 8)
    (1.75, 0.875, 1.0)
    >>> bus_factor(Primitive.BROADCAST, 1)
    0.0
    """
    if n_ranks == 1:
        return 0.0
    if primitive is Primitive.ALL_REDUCE:
        return 2 * (n_ranks - 1) / n_ranks
    return (n_ranks - 1) / n_ranks if primitive in _SHARED_OUT else 1.0


def volume_bytes(primitive: Primitive, size_bytes: float, n_ranks: int) -> float:
    """k·M: what the busiest rank sends in one call. An all-reduce is a reduce-scatter and an all-gather.

    >>> volume_bytes(Primitive.ALL_REDUCE, 2e9, 8)
    3500000000.0
    """
    return bus_factor(primitive, n_ranks) * size_bytes


def algorithm_bytes_per_s(size_bytes: float, time_ns: float) -> float:
    """M / time."""
    return size_bytes * 1e9 / time_ns


def bus_bytes_per_s(primitive: Primitive, size_bytes: float, n_ranks: int, time_ns: float) -> float:
    """k·M / time.

    >>> bus_bytes_per_s(Primitive.ALL_REDUCE, 2e9, 8, 10e6)
    350000000000.0
    """
    return volume_bytes(primitive, size_bytes, n_ranks) * 1e9 / time_ns


def time_ns(
    primitive: Primitive, size_bytes: float, n_ranks: int, bus_bytes_per_s: float, latency_ns: float = 0.0
) -> float:
    """α + k·M / B: `latency_ns` is α, what the smallest call takes, and `bus_bytes_per_s` is B.

    >>> time_ns(Primitive.ALL_REDUCE, 2e9, 8, 350e9), time_ns(Primitive.ALL_REDUCE, 2e9, 8, 40e9)
    (10000000.0, 87500000.0)
    """
    return latency_ns + volume_bytes(primitive, size_bytes, n_ranks) * 1e9 / bus_bytes_per_s


def latency_bound_below_bytes(primitive: Primitive, n_ranks: int, bus_bytes_per_s: float, latency_ns: float) -> float:
    """M at which α is half of the time: α·B / k. Smaller calls wait more than they move.

    >>> latency_bound_below_bytes(Primitive.ALL_REDUCE, 8, 350e9, 20_000)
    4000000.0
    """
    return latency_ns * bus_bytes_per_s / (bus_factor(primitive, n_ranks) * 1e9)


@dataclass(frozen=True)
class Signature:
    """What one way of spreading work over ranks makes each of them communicate, in every step alike."""

    name: str  # e.g. 'tensor parallel, row linear, forward'
    group: str  # who takes part: 'tp', 'pp', 'dp', 'ep', 'cp', or the name of another group
    n_ranks: int  # of the group
    primitive: Primitive
    payload: str  # what moves, in words: 'partial sums of activations'
    size_bytes: float  # of one call, as nccl-tests counts it
    calls: float  # of one rank in a step
    is_critical: bool  # what needs the result comes next: nothing is there to hide the call behind
    formula: str  # of `size_bytes` and `calls`

    @property
    def call_volume_bytes(self) -> float:
        """What the busiest rank sends in one call."""
        return volume_bytes(self.primitive, self.size_bytes, self.n_ranks)

    @property
    def step_volume_bytes(self) -> float:
        """What the busiest rank sends in a step."""
        return self.calls * self.call_volume_bytes

    def call_ns(self, bus_bytes_per_s: float, latency_ns: float = 0.0) -> float:
        """Of a call that nothing disturbs; 0 in a group of one, which calls nobody."""
        if self.n_ranks == 1:
            return 0.0
        return time_ns(self.primitive, self.size_bytes, self.n_ranks, bus_bytes_per_s, latency_ns)

    def step_ns(self, bus_bytes_per_s: float, latency_ns: float = 0.0) -> float:
        """Of all calls of a step, one after the other."""
        return self.calls * self.call_ns(bus_bytes_per_s, latency_ns)
