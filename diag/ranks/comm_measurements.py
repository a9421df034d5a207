"""Collectives that benchmarks timed, sorted into series: one call at several sizes, measured alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from sqlite3 import Row

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

    @cached_property
    def fit(self) -> Fit | NoFit:
        if self.n_ranks == 1:
            return NoFit("one rank alone moves nothing")
        moved = [volume_bytes(self.op, size, self.n_ranks) for size, _ in self.calls]
        return fit(moved, [time for _, time in self.calls])


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
