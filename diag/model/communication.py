"""What probes of several ranks found: how long collectives take, and what a way to spread work says in a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.collective import Primitive, Signature, algorithm_bytes_per_s, bus_bytes_per_s


@dataclass(frozen=True)
class CollectiveMeasurement:
    """One collective of one size. A call ends when the last rank has its result: times are the largest over ranks."""

    op: Primitive
    backend: str  # 'nccl' or 'gloo'
    n_ranks: int
    n_hosts: int
    dtype: str
    reduction: str | None
    size_bytes: int  # as nccl-tests counts it
    is_in_place: bool
    repeats: int
    median_ns: float
    p5_ns: float
    p95_ns: float
    n_wrong: int  # elements, of all ranks together
    conditions: str  # for people: also where a backend does something else in its place

    @property
    def algorithm_bytes_per_s(self) -> float:
        return algorithm_bytes_per_s(self.size_bytes, self.median_ns)

    @property
    def bus_bytes_per_s(self) -> float:
        return bus_bytes_per_s(self.op, self.size_bytes, self.n_ranks, self.median_ns)


@dataclass(frozen=True)
class CountedCalls:
    """Calls of one rank in one step, as they reached PyTorch's backend. Messages count where they are sent."""

    primitive: Primitive
    size_bytes: int
    calls: int


@dataclass(frozen=True)
class Communication:
    """What a probe declares that rank 0 says in a step, and what was counted there."""

    probe: str
    variant: str
    shape: str
    n_ranks: int
    signatures: Sequence[Signature]
    counted: Sequence[CountedCalls]
    n_ranks_otherwise: int  # ranks, 0 among them or not, that said something else than they declare
