"""The table of measured collectives, and the line through each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.render import phrases, source_phrases
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.measured_collective_rows import MeasuredCollectiveRow, MeasuredSizeRow
from diag.rules.report import Report


def measured_collectives(report: Report, top: int) -> Table:
    """Sizes of every series, of many an even choice that has the smallest and the largest."""
    most = max(top, phrases.FEW_ROWS)
    return Table(
        "Measured collectives",
        ("size", "time", "bus bandwidth", "off the line", "algorithm", "collective"),
        [_row(report, row, of) for row in report.measured_collectives for of in _chosen(row.sizes, most)],
        name_column=5,
        notes=list(_notes(report, most)),
        wraps_names=True,
    )


def _chosen(sizes: Sequence[MeasuredSizeRow], most: int) -> list[MeasuredSizeRow]:
    if len(sizes) <= most:
        return list(sizes)
    return [sizes[round(at * (len(sizes) - 1) / (most - 1))] for at in range(most)]


def _row(report: Report, row: MeasuredCollectiveRow, of: MeasuredSizeRow) -> list[str]:
    wrong = "" if not of.n_wrong else f", {units.count(of.n_wrong, 'element')} wrong"
    return [
        units.size(of.size_bytes),
        units.time(of.time_ns),
        units.quantity(of.bus_bytes_per_s, "bytes/s"),
        NOT_CAPTURED if of.off_line is None else f"{of.off_line * 100:+.1f} %",
        units.quantity(of.algorithm_bytes_per_s, "bytes/s"),
        f"{row.op} x {row.n_ranks}{wrong}{_where(report, row)}",
    ]


def _where(report: Report, row: MeasuredCollectiveRow) -> str:
    """The file, where several hold measurements."""
    are_several = len({each.source for each in report.measured_collectives}) > 1
    return f", {source_phrases.short_name(report, row.source)}" if are_several else ""


def _notes(report: Report, most: int) -> Iterator[str]:
    rows = report.measured_collectives
    for row in rows:
        yield f"{row.name}{_where(report, row)}: {_line(row)}."
        if len(row.sizes) > most:
            yield phrases.more(len(row.sizes), most)
    if rows:
        yield "Sizes are counted as nccl-tests counts them; of in place and out of place the faster is shown."


def _line(row: MeasuredCollectiveRow) -> str:
    line = row.line
    if line is None:
        return f"no line, {row.no_line}"
    latency = f"α = {units.time(line.latency_ns)} ± {units.time(line.latency_error_ns)}"
    if not line.is_latency_resolved:
        latency = "α too small to show"
    bandwidth = units.quantity(line.bus_bytes_per_s, "bytes/s")
    error = units.quantity(line.bus_error_bytes_per_s, "bytes/s")
    bent = "" if line.is_straight else "; the times do not lie on one line"
    return f"T = α + k·M/B with {latency}, B = {bandwidth} ± {error}, scatter {units.share(line.scatter)}{bent}"
