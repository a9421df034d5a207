"""What all plots have around the area in which they draw: title, what was measured, legend, remarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from diag.render import svg
from diag.render.escape import one_line
from diag.render.layout import cells, elide, wrap
from diag.render.plots import looks
from diag.render.svg import WIDTH

MARGIN = 28
LINE = 18
SWATCH = 14
LETTER, BOLD = 8.1, 8.3
"""Widths of a letter in DejaVu Sans, which is what many machines without a desktop have, and wider than most."""

LETTERS, BOLD_LETTERS = int((WIDTH - 2 * MARGIN) / LETTER), int((WIDTH - 2 * MARGIN) / BOLD)
TITLE_LETTERS = 78
"""In a line over the whole width."""

MOST_LINES = 4
"""Of the remarks below a picture each; what is longer was not written by `diag`."""


@dataclass(frozen=True)
class Sheet:
    """`body` is drawn `height` high below title and legend; it uses the classes of `used`, of which the legend names
    `legend`, and those of `style`."""

    title: str
    said: str  # below the title
    body: Sequence[str]
    height: float
    described: str  # the picture in words
    legend: Sequence[str] = ()
    used: Sequence[str] = ()
    notes: Sequence[str] = ()
    style: str = ""

    def drawn(self) -> str:
        used = {*self.used, *self.legend}
        head, top = _head(self)
        notes = [line for note in self.notes for line in _lines(note)]
        below = top + self.height + 6
        content = [*looks.patterns(used), *head, *svg.moved(0, top, self.body), *_notes(notes, below)]
        style = looks.style(used) + self.style
        described = f"{self.said} {self.described}".strip()
        return svg.document(self.title, described, below + LINE * len(notes) + 16, content, style)


def _head(sheet: Sheet) -> tuple[list[str], float]:
    """And where it ends."""
    lines = [svg.text(MARGIN, 36, elide(one_line(sheet.title), TITLE_LETTERS), "title")]
    y = 36.0
    for said in _lines(sheet.said):
        y += LINE
        lines.append(svg.text(MARGIN, y + 2, said, "faint"))
    if sheet.legend:
        y += 26
        x = float(MARGIN)
        for look in sheet.legend:
            label = looks.LOOKS[look].label
            width = SWATCH + 8 + LETTER * cells(label) + 22
            if x + width > WIDTH - MARGIN:
                x, y = MARGIN, y + 22
            lines.append(svg.rect(x, y - 11, SWATCH, SWATCH, f"bar {look}"))
            lines.append(svg.text(x + SWATCH + 8, y + 1, label))
            x += width
    return lines, y + 18


def _lines(said: str) -> list[str]:
    return wrap(one_line(said), LETTERS)[:MOST_LINES] if said else []


def _notes(lines: Iterable[str], y: float) -> Iterator[str]:
    for at, line in enumerate(lines, 1):
        yield svg.text(MARGIN, y + LINE * at, line, "faint small")
