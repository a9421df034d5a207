"""What a roofline picture shows, before it is drawn: axes, roofs and points, both axes logarithmic."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from diag.model import units
from diag.rules.roofline_report import KernelRoofline, RooflineCeiling

MOST_KERNELS = 9
"""Points have one digit. What takes less time than nine others is in the table, not in the picture."""
SIGNS = "123456789abcdefghijklmnopqrstuvwxyz"
"""Of marks, where more kernels are drawn than have a digit."""
SLACK = 0.05
"""By which a point may stand above its roof, as its counters come from several passes; as `slack` of `ncu.roofline`."""

Range = tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """A kernel over the bytes of one level."""

    number: int  # of the kernel in the chart, from 1
    intensity: float
    work_per_s: float
    level: str
    precision: str
    is_main: bool  # of the level and precision that speak for the kernel
    attainable_work_per_s: float

    @property
    def sign(self) -> str:
        """One letter; kernels that none is left for have a cross."""
        return SIGNS[self.number - 1] if self.number <= len(SIGNS) else "+"


def is_above_roof(mark: Mark) -> bool:
    """A counter or a ceiling is wrong then: nothing is faster than its roof, but for what two passes differ by."""
    return mark.work_per_s > mark.attainable_work_per_s * (1 + SLACK)


@dataclass(frozen=True)
class Chart:
    """Kernels of one device that do work of one unit. Roofs are those of the first kernel, at its clocks."""

    work_unit: str  # 'FLOP', 'OP' or 'inst'
    kernels: Sequence[KernelRoofline]  # numbered from 1
    left_out: int
    slopes: Sequence[RooflineCeiling]  # levels of memory, the slowest first
    flats: Sequence[RooflineCeiling]  # kinds of work, the slowest first
    published: Sequence[RooflineCeiling]  # what datasheets say of the same, at other clocks
    marks: Sequence[Mark]
    intensities: Range
    rates: Range
    beside: Sequence[RooflineCeiling] = ()  # of `published`, those that are drawn, too
    shows_shares: bool = False  # in the size of the marks

    def told_by(self, ceiling: RooflineCeiling) -> str:
        """How a roof is known, as a part of its label, in pictures that draw both what is measured and printed."""
        return _KNOWN.get(ceiling.origin, "") if self.shows_shares else ""

    @property
    def title(self) -> str:
        first = self.kernels[0]
        clocks = [
            f"{name} at {units.quantity(hz, 'Hz')}"
            for name, hz in (("SMs", first.sm_clock_hz), ("memory", first.memory_clock_hz))
            if hz is not None
        ]
        what = "Instruction roofline" if self.work_unit == "inst" else "Roofline"
        return ", ".join([f"{what} of {first.device_name or 'a device without a name'}", *clocks])

    @property
    def top(self) -> float:
        """The highest flat roof, where all slopes end."""
        return max(flat.per_s for flat in self.flats)

    def ridge(self, flat: RooflineCeiling) -> float:
        """The intensity at which the fastest level reaches a flat roof: the roof begins there."""
        return flat.per_s / self.slopes[-1].per_s


def charts(rows: Sequence[KernelRoofline], most: int = MOST_KERNELS) -> list[Chart]:
    """One for each device and unit of work, in the order of the rows; each with at most `most` kernels."""
    groups: defaultdict[tuple[int, str | None, str], list[KernelRoofline]] = defaultdict(list)
    for row in rows:
        groups[row.source, row.device_name, row.roofline.work_unit].append(row)
    return [_chart(unit, group, most) for (_, _, unit), group in groups.items()]


def _chart(unit: str, group: Sequence[KernelRoofline], most: int) -> Chart:
    kernels = group[:most]
    slopes, flats, published = _roofs(unit, kernels)
    marks = [mark for number, kernel in enumerate(kernels, 1) for mark in _marks(number, kernel)]
    across = [mark.intensity for mark in marks]
    ridges = [flats[-1].per_s / slopes[-1].per_s, flats[-1].per_s / slopes[0].per_s]
    return Chart(
        work_unit=unit,
        kernels=kernels,
        left_out=len(group) - len(kernels),
        slopes=slopes,
        flats=flats,
        published=published,
        marks=marks,
        intensities=_widened([*across, *ridges], 2.5),
        rates=_widened([*(mark.work_per_s for mark in marks), *(flat.per_s for flat in flats)], 2.0),
    )


def in_full(chart: Chart) -> Chart:
    """With what datasheets say drawn beside the roofs, and marks that are the larger the more time they take."""
    highest = max([chart.rates[1], *(2.0 * each.per_s for each in chart.published if each.side == "compute")])
    return replace(chart, beside=chart.published, rates=(chart.rates[0], highest), shows_shares=True)


def at_level(chart: Chart, level: str | None) -> Chart:
    """The marks over one level of memory, each with its sign; None: those that speak for their kernels."""
    if level is None:
        return replace(chart, marks=[mark for mark in chart.marks if mark.is_main])
    marks = [mark for mark in chart.marks if mark.level == level]
    return replace(chart, marks=[replace(mark, is_main=_is_main_precision(chart, mark)) for mark in marks])


def _is_main_precision(chart: Chart, mark: Mark) -> bool:
    return mark.precision == chart.kernels[mark.number - 1].roofline.precision


_KNOWN = {"measured": " (measured here)", "datasheet": " (datasheet)"}
"""Other roofs are those of the report, or follow from it."""


def roof_name(ceiling: RooflineCeiling) -> str:
    """With its rate and, where that is not from the report, how it is known."""
    return f"{ceiling.name} {units.quantity(ceiling.per_s, ceiling.unit)}{_KNOWN.get(ceiling.origin, '')}"


def _roofs(
    unit: str, kernels: Sequence[KernelRoofline]
) -> tuple[list[RooflineCeiling], list[RooflineCeiling], list[RooflineCeiling]]:
    """Slopes, flat roofs, and what datasheets say. Of several ceilings of one name, that of the first kernel counts."""
    roofs: dict[tuple[str, bool], RooflineCeiling] = {}
    for kernel in kernels:
        for ceiling in kernel.roofline.ceilings:
            if ceiling.side == "memory" or ceiling.unit == f"{unit}/s":
                roofs.setdefault((ceiling.name, ceiling.origin == "datasheet"), ceiling)
    ordered = sorted(roofs.values(), key=lambda ceiling: ceiling.per_s)
    known = {name for name, is_published in roofs if not is_published}
    drawn = [each for each in ordered if each.origin != "datasheet" or each.name not in known]
    return (
        [each for each in drawn if each.side == "memory"],
        [each for each in drawn if each.side == "compute"],
        [each for each in ordered if each not in drawn],
    )


def _marks(number: int, kernel: KernelRoofline) -> list[Mark]:
    row = kernel.roofline
    return [
        Mark(
            number=number,
            intensity=point.intensity,
            work_per_s=point.work_per_s,
            level=point.level,
            precision=point.precision,
            is_main=(point.level, point.precision) == (row.level, row.precision),
            attainable_work_per_s=point.attainable_work_per_s,
        )
        for point in row.points
    ]


def _widened(values: Sequence[float], factor: float) -> Range:
    return min(values) / factor, max(values) * factor


def ticks(of: Range, most: int) -> list[float]:
    """Round values inside a range, at most `most` where the range is wide: decades, or less of a narrow range.

    >>> ticks((0.02, 40), 5), ticks((1.5, 30), 5)
    ([0.1, 1.0, 10.0], [2.0, 5.0, 10.0, 20.0])
    """
    low, high = (math.log10(value) for value in of)
    exponents = range(math.ceil(low), math.floor(high) + 1)
    if len(exponents) >= 3:
        step = -(-len(exponents) // most)
        return [10.0**exponent for exponent in exponents if exponent % step == 0]
    each = (factor * 10.0**exponent for exponent in range(math.floor(low), math.ceil(high)) for factor in (1, 2, 5))
    return [value for value in each if of[0] <= value <= of[1]]


def tick_label(value: float) -> str:
    """
    >>> [tick_label(value) for value in (0.01, 0.5, 20, 1e3, 2e9, 1e12, 1e16, 1e20)]
    ['0.01', '0.5', '20', '1k', '2G', '1T', '10P', '1e+20']
    """
    if value >= 1e18:
        return f"{value:.0e}"
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g}{prefix}"
    return f"{value:g}"
