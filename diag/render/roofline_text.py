"""Rooflines for a terminal: roofs as dots, kernels as their numbers, and a table that says what the numbers are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.render.escape import one_line
from diag.render.layout import columns, columns_left_out, wrap
from diag.render.roofline_chart import Chart, charts, roof_name
from diag.render.roofline_plot import AXIS_ROOM, Plot
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.roofline_report import KernelRoofline

NARROWEST = 40
INDENT = "  "

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
    plot = Plot(chart, width - AXIS_ROOM - len(INDENT) - 2, height, braille=braille)
    yield from (INDENT + line for line in plot.lines())
    table = _table(chart)
    yield from columns(table, width, INDENT)
    if narrow := columns_left_out(table, width, INDENT):
        yield from wrap(f"Too narrow here for: {', '.join(narrow)}.", width, INDENT)
    for note in _notes(chart):
        yield from wrap(note, width, INDENT)


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
