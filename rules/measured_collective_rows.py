"""Measured collectives, as a report has them: plain data, for every renderer and the stored case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.collective import algorithm_bytes_per_s, volume_bytes
from diag.model.collective_fit import Fit
from diag.ranks.comm_measurements import CommSeries, TimedSize


@dataclass(frozen=True)
class LineRow:
    """T = α + k·M/B through the times of a series. Errors are half-widths of 95 % intervals."""

    latency_ns: float
    latency_error_ns: float
    is_latency_resolved: bool
    bus_bytes_per_s: float
    bus_error_bytes_per_s: float
    scatter: float  # root mean square of the residuals, as shares of the times
    is_straight: bool


@dataclass(frozen=True)
class MeasuredSizeRow:
    size_bytes: int  # as nccl-tests counts it
    time_ns: float  # the faster of in place and out of place
    algorithm_bytes_per_s: float
    bus_bytes_per_s: float
    off_line: float | None  # (time - line) / time; None without a line
    n_wrong: int | None  # elements; None: not checked


@dataclass(frozen=True)
class MeasuredCollectiveRow:
    """One collective over one number of ranks, at all its sizes."""

    source: int
    op: str
    backend: str
    n_ranks: int
    n_hosts: int | None
    device_name: str | None
    dtype: str | None
    name: str
    line: LineRow | None
    no_line: str | None  # why there is none
    sizes: Sequence[MeasuredSizeRow]  # ascending


def measured_collective_rows(series: Sequence[CommSeries]) -> list[MeasuredCollectiveRow]:
    return [_row(each) for each in series]


def _row(series: CommSeries) -> MeasuredCollectiveRow:
    found = series.fit
    return MeasuredCollectiveRow(
        source=series.source_id,
        op=series.op.value,
        backend=series.backend,
        n_ranks=series.n_ranks,
        n_hosts=series.n_hosts,
        device_name=series.device_name,
        dtype=series.dtype,
        name=series.name,
        line=_line(found) if isinstance(found, Fit) else None,
        no_line=None if isinstance(found, Fit) else found.because,
        sizes=[_size(series, of, found if isinstance(found, Fit) else None) for of in series.sizes],
    )


def _line(found: Fit) -> LineRow:
    return LineRow(
        latency_ns=found.latency_ns,
        latency_error_ns=found.latency_error_ns,
        is_latency_resolved=found.is_latency_resolved,
        bus_bytes_per_s=found.bus_bytes_per_s,
        bus_error_bytes_per_s=found.bus_error_bytes_per_s,
        scatter=found.scatter,
        is_straight=found.is_straight,
    )


def _size(series: CommSeries, of: TimedSize, found: Fit | None) -> MeasuredSizeRow:
    moved = volume_bytes(series.op, of.size_bytes, series.n_ranks)
    return MeasuredSizeRow(
        size_bytes=of.size_bytes,
        time_ns=of.time_ns,
        algorithm_bytes_per_s=algorithm_bytes_per_s(of.size_bytes, of.time_ns),
        bus_bytes_per_s=series.bus_bytes_per_s(of),
        off_line=None if found is None else (of.time_ns - found.predicted_ns(moved)) / of.time_ns,
        n_wrong=of.n_wrong,
    )
