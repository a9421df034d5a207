"""Text in terminal cells: how wide it is, how to shorten it, wrap it and set it in columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from functools import cache

from diag.render.escape import one_line
from diag.render.table import Table

ELLIPSIS = "…"
GUTTER = "  "
NARROWEST_NAME = 16
"""A table gives up columns of numbers before its names get narrower than this."""

MOST_NAME_LINES = 3

NARROWEST_DIFFERENCE = 8
"""Below this there is no room for the beginning of a name and for what sets it apart."""

_VARIATION_SELECTOR_16 = "\ufe0f"
_NO_BREAK = "\xa0"
_KEEP_TOGETHER = re.compile(
    r"(?<=\d) (?=(?:%|[nµm]?s|[kMGT]?B)(?!\w))"  # a number and its unit
    r"|(?<=\bGPU) (?=\d)|(?<=\bpid) (?=\d)"
    r"|(?<=\bdiag) (?=explain F)|(?<=\bdiag explain) (?=F)"  # a command to be copied
)


def cells(text: str) -> int:
    """
    >>> cells("gemm"), cells("行列"), cells("é")
    (4, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def elide(text: str, room: int) -> str:
    """The text in at most `room` cells; what is too long loses its middle, as both ends of a kernel name tell.

    >>> elide("void gemm<float, 128, 64>", 13)
    'void g…8, 64>'
    """
    # Marks that take no cell could still pile up without end.
    if len(text) <= 4 * room and cells(text) <= room:
        return text
    if room < 2:
        return ELLIPSIS[:room]
    head = room // 2
    return _head(text, head) + ELLIPSIS + _head(text[::-1], room - 1 - head)[::-1]


def shorten(names: Sequence[str], room: int) -> list[str]:
    """Each name in at most `room` cells; long names that begin alike show where they differ, if that fits.

    >>> shorten(["sm80_gemm_tile64x64_stage3_nn", "sm80_gemm_tile64x256_stage3_nn", "softmax"], 16)
    ['sm80…64_stage3_…', 'sm80…256_stage3…', 'softmax']
    """
    alike: dict[str, set[str]] = {}
    for name in names:
        alike.setdefault(_head(name, room // 2), set()).add(name)
    return [_shortened(name, alike[_head(name, room // 2)] - {name}, room) for name in names]


def _shortened(name: str, others: Set[str], room: int) -> str:
    if cells(name) <= room or not others or room < NARROWEST_DIFFERENCE:
        return elide(name, room)
    return _around_difference(name, others, room)


def _around_difference(name: str, others: Set[str], room: int) -> str:
    """A quarter of the room for the beginning, the rest from where the name first differs from all others."""
    head = _head(name, room // 4)
    room_left = room - cells(head) - len(ELLIPSIS)
    differs = max(_shared_length(name, other) for other in others)
    tail = name[differs:]
    if cells(tail) <= room_left:
        return head + ELLIPSIS + _head(name[::-1], room_left)[::-1]
    return head + ELLIPSIS + _head(tail, room_left - len(ELLIPSIS)) + ELLIPSIS


def _shared_length(a: str, b: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((at for at, (x, y) in pairs if x != y), min(len(a), len(b)))


def pad(text: str, room: int, *, right: bool = False) -> str:
    space = " " * (room - cells(text))
    return space + text if right else text + space


def wrap(text: str, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """The words of the text in lines of at most `width` cells; `first`, as wide as the indent, begins the first."""
    lines: list[str] = []
    line = indent if first is None else first
    is_empty = True
    for word in _words(text, max(1, width - cells(indent))):
        if is_empty or cells(line) + 1 + cells(word) <= width:
            line += word if is_empty else " " + word
        else:
            lines.append(line)
            line = indent + word
        is_empty = False
    return [line.replace(_NO_BREAK, " ").rstrip() for line in (*lines, line)]


def columns(table: Table, width: int, indent: str = "") -> list[str]:
    """Header and rows of a table in lines of at most `width` cells: numbers right-aligned, names made to fit."""
    kept = _columns_that_fit(table, width - cells(indent))
    shown = [[row[i] for row in (table.header, *table.rows)] for i in kept]
    room = [max(map(cells, column)) for column in shown]
    name = kept.index(table.name_column)
    room[name] = min(room[name], _room_left(width - cells(indent), room[:name] + room[name + 1 :]))
    if table.wraps_names:
        names = _wrapped(shown[name], room[name])
    else:
        names = [[text] for text in shorten(shown[name], room[name])]
    shown[name] = [first for first, *_ in names]
    before_name = indent + " " * sum(size + len(GUTTER) for size in room[:name])
    lines: list[str] = []
    for row, (_, *more) in zip(zip(*shown, strict=True), names, strict=True):
        set_out = GUTTER.join(pad(cell, room[i], right=i != name) for i, cell in enumerate(row))
        lines += [indent + set_out.rstrip(), *(before_name + text for text in more)]
    return [elide(line, width) for line in lines]


def columns_left_out(table: Table, width: int, indent: str = "") -> list[str]:
    """The headers of those for which `columns` finds no room."""
    kept = _columns_that_fit(table, width - cells(indent))
    return [header for i, header in enumerate(table.header) if i not in kept]


def _wrapped(names: Sequence[str], room: int) -> list[list[str]]:
    """Each name over several lines, the second and later ones indented; no longer than three of them."""
    indent = "  " if room > NARROWEST_DIFFERENCE else ""
    return [wrap(name, room, indent, "") for name in shorten(names, MOST_NAME_LINES * (room - len(indent)))]


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], width: int, numbers: Set[int] = frozenset()) -> str:
    """Rows of a query, whatever they hold, in lines of at most `width` cells; the widest columns give way first.

    `numbers` are the columns that end in one line.
    """
    safe = [[one_line(cell) for cell in row] for row in (header, *rows)]
    room = [min(width, max(map(cells, column))) for column in zip(*safe, strict=True)]
    while sum(room) + len(GUTTER) * (len(room) - 1) > width and max(room, default=0) > 1:
        room[room.index(max(room))] -= 1
    lines = (
        GUTTER.join(pad(elide(cell, room[i]), room[i], right=i in numbers) for i, cell in enumerate(row))
        for row in safe
    )
    return "\n".join(elide(line.rstrip(), width) for line in lines)


def _columns_that_fit(table: Table, width: int) -> list[int]:
    """All columns, or, in a narrow terminal, those to the left, and always the names."""
    rows = [table.header, *table.rows]
    numbers = [i for i in range(len(table.header)) if i != table.name_column]
    names = max(cells(row[table.name_column]) for row in rows)
    while len(numbers) > 1:
        left = _room_left(width, [max(cells(row[i]) for row in rows) for i in numbers])
        if left >= min(names, NARROWEST_NAME):
            break
        numbers.pop()
    return sorted([*numbers, table.name_column])


def _room_left(width: int, others: Sequence[int]) -> int:
    return max(1, width - sum(others) - len(GUTTER) * len(others))


def _words(text: str, room: int) -> Iterator[str]:
    for word in _KEEP_TOGETHER.sub(_NO_BREAK, text).split(" "):
        while cells(word) > room:
            piece = _head(word, room) or word[0]  # a wide one in one cell
            if (folder := piece.rfind("/") + 1) > room // 2:  # the name of a file stays whole
                piece = piece[:folder]
            yield piece
            word = word[len(piece) :]
        if word:
            yield word


def _head(text: str, room: int) -> str:
    """The longest beginning of the text that takes at most `room` cells, and no more than four characters for each."""
    taken = 0
    for at, character in enumerate(text[: 4 * room]):
        taken += _cells_of(character)
        if taken > room:
            return text[:at]
    return text[: 4 * room]


@cache
def _cells_of(character: str) -> int:
    if character == _VARIATION_SELECTOR_16:  # turns a narrow sign before it into a wide one
        return 1
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
