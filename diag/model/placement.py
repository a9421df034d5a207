"""Which ranks form which group, and which groups stay inside one NVLink domain.

Ranks count through the axes in the usual order, the axis that talks most innermost: tensor, context, data, pipeline
(Narayanan et al. 2021, arXiv:2104.04473, section 3: tensor parallel inside of a node, pipeline across). Expert
groups are cut out of context and data together, neighbours first. Domains are filled with consecutive ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diag.model.collective import Primitive, Signature
from diag.model.collective_algorithms import in_levels

Axis = Literal["tp", "cp", "ep", "dp", "pp"]

AXES: tuple[Axis, ...] = ("tp", "cp", "ep", "dp", "pp")

MOST_RANKS = 1 << 20


@dataclass(frozen=True)
class Layout:
    """Sizes of the groups of each axis. Experts take no ranks of their own: `ep` divides `cp` x `dp`."""

    tp: int = 1
    cp: int = 1
    ep: int = 1
    dp: int = 1
    pp: int = 1

    @property
    def n_ranks(self) -> int:
        return self.tp * self.cp * self.dp * self.pp

    @property
    def fault(self) -> str | None:
        """What cannot be about it; None: nothing."""
        if min(self.tp, self.cp, self.ep, self.dp, self.pp) < 1 or self.n_ranks > MOST_RANKS:
            return f"groups have one rank or more, and a job {MOST_RANKS:,} at most"
        if (self.cp * self.dp) % self.ep:
            return f"ep {self.ep} does not divide cp x dp = {self.cp * self.dp}, of whose ranks its groups are made"
        return None

    def size(self, axis: Axis) -> int:
        """Ranks of a group; gradients are summed over the ranks of context and data together."""
        return self.cp * self.dp if axis == "dp" else int(getattr(self, axis))

    def stride(self, axis: Axis) -> int:
        """Ranks between neighbours of a group.

        >>> layout = Layout(tp=8, dp=16, pp=4)
        >>> layout.stride("tp"), layout.stride("dp"), layout.stride("pp")
        (1, 8, 128)
        """
        if axis == "tp":
            return 1
        return self.tp * self.cp * self.dp if axis == "pp" else self.tp


@dataclass(frozen=True)
class Placement:
    """Where the groups of an axis lie. With several ways to lie, the worst group speaks for the axis."""

    axis: Axis
    n_ranks: int  # of a group
    stride: int
    n_domains: int  # that a group reaches into
    domain_ranks: int  # fewest of its ranks in one of those

    @property
    def is_inside(self) -> bool:
        return self.n_domains == 1


def placements(layout: Layout, domain_gpus: int) -> tuple[Placement, ...]:
    """Of every axis with groups of several ranks, the innermost first.

    >>> [(each.axis, each.n_domains) for each in placements(Layout(tp=8, dp=16, pp=4), 8)]
    [('tp', 1), ('dp', 16), ('pp', 4)]
    """
    return tuple(_placements(layout, domain_gpus))


def _placements(layout: Layout, domain_gpus: int) -> Iterator[Placement]:
    for axis in AXES:
        size, stride = layout.size(axis), layout.stride(axis)
        if size > 1:
            n_domains, fewest = _spread(layout.n_ranks, size, stride, domain_gpus)
            yield Placement(axis, size, stride, n_domains, fewest)


def _spread(n_ranks: int, size: int, stride: int, domain_gpus: int) -> tuple[int, int]:
    """Over all groups: most domains that one reaches into, and fewest of its ranks in one of them."""
    ranks = np.arange(n_ranks)
    # Rows are groups: ranks in blocks of size x stride, of which every stride-th are together.
    domains = (ranks // domain_gpus).reshape(-1, size, stride).swapaxes(1, 2).reshape(-1, size)
    starts = np.diff(domains, axis=1) != 0
    n_domains = 1 + starts.sum(axis=1)
    widest = int(n_domains.argmax())
    _, counts = np.unique(domains[widest], return_counts=True)
    return int(n_domains[widest]), int(counts.min())


def network_bytes(signature: Signature, placement: Placement) -> float:
    """What a rank sends over the network in a step: nothing where its group is inside of a domain.

    Collectives are taken in levels, which send each byte over the network once per domain.
    """
    if placement.is_inside:
        return 0.0
    if signature.primitive is Primitive.SEND_RECV:  # neighbours: of consecutive ranks only those at the edge
        return signature.step_volume_bytes
    phases = in_levels(signature.primitive, signature.size_bytes, placement.domain_ranks, placement.n_domains)
    return signature.calls * math.fsum(phase.moved_bytes for phase in phases if phase.level == "network")


def step_ns(signature: Signature, placement: Placement, domain_per_s: float, network_per_s: float) -> float:
    """Of all calls of a step, nothing in their way, latency left out; `_per_s` are bus bandwidths of each level."""
    if placement.is_inside:
        return signature.step_ns(domain_per_s)
    if signature.primitive is Primitive.SEND_RECV:
        return signature.step_ns(network_per_s)
    phases = in_levels(signature.primitive, signature.size_bytes, placement.domain_ranks, placement.n_domains)
    rates = {"domain": domain_per_s, "network": network_per_s}
    return signature.calls * math.fsum(phase.moved_bytes * 1e9 / rates[phase.level] for phase in phases)
