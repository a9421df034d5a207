"""Rooflines as one SVG file that needs nothing else: readable in light and dark, by eye, and by a screen reader.

Levels of memory differ by colour and by shape; the colours are those of Okabe and Ito, which colour-blind people can
tell apart (jfly.uni-koeln.de/color).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from diag.model import units
from diag.render import svg
from diag.render.escape import one_line
from diag.render.labels import Box, near
from diag.render.layout import shorten
from diag.render.roofline_chart import Chart, Mark, charts, roof_name, tick_label, ticks
from diag.render.svg import LETTER
from diag.rules.roofline_report import KernelRoofline, RooflineCeiling

WIDTH = svg.WIDTH
PLOT = Box(80, 64, 840, 440)  # of a chart whose top left corner is 0, 0
ROW = 20
LONGEST_NAME = 46
MARK = 6.0
"""Half of the width of a mark."""

_STYLE = """
  path { fill: none; } .roof { stroke: #1b1f24; stroke-width: 2; }
  .mark { fill: #ffffff; stroke: #1b1f24; stroke-width: 2; }
  .dram { stroke: #0072b2; } .l2 { stroke: #b35c00; } .l1 { stroke: #00795a; }
  .of-dram { fill: #0072b2; } .of-l2 { fill: #b35c00; } .of-l1 { fill: #00795a; }
  @media (prefers-color-scheme: dark) {
    .mark { fill: #14171a; } .roof, .mark { stroke: #eef1f4; }
    .dram { stroke: #56b4e9; } .l2 { stroke: #e69f00; } .l1 { stroke: #2cc295; }
    .of-dram { fill: #56b4e9; } .of-l2 { fill: #e69f00; } .of-l1 { fill: #2cc295; }
  }
"""

_LEGEND: Sequence[tuple[str, float, bool]] = (
    ("#", 100, True), ("kernel", 116, False), ("share", 530, True), ("bound", 550, False), ("over", 630, False),
    ("{unit}/byte", 740, True), ("{unit}/s", 830, True), ("headroom", 920, True),
)  # fmt: skip
"""Columns of the table: what heads each, where it stands, and whether it ends there."""


def roofline_svg(rows: Sequence[KernelRoofline], most: int | None = None) -> str:
    """One picture below the other, for each device and unit of work, or the first `most` of them. The same rows give
    the same bytes.
    """
    made = charts(rows)[:most]
    tops = [0.0]
    for chart in made:
        tops.append(tops[-1] + height(chart))
    said = " ".join(described(chart) for chart in made) or "No kernel has a roofline."
    drawn = (line for chart, top in zip(made, tops, strict=False) for line in chart_lines(chart, top))
    return svg.document("Roofline", said, max(tops[-1], ROW), drawn, _STYLE)


def described(chart: Chart) -> str:
    """The picture in words."""
    roofs = ", ".join(roof_name(each) for each in (*chart.slopes, *chart.flats))
    points = "; ".join(
        f"{number}: {kernel.short_name}, {kernel.roofline.bound or 'no verdict'}, "
        f"{units.quantity(kernel.roofline.intensity, f'{chart.work_unit}/byte')} of {kernel.roofline.level}, "
        f"{units.quantity(kernel.roofline.work_per_s, f'{chart.work_unit}/s')}, "
        f"headroom {units.share(kernel.roofline.headroom)}"
        for number, kernel in enumerate(chart.kernels, 1)
    )
    return f"{chart.title}. Roofs: {roofs}. Kernels: {points}."


def height(chart: Chart) -> float:
    """Of a picture, in the units of its `<svg>`, which is `WIDTH` wide."""
    return PLOT.top + PLOT.height + 70 + ROW * (len(chart.kernels) + 1 + len(_notes(chart))) + 30


def chart_lines(chart: Chart, top: float) -> Iterator[str]:
    """One picture `top` below the upper edge, for an `<svg>` whose style gives its classes their looks."""
    yield from svg.moved(0, top, _picture(chart))


def _picture(chart: Chart) -> Iterator[str]:
    yield svg.text(PLOT.left, 36, chart.title, "title")
    yield from _Plot(chart).drawn()
    yield from _legend(chart, PLOT.top + PLOT.height + 84)


class _Plot:
    """The area of the axes. What has a name is remembered, so that no name covers another."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.taken: list[Box] = []

    def x(self, intensity: float) -> float:
        return PLOT.left + PLOT.width * _along(intensity, self.chart.intensities)

    def y(self, rate: float) -> float:
        return PLOT.top + PLOT.height * (1 - _along(rate, self.chart.rates))

    def drawn(self) -> Iterator[str]:
        yield from self._axes()
        for slope in self.chart.slopes:
            (x1, y1), (x2, y2) = self._ends(slope)
            yield f'<path class="roof {_kind(slope.name)}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'
        for flat in self.chart.flats:
            yield svg.line(max(PLOT.left, self.x(self.chart.ridge(flat))), self.y(flat.per_s), PLOT.left + PLOT.width,
                        self.y(flat.per_s), "roof")  # fmt: skip
        for mark in self.chart.marks:
            x, y = self.x(mark.intensity), self.y(mark.work_per_s)
            self.taken.append(Box.around(x, y, 2 * MARK + 2, 2 * MARK + 2))
        yield from self._flat_names()
        yield from self._slope_names()
        yield from self._marks()

    def _axes(self) -> Iterator[str]:
        bottom, right = PLOT.top + PLOT.height, PLOT.left + PLOT.width
        for tick in ticks(self.chart.intensities, 10):
            yield svg.line(self.x(tick), PLOT.top, self.x(tick), bottom, "grid")
            yield svg.text(self.x(tick), bottom + 20, tick_label(tick), "faint middle")
        for tick in ticks(self.chart.rates, 8):
            yield svg.line(PLOT.left, self.y(tick), right, self.y(tick), "grid")
            yield svg.text(PLOT.left - 8, self.y(tick) + 4, tick_label(tick), "faint right")
        yield f'<path class="axis" d="M{PLOT.left} {PLOT.top}V{bottom}H{right}"/>'
        yield svg.text(PLOT.left - 8, PLOT.top - 8, f"{self.chart.work_unit}/s", "faint right")
        yield svg.text(PLOT.left + PLOT.width / 2, bottom + 42, f"{self.chart.work_unit} per byte", "faint middle")

    def _ends(self, slope: RooflineCeiling) -> tuple[tuple[float, float], tuple[float, float]]:
        """From where the line enters the plot to the highest flat roof."""
        start = max(self.chart.intensities[0], self.chart.rates[0] / slope.per_s)
        end = min(self.chart.intensities[1], self.chart.top / slope.per_s)
        return (self.x(start), self.y(start * slope.per_s)), (self.x(end), self.y(end * slope.per_s))

    def _flat_names(self) -> Iterator[str]:
        """At the right end, above the line or else below it."""
        for flat in reversed(self.chart.flats):
            name = roof_name(flat)
            width, y = LETTER * len(name), self.y(flat.per_s)
            boxes = [Box(PLOT.left + PLOT.width - width, y + shift, width, 18) for shift in (-20, 3, -40, 23)]
            box = next((box for box in boxes if not any(map(box.meets, self.taken))), boxes[0])
            self.taken.append(box)
            yield from svg.over(PLOT.left + PLOT.width, box.top + 14, name, "right")

    def _slope_names(self) -> Iterator[str]:
        """Along each line, in another part of it than the next."""
        for at, slope in enumerate(self.chart.slopes):
            (x1, y1), (x2, y2) = self._ends(slope)
            angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
            part = 0.9 - 0.2 * (at % 3) - 0.1
            x, y = x1 + part * (x2 - x1), y1 + part * (y2 - y1)
            yield f'<g transform="translate({x:.1f} {y:.1f}) rotate({angle:.1f})">'
            yield from svg.over(0, -6, roof_name(slope), f"middle of-{_kind(slope.name)}")
            yield "</g>"
            self.taken.append(Box.around(x, y - 6, 90, 60))

    def _marks(self) -> Iterator[str]:
        """Shapes where the figures are, and a number beside each."""
        numbers = []
        for mark in sorted(self.chart.marks, key=lambda mark: mark.is_main):
            x, y = self.x(mark.intensity), self.y(mark.work_per_s)
            yield _shape(mark, x, y, _hint(self.chart, mark))
            numbers.append((mark, x, y))
        for mark, x, y in reversed(numbers):
            box = near(x, y, 14, 14, self.taken, PLOT)
            self.taken.append(box)
            at_x, at_y = box.center
            if math.hypot(at_x - x, at_y - y) > 20:
                yield svg.line(x, y, at_x, at_y, "leader")
            yield from svg.over(at_x, at_y + 5, str(mark.number), "number" if mark.is_main else "number faint")


def _along(value: float, of: tuple[float, float]) -> float:
    """From 0 to 1 on a logarithmic axis."""
    low, high = (math.log(end) for end in of)
    return (math.log(value) - low) / (high - low)


def _kind(level: str) -> str:
    """The class of a level, for its colour."""
    return {"DRAM": "dram", "L2": "l2", "L1": "l1"}.get(level, "axis")


def _shape(mark: Mark, x: float, y: float, hint: str) -> str:
    """A circle for device memory, a square for L2, a triangle for L1; filled for the point that speaks for a kernel."""
    kind = _kind(mark.level)
    look = f'class="mark {kind}{f" of-{kind}" if mark.is_main else ""}"'
    title = f"<title>{svg.safe(hint)}</title>"
    if mark.level == "L2":
        return f'<rect {look} x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10">{title}</rect>'
    if mark.level == "L1":
        points = f"{x:.1f},{y - MARK:.1f} {x - MARK:.1f},{y + 5:.1f} {x + MARK:.1f},{y + 5:.1f}"
        return f'<polygon {look} points="{points}">{title}</polygon>'
    return f'<circle {look} cx="{x:.1f}" cy="{y:.1f}" r="5.5">{title}</circle>'


def _hint(chart: Chart, mark: Mark) -> str:
    return (
        f"{chart.kernels[mark.number - 1].short_name}: {mark.precision} at "
        f"{units.quantity(mark.work_per_s, f'{chart.work_unit}/s')}, "
        f"{units.quantity(mark.intensity, f'{chart.work_unit}/byte')} of {mark.level}"
    )


def _legend(chart: Chart, top: float) -> Iterator[str]:
    for header, x, is_right in _LEGEND:
        yield svg.text(x, top, header.format(unit=chart.work_unit), "faint right" if is_right else "faint")
    names = shorten([one_line(f"{each.short_name} {each.configuration}") for each in chart.kernels], LONGEST_NAME)
    for number, (kernel, name) in enumerate(zip(chart.kernels, names, strict=True), 1):
        for text, (_, x, is_right) in zip(_cells(number, name, kernel), _LEGEND, strict=True):
            yield svg.text(x, top + ROW * number, text, "right" if is_right else "")
    for at, note in enumerate(_notes(chart), len(chart.kernels) + 1):
        yield svg.text(PLOT.left, top + 8 + ROW * at, note, "faint")


def _cells(number: int, name: str, kernel: KernelRoofline) -> Sequence[str]:
    row = kernel.roofline
    return (
        str(number),
        name,
        "-" if kernel.share is None else units.share(kernel.share),
        row.bound or "-",
        row.level,
        units.quantity(row.intensity, f"{row.work_unit}/byte").removesuffix(f" {row.work_unit}/byte"),
        units.quantity(row.work_per_s, f"{row.work_unit}/s").removesuffix(f"{row.work_unit}/s"),
        units.share(row.headroom),
    )


def _notes(chart: Chart) -> Sequence[str]:
    notes = [
        "Circle: over the bytes of device memory; square: L2; triangle: L1; filled: the level nearest to its roof.",
        "The roofs are those of kernel 1, at its clocks.",
    ]
    if chart.published:
        said = ", ".join(
            roof_name(each) + (f" at {units.quantity(each.sm_clock_hz, 'Hz')}" if each.sm_clock_hz else "")
            for each in chart.published
        )
        notes.append(f"Datasheets say: {said}.")
    if chart.left_out:
        notes.append(f"{units.count(chart.left_out, 'more kernel')} with less time not drawn.")
    return notes
