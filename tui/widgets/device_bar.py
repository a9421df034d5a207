"""The window of a device as a bar: parts that do not overlap, so that they add up to the window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from diag.render import phrases
from diag.render.palette import ACTIVITIES, Activity, Ink
from diag.rules.report import Report
from diag.rules.timeline_report import DeviceRow


@dataclass(frozen=True)
class Part:
    label: str
    activity: Activity | None  # None: another process had the hardware
    ns: int
    formula: str

    @property
    def ink(self) -> Ink:
        return ACTIVITIES[self.activity] if self.activity else Ink("#999999", "╌", self.label)


def parts(row: DeviceRow) -> list[Part]:
    """What each nanosecond of the window went to. Time with a kernel counts as that, whatever else ran beside it."""
    others_ns = row.window_ns - row.busy_ns - row.idle_ns
    every = [
        Part("kernels", "kernel", row.kernel_ns - row.exposed_comm_ns, "union of kernels - exposed communication"),
        Part("exposed comm", "communication", row.exposed_comm_ns, "union of communication - all other kernels"),
        Part("copies etc. alone", "copy", row.busy_ns - row.kernel_ns, "busy - union of kernels"),
        Part("idle", "idle", row.idle_ns, "window - busy - work of other processes on this hardware"),
        Part("other processes", None, others_ns, "window - busy - idle"),
    ]
    return [part for part in every if part.ns > 0]


def bar(row: DeviceRow, width: int) -> Content:
    """`width` cells for the window. A part that is there at all has a cell, taken from the largest."""
    shown = parts(row)
    if not shown or not row.window_ns:
        return Content("")
    cells = _cells([part.ns for part in shown], width)
    return Content("").join(
        Content.styled(part.ink.sign * n, part.ink.color) for part, n in zip(shown, cells, strict=True)
    )


def _cells(amounts: Sequence[int], width: int) -> list[int]:
    """
    >>> _cells([50, 1, 949], 20), _cells([1, 1, 1], 10)
    ([1, 1, 18], [3, 3, 4])
    """
    total, ends, covered = sum(amounts), [], 0
    for amount in amounts:
        covered += amount
        ends.append(round(width * covered / total))
    cells = [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    for at, n in enumerate(cells):
        if n == 0 and max(cells) > 1:
            cells[cells.index(max(cells))] -= 1
            cells[at] = 1
    return cells


def legend(rows: Sequence[DeviceRow]) -> Content:
    """The signs of the parts that any of the devices has."""
    seen = {part.label: part.ink for row in rows for part in parts(row)}
    return Content("  ").join(Content.styled(ink.sign, ink.color) + Content(f" {label}") for label, ink in seen.items())


def figures(report: Report, row: DeviceRow) -> list[str]:
    """Busy and what it is made of, which may overlap; shares of the window where they mean something, else times."""

    def figure(label: str, ns: int) -> str:
        return f"{label} {phrases.of_window(row, ns)}"

    bound = "≤ " if row.busy_is_upper_bound else "≥ " if row.busy_is_lower_bound else ""
    said = [figure(f"busy {bound}".rstrip(), row.busy_ns), figure("idle", row.idle_ns)]
    every = (
        ("kernels", row.kernel_ns, "kernel"),
        ("copies", row.copy_ns, "copy"),
        ("memsets", row.memset_ns, "memset"),
        ("graphs", row.graph_ns, "graph"),
        ("comm", row.comm_ns, "kernel"),
    )
    for label, ns, fact in every:
        if ns:
            said.append(figure(label, ns))
        elif label in ("kernels", "copies") and not phrases.captured(report, row, fact):
            said.append(f"{label} not captured")
    if row.comm_ns:
        said.append(figure("exposed", row.exposed_comm_ns))
    return said


def formulas(row: DeviceRow) -> list[tuple[str, int, str]]:
    """Label, time and formula of every part of the bar."""
    return [(part.label, part.ns, part.formula) for part in parts(row)]
