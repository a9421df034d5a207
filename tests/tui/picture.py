"""What is seen in a picture of a terminal, however its text was cut into elements.

Rich puts cells of one style into one element, and a blank cell may or may not have the style of its neighbour: caches
of a long process decide. Nobody sees a blank cell but its background and its underline.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from diag.render.layout import cells

CELL = 12.2
"""Width of one, as Rich draws it."""
BLANK = "\xa0"
SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True, order=True)
class Run:
    """Letters, or background, of one style on one line. Columns are counted in cells."""

    top: float
    column: int
    style: str
    text: str

    @property
    def end(self) -> int:
        return self.column + cells(self.text)


def seen(svg: str) -> list[Run]:
    """By lines, each from left to right: backgrounds, of spaces, and letters."""
    root = ElementTree.fromstring(svg)
    styles = dict(re.findall(r"\.([\w-]+-r\d+) \{ (.*?) \}", svg))
    letters = (run for each in root.iter(f"{SVG}text") for run in _letters(each, styles))
    grounds = (_ground(each) for each in root.iter(f"{SVG}rect") if each.get("shape-rendering"))
    return [*_joined(grounds), *_joined(letters)]


def _letters(element: ElementTree.Element, styles: dict[str, str]) -> Iterator[Run]:
    """Its words, each where it stands; what is underlined is seen between them, too."""
    text, style = element.text or "", styles.get(element.get("class", ""), "")
    top, column = float(element.get("y", 0)), round(float(element.get("x", 0)) / CELL)
    words = r".+" if "text-decoration" in style else rf"[^{BLANK} ]+"
    for word in re.finditer(words, text):
        yield Run(top, column + cells(text[: word.start()]), style, word[0])


def _ground(element: ElementTree.Element) -> Run:
    width = round(float(element.get("width", 0)) / CELL)
    column = round(float(element.get("x", 0)) / CELL)
    return Run(float(element.get("y", 0)), column, element.get("fill", ""), " " * width)


def _joined(runs: Iterable[Run]) -> list[Run]:
    """Neighbours of one style are one run."""
    joined: list[Run] = []
    for run in sorted(runs):
        last = joined[-1] if joined else None
        if last and (last.top, last.end, last.style) == (run.top, run.column, run.style):
            joined[-1] = replace(last, text=last.text + run.text)
        else:
            joined.append(run)
    return joined
