"""What rules about measured collectives say of a series alike: its subject, its rows, its size in words."""

from __future__ import annotations

from diag.ranks.comm_measurements import CommSeries, TimedSize
from diag.rules.finding import Evidence, Subject

LARGE_BYTES = 16 << 20
"""From here on bandwidth and not latency decides in every measurement that nccl-tests' documentation shows."""

_ROWS = """
    SELECT size_bytes, is_in_place, time_ns, repeats, n_wrong
      FROM comm_measurement
     WHERE source_id = {source_id:d} AND op = '{op}' AND n_ranks = {n_ranks:d}
     ORDER BY size_bytes, is_in_place
"""


def subject_of(series: CommSeries) -> Subject:
    return Subject(series.source_id, range=series.name)


def rows_of(series: CommSeries) -> str:
    """SQL: every measurement of the collective over these ranks in its file."""
    return _ROWS.format(source_id=series.source_id, op=series.op.value, n_ranks=series.n_ranks)


def bus_evidence(label: str, series: CommSeries, of: TimedSize) -> Evidence:
    formula = f"k x {of.size_bytes:,} bytes / {of.time_ns:,.0f} ns, the faster of in place and out of place"
    return Evidence(label, series.bus_bytes_per_s(of), "bytes/s", formula, rows_of(series))
