"""Rooflines in the page: the pictures of `roofline_svg`, each in a figure of its own; the page has their colours."""

from __future__ import annotations

from collections.abc import Sequence

from diag.render.html.parts import fitting, section, tag, text
from diag.render.roofline_chart import Chart, charts
from diag.render.roofline_svg import WIDTH, chart_lines, described, height
from diag.rules.roofline_report import KernelRoofline

MOST_BYTES = 80_000


def rooflines(rows: Sequence[KernelRoofline]) -> str:
    made = charts(rows)
    shown = fitting(map(_figure, made), MOST_BYTES)
    note = f"The first {len(shown)} of {len(made)} pictures." if len(shown) < len(made) else ""
    hint = "A point tells its kernel and figures under the pointer, or with the Tab key."
    return (
        section("roofline", "Roofline", *shown, tag("p", text(f"{hint} {note}".strip()), class_="note"))
        if shown
        else ""
    )


def _figure(chart: Chart) -> str:
    drawing = tag(
        "svg",
        *chart_lines(chart, 0),
        class_="roofline",
        role="group",
        aria_label=described(chart),
        viewBox=f"0 0 {WIDTH} {height(chart):.0f}",
    )
    return tag("figure", drawing, class_="wide")
