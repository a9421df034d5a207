"""Pieces of SVG, and the file around them: it needs nothing else, and is readable in light and dark, by eye and by ear.

No custom properties and no paint-order: not every viewer knows them. Halos are texts of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from diag.render.escape import one_line
from diag.render.layout import elide

WIDTH = 960
LETTER = 7.2
"""Width of one, about, at 13 pixels."""

LONGEST_TEXT = 400
LONGEST_DESCRIPTION = 8_000
"""Characters."""

STYLE = """
  text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 13px; fill: #1b1f24; }
  .paper { fill: #ffffff; } .title { font-size: 16px; font-weight: bold; } .faint { fill: #5d6670; }
  .halo { fill: none; stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round; }
  .right { text-anchor: end; } .middle { text-anchor: middle; } .number { font-weight: bold; text-anchor: middle; }
  .line { fill: none; } .grid { stroke: #e3e6ea; } .axis, .leader { stroke: #5d6670; }
  @media (prefers-color-scheme: dark) {
    text { fill: #eef1f4; } .paper { fill: #14171a; } .faint { fill: #a5aeb8; } .halo { stroke: #14171a; }
    .grid { stroke: #2b3036; } .axis, .leader { stroke: #a5aeb8; }
  }
"""


def document(title: str, described: str, height: float, content: Iterable[str], style: str = "") -> str:
    """A whole file, `WIDTH` wide; `style` adds to what all pictures have, after it."""
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title desc" {size}>',
            f'<title id="title">{safe(title)}</title>',
            f'<desc id="desc">{safe(described, LONGEST_DESCRIPTION)}</desc>',
            f"<style>{STYLE}{style}</style>",
            '<rect class="paper" width="100%" height="100%"/>',
            *content,
            "</svg>\n",
        ]
    )


def safe(said: str, most: int = LONGEST_TEXT) -> str:
    """Characters and nothing else, on one line; all of them may stand in XML.

    >>> safe("<script>&\\x1b[31m\\0")
    '&lt;script&gt;&amp;\\\\x1b[31m\\\\x00'
    """
    return escape(elide(one_line(said), most))


def text(x: float, y: float, said: str, look: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{_class(look)}>{safe(said)}</text>'


def over(x: float, y: float, said: str, look: str) -> Iterator[str]:
    """A text that stays readable over lines."""
    anchor = "right" if "right" in look else "middle"
    yield text(x, y, said, f"halo {anchor}{' number' if 'number' in look else ''}")
    yield text(x, y, said, look)


def line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<path{_class(f"line {look}")} d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def rect(x: float, y: float, width: float, height: float, look: str, hint: str = "") -> str:
    """`hint` is what a viewer may show under the pointer."""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f"<rect{_class(look)} {size}>{_title(hint)}</rect>" if hint else f"<rect{_class(look)} {size}/>"


def path(d: str, look: str, hint: str = "") -> str:
    return f'<path{_class(look)} d="{d}">{_title(hint)}</path>' if hint else f'<path{_class(look)} d="{d}"/>'


def moved(x: float, y: float, content: Iterable[str]) -> Iterator[str]:
    yield f'<g transform="translate({x:.1f} {y:.1f})">'
    yield from content
    yield "</g>"


def _title(hint: str) -> str:
    return f"<title>{safe(hint)}</title>"


def _class(look: str) -> str:
    return f' class="{look}"' if look else ""
