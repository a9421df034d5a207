"""Lines of the live view: text with styles, bars and sparklines, for a terminal or without colours for a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from diag.render.escape import one_line
from diag.render.layout import cells, elide
from diag.render.palette import ACTIVITIES, SEVERITIES, Ink
from diag.rules.finding import Severity

Style = Literal["plain", "title", "dim", "bar", "memory", "info", "warning", "critical", "selected"]

COLORED: Mapping[Style, str] = {
    "title": "1",
    "dim": "2",
    "bar": "36",
    "memory": "32",
    "info": "1;36",
    "warning": "1;33",
    "critical": "1;31",
    "selected": "7",
}
"""Of the 16 colours that every terminal has (ECMA-48, SGR). A colour never says what no word says, too."""


def _true(ink: Ink, *more: str) -> str:
    red, green, blue = bytes.fromhex(ink.color[1:])
    return ";".join((*more, f"38;2;{red};{green};{blue}"))


TRUE_COLORED: Mapping[Style, str] = {
    **COLORED,
    "bar": _true(ACTIVITIES["graph"]),
    "memory": _true(ACTIVITIES["range"]),
    **{severity: _true(ink, "1") for severity, ink in SEVERITIES.items()},
}
"""Those of the palette, for terminals of 24 bits (ISO 8613-6)."""

UNCOLORED: Mapping[Style, str] = {style: code for style, code in COLORED.items() if code in ("1", "2", "7")}
"""For NO_COLOR: bold, faint and reversed are no colours."""


class Span(NamedTuple):
    text: str  # printable
    style: Style = "plain"


Line = Sequence[Span]


@dataclass(frozen=True)
class Marks:
    """What bars are drawn with: `parts` of a cell that is filled in part, `levels` of a sparkline from low to high.

    `signs` stand before findings, by their severity.
    """

    full: str
    parts: str
    empty: str
    levels: str
    signs: Mapping[Severity, str]


@dataclass(frozen=True)
class Look:
    """How wide to write and what to draw with. `selected` is the pid of a process that somebody chose."""

    width: int
    marks: Marks
    selected: int | None = None


@dataclass(frozen=True)
class Section:
    """Lines under a title. Those of `header` stay where the others are scrolled, `focus` is which must be in sight.

    `least` lines, head included, it gets before any other gets more than that.
    """

    title: str
    lines: Sequence[Line]
    header: Sequence[Line] = ()  # of a table, in place of the title
    focus: int | None = None
    least: int = 4

    @property
    def head(self) -> Sequence[Line]:
        return self.header or ([[Span(self.title, "title")]] if self.title else [])


BLOCKS = Marks("━", "╸", "─", "▁▂▃▄▅▆▇", {severity: ink.sign for severity, ink in SEVERITIES.items()})
ASCII = Marks("#", "", ".", "_.-=+*#@", {"critical": "!", "warning": "*", "info": "-"})


def span(text: str, style: Style = "plain") -> Span:
    """Of any text: what is not printable is escaped."""
    return Span(text if text.isprintable() else one_line(text), style)


def name(text: str, room: int) -> str:
    """A name from outside in at most `room` cells, its end and its beginning kept; printable."""
    return elide(one_line(text[: 16 * room] if len(text) > 32 * room else text), room)


def fitted(line: Line, width: int) -> list[Span]:
    """At most `width` cells of a line; the span that crosses its end loses its middle."""
    left, kept = width, []
    for each in line:
        taken = cells(each.text)
        if taken > left:
            kept.append(Span(elide(each.text, left), each.style))
            break
        kept.append(each)
        left -= taken
    return kept


def bar(share: float | None, room: int, marks: Marks, style: Style = "bar") -> list[Span]:
    """A bar of `room` cells of which the share from 0 to 1 is filled; empty where it is not known."""
    if share is None:
        return [Span(" " * room)]
    steps = round(min(1.0, max(0.0, share)) * room * (len(marks.parts) + 1))
    whole, part = divmod(steps, len(marks.parts) + 1)
    filled = marks.full * whole + (marks.parts[part - 1] if part else "")
    return [Span(filled, style), Span(marks.empty * (room - len(filled)), "dim")]


def sparkline(values: Sequence[float | None], most: float, room: int, marks: Marks) -> str:
    """All values as at most `room` marks from 0 to `most`, where need be means of some; a space where none is known.

    >>> sparkline([0, None, 50, 100], 100, 8, BLOCKS), sparkline([0, 0, 90, 100], 100, 2, BLOCKS)
    ('    ▁ ▄▇', '▁▇')
    """
    shown = _means(values, -(-len(values) // room)) if room > 0 and values else []
    top = most or max((value for value in shown if value is not None), default=0)
    return "".join(_level(value, top, marks) for value in shown).rjust(room)


def _means(values: Sequence[float | None], size: int) -> list[float | None]:
    """Of groups of as many, from the end; None where nothing of a group is known."""
    groups = (values[max(0, end - size) : end] for end in range(len(values), 0, -size))
    known = [[value for value in group if value is not None] for group in groups]
    return [sum(group) / len(group) if group else None for group in known][::-1]


def _level(value: float | None, top: float, marks: Marks) -> str:
    if value is None:
        return " "
    return (
        marks.levels[min(len(marks.levels) - 1, int(value / top * len(marks.levels)))] if top > 0 else marks.levels[0]
    )


def ansi(line: Line, codes: Mapping[Style, str]) -> str:
    """The line for a terminal; with no codes it is the plain text."""
    return "".join(
        f"\x1b[{codes[each.style]}m{each.text}\x1b[0m" if each.style in codes else each.text for each in line
    )


def plain(lines: Iterable[Line]) -> str:
    return "".join(f"{ansi(line, {}).rstrip()}\n" for line in lines)
