"""What one collective takes: of a bandwidth and a latency that the user names, or of the line through measurements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diag.model import units
from diag.model.collective import (
    Primitive,
    algorithm_bytes_per_s,
    bus_factor,
    latency_bound_below_bytes,
    volume_bytes,
)
from diag.model.collective_algorithms import crossover_bytes, in_levels, ring_hops, tree
from diag.model.collective_fit import Fit
from diag.model.plan import Answer, Figure

FACTORS = {
    Primitive.ALL_REDUCE: "2(N-1)/N",
    Primitive.BROADCAST: "1",
    Primitive.REDUCE: "1",
    Primitive.SEND_RECV: "1",
}
"""k as people write it; (N-1)/N of all others."""


@dataclass(frozen=True)
class Measured:
    """The line through one series of measurements, and where it comes from."""

    fit: Fit
    op: Primitive
    n_ranks: int
    name: str


@dataclass(frozen=True)
class Speed:
    """Of a rank's link, one direction. `hop_ns`: of one message between neighbours, 0 where only bytes count."""

    bus_bytes_per_s: float
    hop_ns: float = 0.0
    measured: Measured | None = None

    @classmethod
    def of(cls, measured: Measured) -> Speed:
        """α of the measurements shared out over the hops of a ring."""
        latency_ns = max(0.0, measured.fit.latency_ns) if measured.fit.is_latency_resolved else 0.0
        hops = ring_hops(measured.op, measured.n_ranks)
        return cls(measured.fit.bus_bytes_per_s, latency_ns / hops, measured)

    @property
    def assumptions(self) -> list[str]:
        if self.measured is None:
            latency = f"{units.time(self.hop_ns)} a hop" if self.hop_ns else "no latency"
            return [f"{units.quantity(self.bus_bytes_per_s, 'bytes/s')} on the bus and {latency}, as given."]
        return _said_of(self.measured)


def _said_of(measured: Measured) -> list[str]:
    fit = measured.fit
    largest = units.share(float(max(abs(fit.residuals))))
    said = [
        f"α and B by the line through {measured.name}: {units.count(len(fit.time_ns), 'call')}, scatter "
        f"{units.share(fit.scatter)}, farthest from the line {largest}."
    ]
    if not fit.is_latency_resolved:
        said.append("The smallest size that was measured is too large to show a latency: none is counted.")
    if not fit.is_straight:
        said.append(
            "The times do not lie on one line (NCCL changes protocol and algorithm with the size): between the sizes "
            "that were measured, go by their times."
        )
    return said


def call(op: Primitive, size_bytes: float, n_ranks: int, speed: Speed) -> Answer:
    """T = α + k·M/B, both bandwidths, and what a tree would take."""
    assumptions = ["Sizes are counted as nccl-tests counts them, prefixes are decimal.", *speed.assumptions]
    if (measured := speed.measured) is not None:
        assumptions += _beyond(measured, op, volume_bytes(op, size_bytes, n_ranks), n_ranks)
    if n_ranks == 1:
        assumptions.append("One GPU has nobody to send to.")
    return Answer(
        f"One {op.words} of {units.size(size_bytes)} over {units.count(n_ranks, 'GPU')}",
        list(_figures(op, size_bytes, n_ranks, speed)),
        assumptions,
    )


def _beyond(measured: Measured, op: Primitive, moved_bytes: float, n_ranks: int) -> Iterator[str]:
    """What of the answer no measurement supports."""
    if (measured.n_ranks, measured.op) != (n_ranks, op):
        yield f"Measured was {measured.op} over {measured.n_ranks} ranks: B is taken to hold, α to grow with the hops."
    least, most = measured.fit.moved_bytes[[0, -1]].tolist()
    if not least <= moved_bytes <= most:
        yield f"Only calls that move {units.size(least)} to {units.size(most)} were measured: this one is beyond them."


def _figures(op: Primitive, size_bytes: float, n_ranks: int, speed: Speed) -> Iterator[Figure]:
    moved, factor = volume_bytes(op, size_bytes, n_ranks), FACTORS.get(op, "(N-1)/N")
    hops = ring_hops(op, n_ranks)
    latency_ns = hops * speed.hop_ns
    time_ns = latency_ns + moved * 1e9 / speed.bus_bytes_per_s
    k = f"{factor} = {bus_factor(op, n_ranks):.4g}" if factor != "1" and n_ranks > 1 else f"{bus_factor(op, n_ranks):g}"
    yield Figure("moved by each GPU", moved, "bytes", f"k·M, k = {k}")
    yield Figure("time", time_ns, "ns", "α + k·M/B", _error_ns(moved, latency_ns, n_ranks, op, speed))
    if latency_ns:
        formula = f"{units.count(hops, 'hop')} of a ring, {units.time(speed.hop_ns)} each"
        yield Figure("latency α", latency_ns, "ns", formula, _latency_error_ns(latency_ns, speed))
    error = speed.measured.fit.bus_error_bytes_per_s if speed.measured else None
    yield Figure("bus bandwidth B", speed.bus_bytes_per_s, "bytes/s", "of a rank's link, one direction", error)
    if (measured := speed.measured) is not None and (measured.n_ranks, measured.op) == (n_ranks, op):
        nearest = int(abs(measured.fit.moved_bytes - moved).argmin())
        size = float(measured.fit.moved_bytes[nearest]) / bus_factor(op, n_ranks)
        took_ns = float(measured.fit.time_ns[nearest])
        yield Figure("measured next to it", took_ns, "ns", f"of {units.size(size)}, the nearest size of the series")
    if time_ns:
        yield Figure("algorithm bandwidth", algorithm_bytes_per_s(size_bytes, time_ns), "bytes/s", "M / time")
    if latency_ns and moved:
        below = latency_bound_below_bytes(op, n_ranks, speed.bus_bytes_per_s, latency_ns)
        yield Figure("latency-bound below", below, "bytes", "M = α·B/k, where α is half of the time")
    if speed.hop_ns and (other := tree(op, size_bytes, n_ranks)) is not None:
        tree_ns = other.time_ns(speed.bus_bytes_per_s, speed.hop_ns)
        formula = f"{other.hops} hops, {units.size(other.moved_bytes)} moved"
        yield Figure("time of two trees", tree_ns, "ns", formula)
        limit = crossover_bytes(op, n_ranks, speed.bus_bytes_per_s, speed.hop_ns)
        if limit is not None and 0 < limit < float("inf"):
            yield Figure("a tree is faster below", limit, "bytes", "α·B·N·(N-1-⌈log2 N⌉), α of one hop")


def _error_ns(moved: float, latency_ns: float, n_ranks: int, op: Primitive, speed: Speed) -> float | None:
    """By the covariance of the fit where it speaks of these ranks; else both errors, as if they went together."""
    if speed.measured is None:
        return None
    fit = speed.measured.fit
    if (speed.measured.n_ranks, speed.measured.op) == (n_ranks, op) and fit.is_latency_resolved:
        return fit.predicted_error_ns(moved)
    of_bytes_ns = moved * 1e9 * fit.bus_error_bytes_per_s / fit.bus_bytes_per_s**2
    return of_bytes_ns + (_latency_error_ns(latency_ns, speed) or fit.latency_error_ns)


def _latency_error_ns(latency_ns: float, speed: Speed) -> float | None:
    """The same share of α as in the fit."""
    if speed.measured is None or not latency_ns:
        return None
    return latency_ns * speed.measured.fit.latency_error_ns / speed.measured.fit.latency_ns


def levels(
    op: Primitive, size_bytes: float, domain_gpus: int, n_domains: int, domain_per_s: float, network_per_s: float
) -> Answer:
    """The same call where the ranks of a domain share NVLink, and domains the network."""
    phases = in_levels(op, size_bytes, domain_gpus, n_domains)
    rates = {"domain": domain_per_s, "network": network_per_s}
    figures = [
        Figure(
            f"{phase.level}: {phase.primitive.words}",
            phase.moved_bytes * 1e9 / rates[phase.level],
            "ns",
            f"{units.size(phase.moved_bytes)} at {units.quantity(rates[phase.level], 'bytes/s')}",
        )
        for phase in phases
    ]
    total = Figure("time in levels", sum(each.value for each in figures), "ns", "one after the other, no latency")
    return Answer(
        f"In levels: {n_domains:,} domains of {domain_gpus:,} GPUs",
        [*figures, total],
        ["Every GPU has its own part of the network, and all of a domain use theirs at once."],
    )
