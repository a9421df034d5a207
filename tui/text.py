"""Text from traces, made safe for widgets: nothing in it is mark-up, no control character reaches the terminal."""

from __future__ import annotations

from rich.text import Text
from textual.content import Content

from diag.render.escape import one_line
from diag.render.layout import elide

LONGEST = 2_000
"""Cells of any one text; names of 100 kB exist."""


def safe(text: str, room: int = LONGEST) -> str:
    """One printable line of at most `room` cells. It may still look like mark-up: wrap it in `content` or `cell`."""
    return elide(one_line(text), room)


def content(text: str, style: str = "", room: int = LONGEST) -> Content:
    """For `Static` and other widgets that draw content."""
    shown = Content(safe(text, room))
    return shown.stylize(style) if style else shown


def cell(text: str, style: str = "", room: int = LONGEST, *, right: bool = False) -> Text:
    """For the cells of a `DataTable`, which takes plain strings for mark-up."""
    return Text(safe(text, room), style=style, justify="right" if right else "left", no_wrap=True)


def lines(text: str, style: str = "", most: int = 400) -> Content:
    """Several lines with their indentation, each as `content` has it."""
    every = text.splitlines()
    shown = Content("\n").join(_indented(line, style) for line in every[:most])
    return shown if len(every) <= most else shown + Content(f"\n… {len(every) - most} more lines")


def _indented(line: str, style: str) -> Content:
    indent = len(line) - len(line.lstrip(" "))
    return Content(" " * min(indent, DEEPEST)) + content(line, style)


DEEPEST = 40
"""Cells of indentation."""
