"""How a collective is carried out: a ring, a pair of binary trees, or in levels, and which is faster when.

A ring moves the least and waits for every rank in turn; a tree waits for its depth only. A pair of trees in which the
leaves of one are the inner ranks of the other uses every link as well as a ring does, so that a tree is never
worse for small calls and a little worse for large ones. Where ranks share fast domains on a slow network, levels send
each byte over the network once per domain.

α here is that of *one hop*: a message from a rank to its neighbour. Chunks of a pipeline, and the protocol changes of
NCCL by size, are left out: use the fit of measurements for those (`diag.model.collective_fit`).

Sources: Thakur, Rabenseifner, Gropp 2005 (doi:10.1177/1094342005051521) for rounds; Sanders, Speck, Träff 2009
(doi:10.1016/j.parco.2009.09.001) for two trees, which NCCL has since 2.4 for all-reduce.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from diag.model.collective import Primitive, volume_bytes

Algorithm = Literal["ring", "tree"]
Level = Literal["domain", "network"]

_WITH_TREES = frozenset({Primitive.ALL_REDUCE, Primitive.BROADCAST, Primitive.REDUCE})


FEWEST_FOR_TREES = 4


@dataclass(frozen=True)
class Cost:
    """What one algorithm takes."""

    algorithm: Algorithm
    hops: int  # one after the other
    moved_bytes: float  # by the busiest rank

    def time_ns(self, bytes_per_s: float, hop_ns: float) -> float:
        """`bytes_per_s`: of the link of a rank, one direction."""
        return self.hops * hop_ns + self.moved_bytes * 1e9 / bytes_per_s


def ring(primitive: Primitive, size_bytes: float, n_ranks: int) -> Cost:
    """
    >>> ring(Primitive.ALL_REDUCE, 2e9, 8)
    Cost(algorithm='ring', hops=14, moved_bytes=3500000000.0)
    """
    return Cost("ring", ring_hops(primitive, n_ranks), volume_bytes(primitive, size_bytes, n_ranks))


def ring_hops(primitive: Primitive, n_ranks: int) -> int:
    """Rounds of a ring; of an all-to-all, in each of which a rank serves another one.

    >>> ring_hops(Primitive.ALL_REDUCE, 8), ring_hops(Primitive.ALL_GATHER, 8), ring_hops(Primitive.SEND_RECV, 8)
    (14, 7, 1)
    """
    if primitive is Primitive.SEND_RECV:
        return min(1, n_ranks - 1)
    return (2 if primitive is Primitive.ALL_REDUCE else 1) * (n_ranks - 1)


def tree(primitive: Primitive, size_bytes: float, n_ranks: int) -> Cost | None:
    """A pair of binary trees; None for a primitive in which ranks get different data, which no tree can combine, and
    for fewer than four ranks, whose trees have as many hops as their ring.

    Half of the data goes down (or up) each tree. A rank sends both halves once on the way up, as a leaf or as an inner
    rank, and as an inner rank one half to each of two others on the way down.

    >>> tree(Primitive.ALL_REDUCE, 2e9, 8)
    Cost(algorithm='tree', hops=6, moved_bytes=4000000000.0)
    """
    if primitive not in _WITH_TREES or n_ranks < FEWEST_FOR_TREES:
        return None
    ways = 2 if primitive is Primitive.ALL_REDUCE else 1
    return Cost("tree", ways * depth(n_ranks), ways * size_bytes)


def depth(n_ranks: int) -> int:
    """Of a binary tree.

    >>> depth(1), depth(2), depth(8), depth(9)
    (0, 1, 3, 4)
    """
    return math.ceil(math.log2(n_ranks))


def crossover_bytes(primitive: Primitive, n_ranks: int, bytes_per_s: float, hop_ns: float) -> float | None:
    """M up to which the tree is faster than the ring; infinite where it always is, None where there is no tree.

    For all-reduce α·B·N·(N - 1 - ⌈log2 N⌉): the hops that a tree saves, over the 2/N of M that it moves in addition.

    >>> round(crossover_bytes(Primitive.ALL_REDUCE, 8, 350e9, 1000))
    11200000
    """
    one = tree(primitive, 1.0, n_ranks)
    if one is None:
        return None
    base = ring(primitive, 1.0, n_ranks)
    saved_ns = (base.hops - one.hops) * hop_ns
    extra_ns_per_byte = (one.moved_bytes - base.moved_bytes) * 1e9 / bytes_per_s
    if extra_ns_per_byte <= 0:
        return math.inf if saved_ns > 0 else 0.0
    return saved_ns / extra_ns_per_byte


@dataclass(frozen=True)
class Phase:
    """One of the collectives that a collective over levels is made of."""

    level: Level
    primitive: Primitive
    size_bytes: float  # as nccl-tests counts it
    n_ranks: int

    @property
    def moved_bytes(self) -> float:
        """By the busiest rank, on links of that level."""
        return volume_bytes(self.primitive, self.size_bytes, self.n_ranks)


def in_levels(primitive: Primitive, size_bytes: float, domain_ranks: int, n_domains: int) -> tuple[Phase, ...]:
    """The phases of a collective of `domain_ranks` x `n_domains` ranks, one after the other.

    All ranks of a domain use the network at once, each for its own part of the data. An all-to-all has no levels: its
    two phases, which are of the same call, are what stays inside and what leaves.

    >>> [phase.moved_bytes / 1e9 for phase in in_levels(Primitive.ALL_REDUCE, 8e9, 8, 2)]
    [7.0, 1.0, 7.0]
    """
    part = size_bytes / domain_ranks
    inside = Phase("domain", Primitive.REDUCE_SCATTER, size_bytes, domain_ranks)
    across = Phase("network", primitive, part, n_domains)
    outside = Phase("domain", Primitive.ALL_GATHER, size_bytes, domain_ranks)
    match primitive:
        case Primitive.ALL_REDUCE:
            return inside, across, outside
        case Primitive.REDUCE_SCATTER:
            return inside, across
        case Primitive.ALL_GATHER:
            return across, outside
        case Primitive.ALL_TO_ALL:
            return (
                Phase("domain", primitive, size_bytes / n_domains, domain_ranks),
                Phase("network", primitive, size_bytes, n_domains),
            )
        case Primitive.SEND_RECV:  # both ends in one domain, or not: the slower way counts
            return (Phase("network", primitive, size_bytes, 2 if n_domains > 1 else 1),)
        case Primitive.GATHER | Primitive.SCATTER:  # one rank has all data, of which a domain has its part
            return (
                Phase("network", primitive, size_bytes, n_domains),
                Phase("domain", primitive, size_bytes / n_domains, domain_ranks),
            )
        case _:  # one rank has all data: it crosses the network once, then spreads inside
            return Phase("network", primitive, size_bytes, n_domains), Phase(
                "domain", primitive, size_bytes, domain_ranks
            )
