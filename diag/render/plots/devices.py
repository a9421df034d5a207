"""How busy each device was within its window."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.render import phrases
from diag.render.plots.axes import share_axis, time_axis
from diag.render.plots.bars import Bar, Group, Part, chart
from diag.rules.report import Report
from diag.rules.timeline_report import DeviceRow

MOST_DEVICES = 8

_PARTS = (
    ("busy", "busy", "busy_ns", None),
    ("idle", "idle", "idle_ns", None),
    ("kernels", "kernel", "kernel_ns", "kernel"),
    ("copies", "copy", "copy_ns", "copy"),
    ("communication", "communication", "comm_ns", "kernel"),
    ("of it exposed", "exposed", "exposed_comm_ns", "kernel"),
)
"""Label, class, field of a row, and the fact that must have been captured for it to be known."""


def devices(report: Report) -> str:
    """Of many those that idle longest, after the one that the verdict speaks of. Empty where there is none."""
    rows = list(report.devices)
    if not rows:
        return ""
    focus = phrases.focus(report)
    if len(rows) > MOST_DEVICES:
        rows.sort(key=lambda row: (row is not focus, -row.idle_ns))
    shown = rows[:MOST_DEVICES]
    are_shares = all(row.has_shares for row in shown)
    top_ns = max(row.window_ns for row in shown)
    axis = share_axis("share of the window") if are_shares else time_axis("time in the window", top_ns)
    groups = [_group(report, row, are_shares) for row in shown]
    notes = [
        "Each bar is the union of what ran, so that kernels and copies at the same time overlap and do not add up."
    ]
    if len(rows) > len(shown):
        notes.append(f"{units.count(len(rows) - len(shown), 'more device')} not drawn: those that idle less.")
    return chart(
        "Devices: busy and idle",
        "The window of a device runs from its first operation to its last.",
        groups,
        axis,
        notes=notes,
    )


def _group(report: Report, row: DeviceRow, are_shares: bool) -> Group:
    heading = f"{phrases.device(report, row, hardware=True)}: window of {units.time(row.window_ns)}"
    return Group(list(_bars(report, row, are_shares)), heading)


def _bars(report: Report, row: DeviceRow, are_shares: bool) -> Iterator[Bar]:
    for label, look, field, fact in _PARTS:
        ns = getattr(row, field)
        is_known = fact is None or phrases.captured(report, row, fact)
        if not is_known or (look in ("communication", "exposed") and not row.comm_ns):
            continue
        time = units.time(ns)
        said = f"{units.share(ns / row.window_ns)}, {time}" if are_shares else time
        yield Bar(label, [Part(ns / row.window_ns if are_shares else ns, look, f"{label}: {said}")], said)
