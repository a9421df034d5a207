"""Warps that were on each SM, and those that fit: occupancy as Nsight Compute measured it."""

from __future__ import annotations

from diag.model import units
from diag.render.plots.axes import share_axis
from diag.render.plots.bars import Bar, Group, Part, chart
from diag.render.plots.launches import chosen
from diag.rules.launch_report import LaunchOccupancyRow
from diag.rules.report import Report


def occupancy(report: Report) -> str:
    """Empty where no launch has it."""
    launches = chosen(report, lambda row: row.occupancy is not None and row.occupancy.achieved_pct is not None)
    if not launches.rows:
        return ""
    groups = [Group([_bar(row.occupancy)], launches.heading(row)) for row in launches.rows if row.occupancy]
    return chart(
        "Occupancy of profiled kernels",
        "Bar: warps that were on an SM on average. Line: warps that fit. Both of those that an SM has room for.",
        groups,
        share_axis("of the warps that an SM has room for"),
        notes=launches.notes,
    )


def _bar(row: LaunchOccupancyRow) -> Bar:
    achieved, fits = (row.achieved_pct or 0.0), row.theoretical_pct
    limited = f" ({', '.join(each.replace('_', ' ') for each in row.limiters)})" if row.limiters and fits < 100 else ""
    said = f"{units.quantity(achieved, '%')} of {units.quantity(fits, '%')}{limited}"
    return Bar("achieved", [Part(achieved / 100, "sm", f"achieved {said}")], said, fits / 100)
