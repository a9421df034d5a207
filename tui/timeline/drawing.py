"""What each cell of a row shows, given its columns and slices. Nothing here reads a case or knows a widget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.style import Style

from diag.render.palette import ACTIVITIES as INKS
from diag.timeline.intervals import Times
from diag.timeline.track import Columns, Samples, Slices
from diag.tui.timeline.cells import PLAIN, Cells, letters_of
from diag.tui.timeline.pens import IDLE, SEAM, Pen

NARROWEST_NAME = 4
"""Columns. In less of them a name says nothing."""

MOST_NAMED = 400
"""Slices of a row that get a name: more do not fit, unless they lie on each other."""

COUNTER = Style(color=INKS["kernel"].color)
FOUND = Style(underline=True, bold=True)

_BRAILLE = 0x2800
_BITS = np.array(((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80)))
"""The bit of each dot of a cell, by row from the top and column (Unicode, Braille Patterns)."""


@dataclass(frozen=True, eq=False)
class Looks:
    """How to draw: the pens, whether they draw signs, and which names were searched for."""

    pens: Mapping[int, Pen]
    signs: bool
    found: NDArray[np.int64]  # ids of names


def slice_cells(columns: Columns, edges_ns: Times, looks: Looks) -> Cells:
    """One cell a column: how much of it is busy, in the colour of what takes most of it."""
    shares = columns.busy_ns / np.diff(edges_ns)
    heights = np.clip(np.rint(shares * 8), 1, 8).astype(np.int64)
    heights[columns.busy_ns == 0] = 0  # something without a duration
    at = np.flatnonzero((columns.busy_ns > 0) | (columns.count > 0))
    found = np.isin(columns.name_id[at], looks.found)
    drawn = Cells.blank(len(shares))
    for column, height, activity, is_found in zip(
        at.tolist(), heights[at].tolist(), columns.activity[at].tolist(), found.tolist(), strict=True
    ):
        pen = looks.pens[activity if activity >= 0 else IDLE]
        drawn.letters[column], style = pen.cell(height, signs=looks.signs)
        drawn.styles[column] = style + FOUND if is_found else style
    return drawn


def write_names(drawn: Cells, slices: Slices, edges_ns: Times, looks: Looks, title: Callable[[int], str]) -> None:
    """Draws slices that are wide enough as bars with their name inside; `title` gives it by the index of the slice."""
    first = np.searchsorted(edges_ns, slices.start_ns, side="left")
    stop = np.searchsorted(edges_ns, slices.end_ns, side="right") - 1
    inside = (slices.end_ns > edges_ns[0]) & (slices.start_ns < edges_ns[-1])
    for at in np.flatnonzero(inside & (stop - first >= NARROWEST_NAME))[:MOST_NAMED].tolist():
        begins, ends = int(first[at]), int(stop[at])
        has_end = slices.end_ns[at] <= edges_ns[-1]
        pen, name_id = looks.pens[int(slices.activity[at])], int(slices.name_id[at])
        room = ends - begins - (1 if has_end else 0)
        letters = letters_of(title(at), room)
        style = pen.name + (FOUND if name_id in looks.found else PLAIN)
        drawn.write(begins, letters + [" "] * (room - len(letters)), style)
        if has_end:
            drawn.write(ends - 1, ["|" if looks.signs else SEAM], pen.name if looks.signs else pen.fill)


def mark_gaps(drawn: Cells, busy_ns: Times, edges_ns: Times, window: tuple[int, int], looks: Looks) -> None:
    """Columns inside the window of a device in which it did nothing at all."""
    idle = (busy_ns == 0) & (edges_ns[1:] > window[0]) & (edges_ns[:-1] < window[1])
    pen = looks.pens[IDLE]
    for at in np.flatnonzero(idle).tolist():
        drawn.letters[at], drawn.styles[at] = pen.sign, pen.fill


def counter_cells(samples: Samples, edges_ns: Times, scale: tuple[float, float], height: int) -> list[Cells]:
    """Least to most of each half column as dots, in `height` lines, the largest values in the first.

    `edges_ns` are those of half columns.
    """
    least, most = samples.columns(edges_ns)
    low, high = scale
    levels = 4 * height
    known = ~np.isnan(least)
    to_level = (levels - 1) / ((high - low) or 1.0)
    bottom, top = (np.rint((np.where(known, value, low) - low) * to_level) for value in (least, most))
    lines = []
    for line in range(height):
        bits = np.zeros(len(least) // 2, np.int64)
        for row in range(4):
            level = levels - 1 - 4 * line - row
            dots = known & (bottom <= level) & (level <= top)
            bits += dots[0::2] * _BITS[row, 0] + dots[1::2] * _BITS[row, 1]
        letters = [chr(_BRAILLE + bit) if bit else " " for bit in bits.tolist()]
        lines.append(Cells(letters, [COUNTER] * len(letters)))
    return lines


def scale_of(samples: Samples, unit: str | None) -> tuple[float, float]:
    """From 0 to the largest value; of percentages to 100, and further down where values are negative."""
    if not len(samples):
        return 0.0, 1.0
    least, most = float(samples.value.min()), float(samples.value.max())
    return min(least, 0.0), max(most, 100.0) if unit == "%" else most if most > 0 else 1.0
