"""One measured collective, whatever printed it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.collective import Primitive

MOST_ROWS = 100_000
"""Of a file: a sweep from 8 bytes to 16 GB in powers of two has 32 sizes."""

MOST_RANKS = 1 << 20
LARGEST_BYTES = 1 << 50
LONGEST_NS = 1e15
"""Larger figures are damage. A call of eleven days is none."""

PROGRAMS = {
    "all_reduce": Primitive.ALL_REDUCE,
    "all_gather": Primitive.ALL_GATHER,
    "reduce_scatter": Primitive.REDUCE_SCATTER,
    "alltoall": Primitive.ALL_TO_ALL,
    "all_to_all": Primitive.ALL_TO_ALL,
    "broadcast": Primitive.BROADCAST,
    "reduce": Primitive.REDUCE,
    "gather": Primitive.GATHER,
    "scatter": Primitive.SCATTER,
    "sendrecv": Primitive.SEND_RECV,
}
"""Of nccl-tests, without `_perf`."""


@dataclass(frozen=True)
class Timed:
    """Fields as the columns of `comm_measurement`."""

    op: Primitive
    n_ranks: int
    size_bytes: int
    time_ns: float
    is_in_place: bool = False
    n_hosts: int | None = None
    device_name: str | None = None
    dtype: str | None = None
    reduction: str | None = None
    repeats: int | None = None
    n_wrong: int | None = None

    @property
    def is_possible(self) -> bool:
        return (
            0 < self.n_ranks <= MOST_RANKS
            and 0 < self.size_bytes <= LARGEST_BYTES
            and math.isfinite(self.time_ns)
            and 0 < self.time_ns <= LONGEST_NS
        )


@dataclass(frozen=True)
class Found:
    """What a file holds, and what of it was left out, in words."""

    rows: Sequence[Timed]
    notes: Sequence[str] = ()


_PROGRAM = re.compile(r"(\w{1,40})_perf(?:_mpi)?\b")


def program_in(text: str) -> str | None:
    """
    >>> program_in("$ mpirun -np 8 ./build/all_gather_perf -b 8"), program_in("nothing")
    ('all_gather', None)
    """
    match = _PROGRAM.search(text)
    return match[1] if match else None
