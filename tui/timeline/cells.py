"""One line of terminal cells: a letter and a style for each, so that columns of time stay columns of the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from diag.render.escape import one_line
from diag.render.layout import ELLIPSIS, cells, elide

PLAIN = Style()
LONGEST = 2_000
"""Characters of a name that are looked at; names of 100 kB exist."""

Letters = list[str]
"""One entry for each cell: what stands in it. A wide character is followed by an empty entry."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Letters with their styles, in parallel lists."""

    letters: Letters
    styles: list[Style]

    @classmethod
    def blank(cls, width: int) -> Cells:
        return cls([" "] * width, [PLAIN] * width)

    @classmethod
    def of(cls, text: str, room: int, style: Style = PLAIN) -> Cells:
        """A text from a trace in exactly `room` cells."""
        letters = letters_of(text, room)
        return cls(letters + [" "] * (room - len(letters)), [style] * room)

    @classmethod
    def beginning(cls, text: str, room: int, style: Style = PLAIN) -> Cells:
        """As `of`, but a text that is too long loses its end."""
        letters = first_letters(text, room)
        return cls(letters + [" "] * (room - len(letters)), [style] * room)

    def __len__(self) -> int:
        return len(self.letters)

    def __add__(self, other: Cells) -> Cells:
        return Cells(self.letters + other.letters, self.styles + other.styles)

    @property
    def text(self) -> str:
        return "".join(self.letters)

    def write(self, column: int, letters: Sequence[str], style: Style) -> None:
        """Over what stands there. Letters outside are left away."""
        for at, letter in enumerate(letters, column):
            if 0 <= at < len(self):
                self.letters[at], self.styles[at] = letter, style

    def restyled(self, columns: Iterable[int], style: Style, *, under: bool = False) -> Cells:
        """With this style on top of what these cells have, or `under` it: what has a background keeps it."""
        styles = list(self.styles)
        for at in columns:
            if 0 <= at < len(styles):
                styles[at] = style + styles[at] if under else styles[at] + style
        return Cells(self.letters, styles)

    def segments(self) -> Iterator[Segment]:
        """Both halves of a wide character take the style of the first."""
        first = 0
        for at in range(1, len(self) + 1):
            is_end = at == len(self)
            if is_end or (self.styles[at] is not self.styles[first] and self.letters[at]):
                yield Segment("".join(self.letters[first:at]), self.styles[first])
                first = at


def letters_of(text: str, room: int) -> Letters:
    """A text from a trace, made safe and shortened to at most `room` cells.

    Marks that combine are put together with their letter where Unicode has one sign for both, and else left away; a
    character that terminals disagree about becomes a question mark: the cells behind it must not move.
    """
    safe = one_line(unicodedata.normalize("NFC", text[:LONGEST]))
    letters: Letters = []
    for character in elide("".join(map(_steady, safe)), room):
        letters += [character, ""] if cells(character) == 2 else [character]
    return letters


def first_letters(text: str, room: int) -> Letters:
    """As `letters_of`, but a text that is too long loses its end and not its middle."""
    letters = letters_of(text, LONGEST)
    if len(letters) <= room:
        return letters
    if room < 2:
        return [ELLIPSIS][:room]
    halved = letters[room - 1] == ""  # the cut would go through a wide character
    return [*letters[: room - 2], " ", ELLIPSIS] if halved else [*letters[: room - 1], ELLIPSIS]


def _steady(character: str) -> str:
    if character.isascii():
        return character
    width = cell_len(character)
    if width == 0:
        return ""
    return character if width == cells(character) else "?"
