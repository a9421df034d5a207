"""Pieces of HTML. Whatever comes from a file is made safe here, and no piece may grow without bound."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from diag.render.escape import one_line
from diag.render.layout import elide

LONGEST_TEXT = 1_200
LONGEST_NAME = 240
LONGEST_QUERY = 4_000
"""Characters."""

_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")

Attribute = str | int | float | bool | None


def text(said: str, most: int = LONGEST_TEXT) -> str:
    """Characters and nothing else, on one line.

    >>> text("<script>&\\x1b[31m")
    '&lt;script&gt;&amp;\\\\x1b[31m'
    """
    return escape(elide(one_line(said), most))


def name(of: str) -> str:
    return text(of, LONGEST_NAME) or "(no name)"


def prose(said: str) -> str:
    """Running text, in which what stands between backticks is code.

    >>> prose("set `pin_memory=True` <here>")
    'set <code>pin_memory=True</code> &lt;here&gt;'
    """
    return _CODE.sub(r"<code>\1</code>", text(said))


def tag(kind: str, *content: str, **attributes: Attribute) -> str:
    """An element around content that is HTML already. `class_` and `data_key` become `class` and `data-key`; an
    attribute of None or False is left out, one of True stands alone.

    >>> tag("td", "1", class_="n", data_key=2.5, title='"', hidden=True)
    '<td class="n" data-key="2.5" title="&quot;" hidden>1</td>'
    """
    said = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return f"<{kind}{said}>{''.join(content)}</{kind}>"


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    return f" {key}" if value is True else f' {key}="{escape(one_line(str(value)))}"'


def section(identity: str, title: str, *content: str) -> str:
    """A part of the page with a heading of the second level; nothing where it has no content."""
    said = "".join(content)
    if not said:
        return ""
    heading = tag("h2", text(title), id=f"{identity}-title")
    return tag("section", heading, said, id=identity, aria_labelledby=f"{identity}-title") + "\n"


def paragraphs(said: Iterable[str], look: str | None = None) -> str:
    return "".join(tag("p", prose(each), class_=look) for each in said if each)


def items(said: Iterable[str], kind: str = "ul", look: str | None = None) -> str:
    """A list of items that are HTML already; nothing where there are none."""
    inside = "".join(tag("li", each) for each in said)
    return tag(kind, inside, class_=look) if inside else ""


def bar(share: float) -> str:
    """How much of a whole, for the eye: the number stands beside it."""
    return f'<i class="bar w{2 * round(50 * min(max(share, 0.0), 1.0))}"></i>'


def bar_widths() -> str:
    """The style of `bar`, whose length may not stand in the element: the page's policy allows no style there."""
    return "".join(f".w{width}{{--w:{width}%}}" for width in range(0, 101, 2)) + "\n"


def fitting(pieces: Iterable[str], most_bytes: int) -> list[str]:
    """The first pieces that take at most so many bytes of the page together."""
    kept: list[str] = []
    for piece in pieces:
        most_bytes -= size(piece)
        if most_bytes < 0:
            break
        kept.append(piece)
    return kept


def size(html: str) -> int:
    """Bytes of the page that a piece takes, once `ascii_only`."""
    return len(html) if html.isascii() else len(ascii_only(html))


def ascii_only(html: str) -> str:
    """The same page in characters that every encoding has.

    >>> ascii_only("3 µs")
    '3 &#181;s'
    """
    return html.encode("ascii", "xmlcharrefreplace").decode("ascii")
