"""The kernels that take most time on the device that the verdict speaks of."""

from __future__ import annotations

from diag.model import units
from diag.render import phrases
from diag.render.plots.axes import time_axis
from diag.render.plots.bars import Bar, Group, Part, chart
from diag.render.tables import kernel_name
from diag.rules.report import Report

MOST_KERNELS = 15


def kernels(report: Report) -> str:
    """Empty where there is none."""
    device = phrases.focus(report)
    rows = [row for row in report.kernels if phrases.device_of(report, row) is device]
    shown, rest = rows[:MOST_KERNELS], rows[MOST_KERNELS:]
    if not shown:
        return ""
    made = []
    for row in shown:
        said = f"{units.share(row.share_of_kernel_time)}, {units.time(row.total_ns)}"
        launches = f"{units.count(row.count, 'launch')}, median {units.time(row.median_ns)}"
        label = kernel_name(row, shown)
        made.append(
            Bar(label, [Part(row.total_ns, "kernel", f"{label}: {said}, {launches}")], f"{said}, {row.count:,}×")
        )
    others = sum(row.share_of_kernel_time for row in rest)
    more = [f"{units.count(len(rest), 'more kernel')}: {units.share(others)} of the kernel time."] if rest else []
    return chart(
        f"Hottest kernels{phrases.on_device(report)}",
        "Sum of the durations of all launches, its share of the time of all kernels, and how many launches.",
        [Group(made)],
        time_axis("sum of durations", max(row.total_ns for row in shown)),
        notes=more,
    )
