"""The tables of a job of several ranks: its ranks, and the collectives of its groups."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.render import phrases
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.rank_rows import CollectiveRow, RankRow, ranks_in_order
from diag.rules.report import Report


def ranks(report: Report, top: int) -> Table:
    """Of many, those that came last most often."""
    rows = list(report.timeline_ranks)
    if len(rows) > max(top, phrases.FEW_ROWS):
        rows = ranks_in_order(rows)[: max(top, phrases.FEW_ROWS)]
    return Table(
        "Ranks",
        ("rank", "last", "waiting", "exposed", "step", "clock ±", "drift", "host"),
        [_rank(row) for row in rows],
        name_column=0,
        notes=list(_rank_notes(report, len(rows))),
    )


def _rank(row: RankRow) -> list[str]:
    return [
        f"rank {row.rank}",
        NOT_CAPTURED if row.last is None else f"{row.last:,}",
        _time(row.waiting_ns),
        units.time(row.exposed_ns),
        _time(row.step_ns),
        _time(row.clock_error_ns),
        NOT_CAPTURED if row.clock_drift is None else f"{row.clock_drift * 1e6:+.1f} µs/s",
        row.host or NOT_CAPTURED,
    ]


def _rank_notes(report: Report, shown: int) -> Iterator[str]:
    rows = report.timeline_ranks
    if shown < len(rows):
        yield f"{phrases.more(len(rows), shown)} Shown are those that came last most often."
    if any(row.last is not None for row in rows):
        yield "Last: collectives in which a rank came last by more than the clocks' errors."
    yield "Waiting: for other ranks, inside collectives. Exposed: communication that no kernel overlaps."


def collectives(report: Report, top: int) -> Table:
    """Those that ranks spend most time in first."""
    rows = report.collectives[: max(top, phrases.FEW_ROWS)]
    return Table(
        "Collectives, as all recorded ranks saw them",
        ("latency", "waiting", "bus bandwidth", "size", "count", "last", "operation and group"),
        [_collective(row) for row in rows],
        name_column=6,
        notes=[phrases.more(len(report.collectives), len(rows))] if len(rows) < len(report.collectives) else [],
        wraps_names=True,
    )


def _collective(row: CollectiveRow) -> list[str]:
    last = f"rank {row.last_rank} ({units.share(row.last_share)})" if row.last_share is not None else NOT_CAPTURED
    return [
        units.time(row.latency_ns),
        units.time(row.waiting_ns),
        NOT_CAPTURED if row.bus_bytes_per_s is None else f"{units.size(row.bus_bytes_per_s)}/s",
        NOT_CAPTURED if row.size_bytes is None else units.size(row.size_bytes),
        f"{row.count:,}",
        last,
        f"{row.op} of {row.group}",
    ]


def _time(ns: int | None) -> str:
    return NOT_CAPTURED if ns is None else units.time(ns)
