"""A roofline in terminal cells: roofs as dots, kernels as their signs, between two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product

from diag.model import units
from diag.render.dots import Canvas
from diag.render.roofline_chart import Chart, Mark, Range, is_above_roof, tick_label, ticks
from diag.rules.roofline_report import RooflineCeiling

AXIS_ROOM = 6
"""Cells for the numbers of the upright axis."""
LEFT = AXIS_ROOM + 2
"""Cells left of the area of the plot."""
BELOW = 3
"""Lines below it."""
ROW_TICKS, COLUMN_TICKS = 5, 8
LARGEST_DISC = 7
"""Radius in dots of a kernel that takes all of the time."""
DOTTED = 4
"""Of the roofs that only a datasheet promises, one dot in so many is drawn."""

LABEL_STEP = 8
"""Cells by which the label of a flat roof gives way to the left."""

Place = tuple[int, int]


class Plot:
    """The area between the axes, and the axes. `places` are the column and row of each mark of the chart's."""

    def __init__(
        self, chart: Chart, width: int, height: int, *, braille: bool = True, selected: int | None = None
    ) -> None:
        """`width` and `height` are those of the area, in cells; `selected` is the index of a mark to be set off."""
        self.chart = chart
        self.canvas = Canvas(width, height, braille=braille)
        self.places: dict[int, Place] = {}
        self._draw(selected)

    def _draw(self, selected: int | None) -> None:
        """Marks first: labels go where they leave room."""
        chart = self.chart
        for slope in (*chart.slopes, *(each for each in chart.beside if each.side == "memory")):
            self._slope(slope)
        for flat in (*chart.flats, *(each for each in chart.beside if each.side == "compute")):
            self._flat(flat)
        if chart.shows_shares:
            for mark in chart.marks:
                self._disc(mark)
        if selected is not None:
            self._way_to_the_roof(chart.marks[selected])
        self._marks(selected)
        for flat in (*chart.flats, *(each for each in chart.beside if each.side == "compute")):
            self._name_flat(flat)
        for slope in chart.slopes:
            self._name_slope(slope)

    def _across(self, intensity: float) -> int:
        return _place(intensity, self.chart.intensities, self.canvas.dots_across)

    def _down(self, work_per_s: float) -> int:
        return self.canvas.dots_down - 1 - _place(work_per_s, self.chart.rates, self.canvas.dots_down)

    def _slope(self, slope: RooflineCeiling) -> None:
        """A dot for each column, and for each row where the line is steep, up to the highest flat roof."""
        ink = _ink(slope)
        for across in range(0, self.canvas.dots_across, _step(slope)):
            rate = slope.per_s * _value(across, self.chart.intensities, self.canvas.dots_across)
            if rate <= self.chart.top:
                self.canvas.dot(across, self._down(rate), ink)
        for up in range(0, self.canvas.dots_down, _step(slope)):
            rate = _value(up, self.chart.rates, self.canvas.dots_down)
            if rate <= self.chart.top:
                self.canvas.dot(self._across(rate / slope.per_s), self.canvas.dots_down - 1 - up, ink)

    def _flat(self, flat: RooflineCeiling) -> None:
        for across in range(max(0, self._across(self.chart.ridge(flat))), self.canvas.dots_across, _step(flat)):
            self.canvas.dot(across, self._down(flat.per_s), _ink(flat))

    def _disc(self, mark: Mark) -> None:
        """A circle around a kernel, whose area grows with its share of the time."""
        share = self.chart.kernels[mark.number - 1].share
        if not mark.is_main or not share:
            return
        radius = min(LARGEST_DISC, self.canvas.dots_down // 8) * math.sqrt(min(share, 1.0))
        across, down = self._across(mark.intensity), self._down(mark.work_per_s)
        for step in range(48 if radius >= 2 else 0):
            angle = step * 2 * math.pi / 48
            self.canvas.dot(
                across + round(radius * math.cos(angle)), down + round(radius * math.sin(angle)), _mark_ink(mark)
            )

    def _way_to_the_roof(self, mark: Mark) -> None:
        """Upright, from the mark to what is attainable at its intensity."""
        top, bottom = sorted((self._down(mark.attainable_work_per_s), self._down(mark.work_per_s)))
        for down in range(top, bottom, 2):
            self.canvas.dot(self._across(mark.intensity), down, "way")

    def _marks(self, selected: int | None) -> None:
        """Signs where kernels stand, those that would cover another beside it; crosses over the other levels."""
        order = sorted(enumerate(self.chart.marks), key=lambda each: (each[0] != selected, not each[1].is_main))
        for index, mark in order:
            column, row = self.canvas.cell(self._across(mark.intensity), self._down(mark.work_per_s))
            text = mark.sign if mark.is_main else "+"
            for right, down in _NEARBY if mark.is_main or index == selected else _NEARBY[:1]:
                if self.canvas.is_free(column + right, row + down, 1):
                    ink = "selected" if index == selected else _mark_ink(mark)
                    self.canvas.write(column + right, row + down, text, ink)
                    self.places[index] = (column + right, row + down)
                    break

    def _name_flat(self, flat: RooflineCeiling) -> None:
        """Above the line or else below it, as far to the right as there is room; the notes have all names."""
        text = f"{flat.name} {units.quantity(flat.per_s, flat.unit)}" + self.chart.told_by(flat)
        _, row = self.canvas.cell(0, self._down(flat.per_s))
        right = self.canvas.width - len(text)
        left, _ = self.canvas.cell(self._across(self.chart.ridge(flat)), 0)
        columns = range(right, min(left, right - 1), -LABEL_STEP)
        for column, at in product(columns, (row - 1, row + 1)):
            if self.canvas.is_free(column, at, len(text)):
                self.canvas.write(column, at, text, _ink(flat))
                return

    def _name_slope(self, slope: RooflineCeiling) -> None:
        """To the right of the line, as low as there is room."""
        text = slope.name + self.chart.told_by(slope)
        for row in range(self.canvas.height - 1, 0, -1):
            up = (self.canvas.height - 1 - row) * self.canvas.dots_down // self.canvas.height
            rate = _value(up, self.chart.rates, self.canvas.dots_down)
            column, _ = self.canvas.cell(self._across(rate / slope.per_s), 0)
            if rate < self.chart.top and column >= 0 and self.canvas.is_free(column + 2, row, len(text)):
                self.canvas.write(column + 2, row, text, _ink(slope))
                return

    def lines(self) -> Iterator[str]:
        for runs in self.runs():
            yield "".join(text for text, _ in runs).rstrip()

    def runs(self) -> Iterator[list[tuple[str, str]]]:
        """The lines in parts, each with its ink: measured, datasheet, mark, wrong, selected, way, or none."""
        at_row = {self.canvas.cell(0, self._down(tick))[1]: tick for tick in ticks(self.chart.rates, ROW_TICKS)}
        for row in range(self.canvas.height):
            label = tick_label(at_row[row]) if row in at_row else ""
            yield [(f"{label:>{AXIS_ROOM}} {'┤' if row in at_row else '│'}", ""), *self.canvas.runs(row)]
        at_column: Mapping[int, float] = {
            self.canvas.cell(self._across(tick), 0)[0]: tick for tick in ticks(self.chart.intensities, COLUMN_TICKS)
        }
        rule = "".join("┴" if column in at_column else "─" for column in range(self.canvas.width))
        yield [(f"{'':>{AXIS_ROOM}} └{rule}", "")]
        yield [(f"{'':>{LEFT}}{self._under(at_column)}", "")]
        yield [(f"{'':>{LEFT}}{f'{self.chart.work_unit}/byte':^{self.canvas.width}}", "")]

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
"""Where a sign may stand whose own place is taken, the nearest first."""


def _step(ceiling: RooflineCeiling) -> int:
    return DOTTED if ceiling.origin == "datasheet" else 1


def _ink(ceiling: RooflineCeiling) -> str:
    return ceiling.origin if ceiling.origin in ("measured", "datasheet") else ""


def _mark_ink(mark: Mark) -> str:
    return "wrong" if is_above_roof(mark) else "mark"


def _place(value: float, of: Range, dots: int) -> int:
    """The dot of a value on a logarithmic axis; outside of 0 to dots - 1 for what lies beyond its ends."""
    low, high = (math.log(end) for end in of)
    return round((math.log(value) - low) / (high - low) * (dots - 1))


def _value(dot: int, of: Range, dots: int) -> float:
    low, high = (math.log(end) for end in of)
    return math.exp(low + dot / (dots - 1) * (high - low))
