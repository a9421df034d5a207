"""The points of the Roofline screen and their figures: what is selected, listed and told about one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diag.model import units
from diag.render.ceiling_table import best
from diag.render.probe_rooflines import probe_rooflines
from diag.render.roofline_chart import SIGNS, Chart, Mark, charts, in_full, is_above_roof
from diag.render.table import NOT_CAPTURED
from diag.rules.report import Report
from diag.rules.roofline_report import KernelRoofline, RooflineCeiling
from diag.tui.widgets.row_table import Column


@dataclass(frozen=True)
class Point:
    """A mark of the chart's, with its kernel."""

    index: int  # among the marks of the chart
    mark: Mark
    kernel: KernelRoofline

    @property
    def share_of_roof(self) -> float:
        return self.mark.work_per_s / self.mark.attainable_work_per_s

    @property
    def side(self) -> str:
        """Which roof is above it: left of the ridge point that of the level."""
        return "memory" if self.mark.intensity < self.ridge_point else "compute"

    @property
    def ridge_point(self) -> float:
        return next(
            point.ridge_point
            for point in self.kernel.roofline.points
            if (point.level, point.precision) == (self.mark.level, self.mark.precision)
        )

    @property
    def roof(self) -> str:
        """The name of the ceiling above it."""
        return self.mark.level if self.side == "memory" else self.mark.precision


def all_charts(report: Report) -> list[Chart]:
    """Of profiled kernels and of probes, by device and unit of work."""
    made = charts([*report.rooflines, *probe_rooflines(report)], most=len(SIGNS))
    return [in_full(chart) for chart in made]


def points(chart: Chart) -> list[Point]:
    return [Point(index, mark, chart.kernels[mark.number - 1]) for index, mark in enumerate(chart.marks)]


def columns(unit: str) -> list[Column[Point]]:
    def rate(per_s: float) -> str:
        return units.quantity(per_s, f"{unit}/s").removesuffix(f"{unit}/s")

    return [
        Column("sign", "#", 2, lambda point: point.mark.sign, lambda point: -point.mark.number),
        Column("share", "share", 7, _share, lambda point: point.kernel.share),
        Column("roof", "of roof", 8, _of_roof, lambda point: point.share_of_roof),
        Column("bound", "bound", 8, _bound, lambda point: point.kernel.roofline.bound),
        Column(
            "intensity",
            f"{unit}/byte",
            9,
            lambda point: f"{point.mark.intensity:.3g}",
            lambda point: point.mark.intensity,
        ),
        Column("rate", f"{unit}/s", 8, lambda point: rate(point.mark.work_per_s), lambda point: point.mark.work_per_s),
        Column("over", "over", 5, lambda point: point.mark.level),
        Column("work", "work", 14, lambda point: point.mark.precision),
        Column("kernel", "kernel", None, _name, _name),
    ]


def _share(point: Point) -> str:
    return NOT_CAPTURED if point.kernel.share is None else units.share(point.kernel.share)


def _of_roof(point: Point) -> str:
    return units.share(point.share_of_roof) + ("!" if is_above_roof(point.mark) else "")


def _bound(point: Point) -> str:
    return point.kernel.roofline.bound or NOT_CAPTURED


def _name(point: Point) -> str:
    return f"{point.kernel.short_name} {point.kernel.configuration}"


# ---- what is told about one ----------------------------------------------------------------------------------------


def figures(report: Report, chart: Chart, point: Point) -> Iterator[str]:
    """Lines about the selected point, the most important first."""
    mark, row, unit = point.mark, point.kernel.roofline, chart.work_unit
    if is_above_roof(mark):
        yield (
            f"! Above its roof by {units.share(point.share_of_roof - 1)}: nothing is faster than what limits it, so a "
            "counter or a ceiling is wrong. No verdict."
        )
    yield (
        f"{mark.precision} over {mark.level}: {units.quantity(mark.work_per_s, f'{unit}/s')} of "
        f"{units.quantity(mark.attainable_work_per_s, f'{unit}/s')} ({units.share(point.share_of_roof)}) at "
        f"{units.quantity(mark.intensity, f'{unit}/byte')}"
    )
    where = "left" if point.side == "memory" else "right"
    yield (
        f"{where.capitalize()} of ridge {point.ridge_point:.3g}: {point.roof}. Bound: {row.bound or 'not known'}. "
        f"To win ≤ {units.share(row.headroom)} ({row.nearest})"
    )
    if (roof := roof_above(point)) is not None:
        yield told(report, roof)
    if row.uncounted:
        yield f"Not counted: {', '.join(row.uncounted)}"


def roof_above(point: Point) -> RooflineCeiling | None:
    """The ceiling that the point is held against: a measured one before others, a datasheet last."""
    rank = {"measured": 0, "report": 1, "derived": 2}
    named = [each for each in point.kernel.roofline.ceilings if each.name == point.roof]
    return min(named, key=lambda each: rank.get(each.origin, 3), default=None)


ORIGINS = {
    "measured": "measured on this machine",
    "report": "from the report of Nsight Compute",
    "derived": "derived from the units of an SM",
    "datasheet": "from the datasheet: nobody reached that here",
}


def told(report: Report, roof: RooflineCeiling) -> str:
    """A ceiling with its origin, its error where it was measured, and the clock at which it holds."""
    error = _error(report, roof)
    clock_hz = roof.memory_clock_hz if roof.name == "DRAM" else roof.sm_clock_hz
    at = f", at {units.quantity(clock_hz, 'Hz')}" if clock_hz else ""
    plus_minus = f" ± {units.share(error)}" if error is not None else ""
    return (
        f"{roof.name} {units.quantity(roof.per_s, roof.unit)}{plus_minus}{at}, "
        f"{ORIGINS.get(roof.origin, roof.origin)}: {roof.formula}"
    )


def _error(report: Report, roof: RooflineCeiling) -> float | None:
    """Of the calibration that it comes from."""
    if roof.origin != "measured":
        return None
    rows = [row for row in best(report.ceilings) if row.name == roof.name and row.unit == roof.unit]
    return next((row.error_share for row in rows), None)
