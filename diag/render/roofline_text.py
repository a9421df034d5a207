"""Rooflines for a terminal: roofs as dots, kernels as their numbers, and a table that says what the numbers are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from diag.model import units
from diag.render.dots import Canvas
from diag.render.escape import one_line
from diag.render.layout import columns, columns_left_out, wrap
from diag.render.roofline_chart import Chart, Range, charts, roof_name, tick_label, ticks
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.roofline_report import KernelRoofline, RooflineCeiling

AXIS_ROOM = 6
"""Cells for the numbers of the upright axis."""
NARROWEST = 40
INDENT = "  "
ROW_TICKS, COLUMN_TICKS = 5, 8

_ASCII = str.maketrans({"│": "|", "┤": "+", "└": "+", "─": "-", "┴": "+", "×": "x", "…": "~"})


def roofline_lines(
    rows: Sequence[KernelRoofline], *, width: int = 80, height: int = 20, braille: bool = True
) -> list[str]:
    """Pictures of the kernels, one for each device and unit of work, in lines of at most `width` cells (40 at least).

    `height` is that of the plot, without titles and tables. Without `braille`, all of a picture is ASCII.
    """
    width = max(width, NARROWEST)
    lines = [line for chart in charts(rows) for line in (*_picture(chart, width, height, braille), "")][:-1]
    return lines if braille else [line.translate(_ASCII) for line in lines]


def _picture(chart: Chart, width: int, height: int, braille: bool) -> Iterator[str]:
    yield from wrap(one_line(chart.title), width)
    yield f"{INDENT}{chart.work_unit}/s"
    plot = _Plot(chart, width - AXIS_ROOM - len(INDENT) - 2, height, braille=braille)
    plot.draw()
    yield from (INDENT + line for line in plot.lines())
    table = _table(chart)
    yield from columns(table, width, INDENT)
    if narrow := columns_left_out(table, width, INDENT):
        yield from wrap(f"Too narrow here for: {', '.join(narrow)}.", width, INDENT)
    for note in _notes(chart):
        yield from wrap(note, width, INDENT)


class _Plot:
    """The area between the axes, and the axes."""

    def __init__(self, chart: Chart, width: int, height: int, *, braille: bool) -> None:
        self.chart = chart
        self.canvas = Canvas(width, height, braille=braille)

    def draw(self) -> None:
        """Marks first: labels go where they leave room."""
        for slope in self.chart.slopes:
            self._slope(slope)
        for flat in self.chart.flats:
            self._flat(flat)
        self._marks()
        for flat in self.chart.flats:
            self._name_flat(flat)
        for slope in self.chart.slopes:
            self._name_slope(slope)

    def _across(self, intensity: float) -> int:
        return _place(intensity, self.chart.intensities, self.canvas.dots_across)

    def _down(self, work_per_s: float) -> int:
        return self.canvas.dots_down - 1 - _place(work_per_s, self.chart.rates, self.canvas.dots_down)

    def _slope(self, slope: RooflineCeiling) -> None:
        """A dot for each column, and for each row where the line is steep, up to the highest flat roof."""
        for across in range(self.canvas.dots_across):
            rate = slope.per_s * _value(across, self.chart.intensities, self.canvas.dots_across)
            if rate <= self.chart.top:
                self.canvas.dot(across, self._down(rate))
        for up in range(self.canvas.dots_down):
            rate = _value(up, self.chart.rates, self.canvas.dots_down)
            if rate <= self.chart.top:
                self.canvas.dot(self._across(rate / slope.per_s), self.canvas.dots_down - 1 - up)

    def _flat(self, flat: RooflineCeiling) -> None:
        for across in range(max(0, self._across(self.chart.ridge(flat))), self.canvas.dots_across):
            self.canvas.dot(across, self._down(flat.per_s))

    def _marks(self) -> None:
        """Numbers where kernels stand, those that would cover another beside it; crosses over the other levels."""
        for mark in sorted(self.chart.marks, key=lambda mark: not mark.is_main):
            column, row = self.canvas.cell(self._across(mark.intensity), self._down(mark.work_per_s))
            text = str(mark.number) if mark.is_main else "+"
            for right, down in _NEARBY if mark.is_main else _NEARBY[:1]:
                if self.canvas.is_free(column + right, row + down, 1):
                    self.canvas.write(column + right, row + down, text)
                    break

    def _name_flat(self, flat: RooflineCeiling) -> None:
        """At the right end, above the line or else below it; the notes have all names."""
        text = f"{flat.name} {units.quantity(flat.per_s, flat.unit)}"
        _, row = self.canvas.cell(0, self._down(flat.per_s))
        column = self.canvas.width - len(text)
        for at in (row - 1, row + 1):
            if self.canvas.is_free(column, at, len(text)):
                self.canvas.write(column, at, text)
                return

    def _name_slope(self, slope: RooflineCeiling) -> None:
        """To the right of the line, as low as there is room."""
        for row in range(self.canvas.height - 1, 0, -1):
            up = (self.canvas.height - 1 - row) * self.canvas.dots_down // self.canvas.height
            rate = _value(up, self.chart.rates, self.canvas.dots_down)
            column, _ = self.canvas.cell(self._across(rate / slope.per_s), 0)
            if rate < self.chart.top and column >= 0 and self.canvas.is_free(column + 2, row, len(slope.name)):
                self.canvas.write(column + 2, row, slope.name)
                return

    def lines(self) -> Iterator[str]:
        at_row = {self.canvas.cell(0, self._down(tick))[1]: tick for tick in ticks(self.chart.rates, ROW_TICKS)}
        for row, line in enumerate(self.canvas.lines()):
            label = tick_label(at_row[row]) if row in at_row else ""
            yield f"{label:>{AXIS_ROOM}} {'┤' if row in at_row else '│'}{line}".rstrip()
        at_column: Mapping[int, float] = {
            self.canvas.cell(self._across(tick), 0)[0]: tick for tick in ticks(self.chart.intensities, COLUMN_TICKS)
        }
        rule = "".join("┴" if column in at_column else "─" for column in range(self.canvas.width))
        yield f"{'':>{AXIS_ROOM}} └{rule}"
        yield f"{'':>{AXIS_ROOM + 2}}{self._under(at_column)}".rstrip()
        yield f"{'':>{AXIS_ROOM + 2}}{f'{self.chart.work_unit}/byte':^{self.canvas.width}}".rstrip()

    def _under(self, at_column: Mapping[int, float]) -> str:
        """Labels under their ticks."""
        line = Canvas(self.canvas.width, 1, braille=False)
        for column, tick in at_column.items():
            text = tick_label(tick)
            start = min(max(0, column - len(text) // 2), self.canvas.width - len(text))
            if line.is_free(start, 0, len(text)) and line.is_free(start + len(text), 0, 1):
                line.write(start, 0, text)
        return next(line.lines())


_NEARBY = sorted(product(range(-6, 7), range(-1, 2)), key=lambda at: (abs(at[0]) + 3 * abs(at[1]), at[0] < 0, at))
"""Where a number may stand whose own place is taken, the nearest first."""


def _place(value: float, of: Range, dots: int) -> int:
    """The dot of a value on a logarithmic axis; outside of 0 to dots - 1 for what lies beyond its ends."""
    low, high = (math.log(end) for end in of)
    return round((math.log(value) - low) / (high - low) * (dots - 1))


def _value(dot: int, of: Range, dots: int) -> float:
    low, high = (math.log(end) for end in of)
    return math.exp(low + dot / (dots - 1) * (high - low))


def _table(chart: Chart) -> Table:
    unit = chart.work_unit
    return Table(
        "",
        ("#", "share", "bound", "over", f"{unit}/byte", f"{unit}/s", "headroom", "kernel"),
        [_row(number, kernel) for number, kernel in enumerate(chart.kernels, 1)],
        name_column=7,
    )


def _row(number: int, kernel: KernelRoofline) -> list[str]:
    row = kernel.roofline
    return [
        str(number),
        NOT_CAPTURED if kernel.share is None else units.share(kernel.share),
        row.bound or NOT_CAPTURED,
        row.level,
        f"{row.intensity:.3g}",
        units.quantity(row.work_per_s, f"{row.work_unit}/s").removesuffix(f"{row.work_unit}/s"),
        units.share(row.headroom),
        one_line(f"{kernel.short_name} {kernel.configuration}"),
    ]


def _notes(chart: Chart) -> Iterator[str]:
    roofs = ", ".join(map(roof_name, (*chart.slopes, *chart.flats)))
    yield f"Roofs at the clocks of kernel 1: {roofs}."
    if chart.published:
        said = ", ".join(
            f"{each.name} {units.quantity(each.per_s, each.unit)}{_at(each.sm_clock_hz)}" for each in chart.published
        )
        yield f"Datasheets say: {said}."
    if any(not mark.is_main for mark in chart.marks):
        yield "A number stands over the bytes of the level that is nearest to its roof, + over those of the others."
    if chart.left_out:
        yield f"{units.count(chart.left_out, 'more kernel')} with less time not drawn."


def _at(clock_hz: float | None) -> str:
    return "" if clock_hz is None else f" at {units.quantity(clock_hz, 'Hz')}"
