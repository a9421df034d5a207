"""Collectives that benchmarks timed, sorted into series: one call at several sizes, measured alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from sqlite3 import Row

import numpy as np

from diag.model.collective import Primitive, bus_bytes_per_s, volume_bytes
from diag.model.collective_fit import Fit, NoFit, fit
from diag.store.case import Case


@dataclass(frozen=True)
class TimedSize:
    """The faster of both places, in place or out of place."""

    size_bytes: int  # as nccl-tests counts it
    time_ns: float
    n_wrong: int | None  # of both places together; None: not checked


@dataclass(frozen=True)
class CommSeries:
    """`sizes` ascend. What is not told is None."""

    source_id: int
    op: Primitive
    backend: str
    n_ranks: int
    n_hosts: int | None
    device_name: str | None
    dtype: str | None
    sizes: Sequence[TimedSize]
    calls: Sequence[tuple[int, float]]  # bytes and ns of every measurement, of both places

    @property
    def name(self) -> str:
        hosts = f" on {self.n_hosts} hosts" if self.n_hosts and self.n_hosts > 1 else ""
        return f"{self.op} over {self.n_ranks} ranks{hosts}" + (f" ({self.dtype})" if self.dtype else "")

    def is_alike(self, other: CommSeries) -> bool:
        """Whether both should take equally long."""
        return (self.op, self.backend, self.n_ranks, self.n_hosts, self.device_name) == (
            other.op, other.backend, other.n_ranks, other.n_hosts, other.device_name,
        )  # fmt: skip

    @property
    def largest(self) -> TimedSize:
        return self.sizes[-1]

    def bus_bytes_per_s(self, of: TimedSize) -> float:
        return bus_bytes_per_s(self.op, of.size_bytes, self.n_ranks, of.time_ns)

    @cached_property
    def fastest(self) -> TimedSize:
        """That with the highest bus bandwidth."""
        return max(self.sizes, key=self.bus_bytes_per_s)

    def time_ns_of(self, size_bytes: float) -> float | None:
        """Between the measured sizes on both sides of it, which holds also where no line does; None beyond them."""
        sizes = [of.size_bytes for of in self.sizes]
        if not sizes[0] <= size_bytes <= sizes[-1]:
            return None
        return float(np.interp(size_bytes, sizes, [of.time_ns for of in self.sizes]))

    @cached_property
    def fit(self) -> Fit | NoFit:
        if self.n_ranks == 1:
            return NoFit("one rank alone moves nothing")
        moved = [volume_bytes(self.op, size, self.n_ranks) for size, _ in self.calls]
        return fit(moved, [time for _, time in self.calls])


def best_of(series: Sequence[CommSeries], op: str, n_ranks: int, backend: str) -> CommSeries | None:
    """Of a collective over as many ranks, the measurement with the highest bus bandwidth; None where there is none."""
    alike = [each for each in series if (each.op, each.n_ranks, each.backend) == (op, n_ranks, backend)]
    return max(alike, key=lambda each: each.bus_bytes_per_s(each.fastest), default=None)


def comm_series(case: Case) -> list[CommSeries]:
    """In the order of their sources; what is no collective known here is left out."""
    alike = groupby(case.rows(_MEASUREMENTS), key=itemgetter(*_KEY))
    return [_series(list(rows)) for _, rows in alike]


_KEY = ("source_id", "op", "backend", "n_ranks", "n_hosts", "device_name", "dtype")

_MEASUREMENTS = """
    SELECT source_id, op, backend, n_ranks, n_hosts, device_name, dtype, size_bytes, time_ns, n_wrong
      FROM comm_measurement
     WHERE op IN ('all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all', 'broadcast', 'reduce', 'gather',
                  'scatter', 'send_recv')
       AND n_ranks > 0 AND size_bytes > 0 AND time_ns > 0 AND time_ns < 1e18
     ORDER BY source_id, op, backend, n_ranks, n_hosts, device_name, dtype, size_bytes, time_ns
"""


def _series(rows: Sequence[Row]) -> CommSeries:
    first = rows[0]
    return CommSeries(
        source_id=first["source_id"],
        op=Primitive(first["op"]),
        backend=first["backend"],
        n_ranks=first["n_ranks"],
        n_hosts=first["n_hosts"],
        device_name=first["device_name"],
        dtype=first["dtype"],
        sizes=[_fastest(list(places)) for _, places in groupby(rows, key=itemgetter("size_bytes"))],
        calls=[(row["size_bytes"], row["time_ns"]) for row in rows],
    )


def _fastest(places: Sequence[Row]) -> TimedSize:
    wrong = [row["n_wrong"] for row in places if row["n_wrong"] is not None]
    return TimedSize(places[0]["size_bytes"], places[0]["time_ns"], sum(wrong) if wrong else None)
