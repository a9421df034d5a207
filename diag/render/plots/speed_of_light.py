"""How much of its peak each side of the device reached while a kernel ran, as Nsight Compute measured it."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.render.plots.axes import share_axis
from diag.render.plots.bars import Bar, Group, Part, chart
from diag.render.plots.launches import chosen
from diag.render.plots.looks import LOOKS
from diag.rules.launch_report import LaunchRow
from diag.rules.report import Report


def speed_of_light(report: Report) -> str:
    """Empty where no launch has it."""
    launches = chosen(report, lambda row: any(_bars(row)))
    if not launches.rows:
        return ""
    groups = [Group(list(_bars(row)), launches.heading(row)) for row in launches.rows]
    return chart(
        "Speed of light of profiled kernels",
        "Throughput of the busiest unit of each side, of its peak at the clocks of the launch.",
        groups,
        share_axis("of peak"),
        notes=launches.notes,
    )


def _bars(row: LaunchRow) -> Iterator[Bar]:
    for look, percent in (("sm", row.sol.sm_pct), ("memory", row.sol.memory_pct), ("dram", row.sol.dram_pct)):
        if percent is not None:
            label, said = LOOKS[look].label, units.quantity(percent, "%")
            yield Bar(label, [Part(percent / 100, look, f"{label}: {said}")], said)
