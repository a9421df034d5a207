"""Text from untrusted files, made safe to show. Names, paths and messages may hold anything; renderers trust none."""

from __future__ import annotations

import re
from collections.abc import Callable

_MARKDOWN_SPECIAL = re.compile(r"[\\`*_\[\]|~$]")
_MARKDOWN_BLOCK_START = re.compile(r"^(\d{1,9}(?=[.)](?: |$))|(?=[-+#=:]))(.)")
_HTML_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ZERO_WIDTH_SPACE = "&#8203;"


def one_line(text: str) -> str:
    r"""The text on one line, every character printable: runs of white space become a space, the rest its escape.

    So neither control sequences nor line breaks nor overrides of the reading direction reach a terminal.

    >>> print(one_line("gemm\x1b[31m\n<float>\u202e"))
    gemm\x1b[31m <float>\u202e
    """
    line = " ".join(text.split())
    return line if line.isprintable() else "".join(c if c.isprintable() else _visible(c) for c in line)


def unicode_only(text: str) -> str:
    r"""The text without lone surrogates, which no UTF encoding can hold; they come from paths that are not UTF-8.

    >>> print(unicode_only("caf\udce9.sqlite"))
    caf\udce9.sqlite
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def markdown_text(text: str) -> str:
    r"""Running text in Markdown: no mark-up, HTML, link, table cell, mention or issue number comes out of it.

    >>> print(markdown_text("add_<T*>|@ops"))
    add\_&lt;T\*&gt;\|@&#8203;ops
    """
    line = _MARKDOWN_SPECIAL.sub(r"\\\g<0>", one_line(text))
    line = "".join(_HTML_SPECIAL.get(c, c) for c in line)
    # GitHub finds bare addresses, mentions and issue numbers after it has undone all escapes: these need a real break.
    line = re.sub(r"(?i)(https?|ftp|mailto|xmpp):", r"\1\\:", line)
    line = re.sub(r"(?i)\bwww\.", lambda match: match[0][:-1] + r"\.", line)
    line = line.replace("@", "@" + _ZERO_WIDTH_SPACE)
    line = re.sub(r"(?<!&)#(?=\d)", "#" + _ZERO_WIDTH_SPACE, line)
    return _MARKDOWN_BLOCK_START.sub(r"\1\\\2", line)


def markdown_prose(text: str) -> str:
    """Running text in Markdown like `markdown_text`, except that what it sets between backticks becomes a code span.

    >>> print(markdown_prose("set `pin_memory=True` in a_b"))
    set `pin_memory=True` in a\\_b
    """
    text_and_code = re.split(r"(?<!`)`([^`]+)`(?!`)", one_line(text))
    return "".join(_spaced(part, markdown_code if at % 2 else markdown_text) for at, part in enumerate(text_and_code))


def _spaced(text: str, escaped: Callable[[str], str]) -> str:
    """The escaped text with the space around it, which escaping drops."""
    core = text.strip()
    start = len(text) - len(text.lstrip())
    return text[:start] + escaped(core) + text[start + len(core) :] if core else text


def markdown_code(text: str) -> str:
    r"""A name as a code span, also inside a table cell; nothing in it is mark-up, not even backticks.

    >>> print(markdown_code("a|b"), markdown_code("`x"))
    `a\|b` `` `x ``
    """
    line = one_line(text)
    if not line:
        return "(no name)"
    fence = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    padding = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{padding}{line.replace('|', chr(92) + '|')}{padding}{fence}"


def _visible(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
