"""What the ranks of a job are compared by: a line for each, and how their steps differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules.report import Report
from diag.rules.timeline_report import DeviceRow
from diag.timeline.rank_steps import RankSteps, RankTable
from diag.tui.widgets.row_table import Column

METRICS = {"duration_ns": "step time", "idle_ns": "device idle", "communication_ns": "communication"}
"""What the heat map can show, each of a step."""


@dataclass(frozen=True)
class RankLine:
    """One rank; shares are of the windows of its devices, means where it has several. None: not known."""

    rank: RankSteps
    window_ns: int | None
    median_step_ns: float | None
    slowest: int  # in how many of the shared steps it took longer than every other
    idle: float | None
    communication: float | None
    exposed: float | None


def rank_lines(table: RankTable, report: Report) -> list[RankLine]:
    return [
        _line(rank, [row for row in report.devices if row.source == rank.source], count)
        for rank, count in zip(table.ranks, table.slowest.tolist(), strict=True)
    ]


def _line(rank: RankSteps, devices: Sequence[DeviceRow], slowest: int) -> RankLine:
    windows_ns = sum(row.window_ns for row in devices)

    def share(what: str) -> float | None:
        return sum(getattr(row, what) for row in devices) / windows_ns if windows_ns else None

    return RankLine(
        rank=rank,
        window_ns=max((row.window_ns for row in devices), default=None),
        median_step_ns=float(np.median(rank.duration_ns)) if len(rank) else None,
        slowest=slowest,
        idle=share("idle_ns"),
        communication=share("comm_ns"),
        exposed=share("exposed_comm_ns"),
    )


def columns() -> list[Column[RankLine]]:
    return [
        Column("rank", "rank", None, lambda line: line.rank.label, lambda line: line.rank.label),
        Column("window", "window", 9, lambda line: _time(line.window_ns), lambda line: line.window_ns),
        Column("step", "step", 9, lambda line: _time(line.median_step_ns), lambda line: line.median_step_ns),
        Column("slowest", "slowest", 8, lambda line: f"{line.slowest:,}", lambda line: line.slowest),
        Column("idle", "idle", 7, lambda line: _share(line.idle), lambda line: line.idle),
        Column("comm", "comm.", 7, lambda line: _share(line.communication), lambda line: line.communication),
        Column("exposed", "exposed", 8, lambda line: _share(line.exposed), lambda line: line.exposed),
    ]


def summary(table: RankTable) -> str:
    """What sets the ranks apart, in a sentence or two."""
    if len(table.ranks) < 2:
        return "There is one rank only. Give the files of several: diag tui rank0.json.gz rank1.json.gz"
    ranks = units.count(len(table.ranks), "rank")
    if not table.steps:
        return f"{ranks}. They share no steps: no range repeats in each of them and fills most of its time."
    names = sorted({rank.pattern for rank in table.ranks if rank.pattern is not None})
    skew = table.skew_ns
    return (
        f"{ranks}, {units.count(table.steps, 'step')} ({', '.join(names)}). Skew, the longest less the shortest of a "
        f"step: median {units.time(float(np.median(skew)))}, at most {units.time(float(skew.max()))}."
    )


def lateness(report: Report) -> str:
    """Who comes last in collectives, on the common axis of the clocks; nothing where that is not told."""
    told = [row for row in report.timeline_ranks if row.last]
    if not told:
        return ""
    most = max(told, key=lambda row: row.last or 0)
    error_ns = max((row.clock_error_ns or 0 for row in report.timeline_ranks), default=0)
    return (
        f" In collectives rank {most.rank} comes last most often: {units.share(most.last_share or 0.0)} of "
        f"{sum(row.last or 0 for row in told):,} that tell it (clocks ± {units.time(error_ns)})."
    )


def cell(table: RankTable, row: int, step: int) -> str:
    """One rank in one step, in words."""
    rank = table.ranks[row]
    parts = []
    for what, label in METRICS.items():
        value_ns, beyond_ns = table.values(what)[row, step], table.beyond_usual(what)[row, step]
        if np.isnan(value_ns):
            parts.append(f"{label} not captured")
        else:
            parts.append(
                f"{label} {units.time(value_ns)} ({'+' if beyond_ns >= 0 else '−'}{units.time(abs(beyond_ns))})"
            )
    return f"{rank.label}, step {step}: {', '.join(parts)}; in brackets beyond the median of all ranks"


def _time(ns: float | None) -> str:
    return "" if ns is None else units.time(ns)


def _share(value: float | None) -> str:
    return "" if value is None else units.share(value)
