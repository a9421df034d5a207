"""A picture of dots in terminal cells: braille has two by four of them in each cell, plain ASCII one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

_BRAILLE = 0x2800
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot of a cell, by row and column (Unicode, Braille Patterns)."""


class Canvas:
    """Dots under letters. Dots are counted from the top left corner; what lies outside is not drawn."""

    def __init__(self, width: int, height: int, *, braille: bool) -> None:
        self.width, self.height = width, height  # cells
        self.braille = braille
        self.dots_across, self.dots_down = (2 * width, 4 * height) if braille else (width, height)
        self._dots: dict[tuple[int, int], int] = {}
        self._letters: dict[tuple[int, int], str] = {}
        self._inks: dict[tuple[int, int], str] = {}

    def dot(self, across: int, down: int, ink: str = "") -> None:
        """`ink` says what the dot belongs to, for who draws in colours; the last one of a cell counts."""
        if 0 <= across < self.dots_across and 0 <= down < self.dots_down:
            column, row, bit = self._cell(across, down)
            self._dots[column, row] = self._dots.get((column, row), 0) | bit
            self._inks[column, row] = ink

    def cell(self, across: int, down: int) -> tuple[int, int]:
        """The column and row of the cell that a dot lies in."""
        column, row, _ = self._cell(across, down)
        return column, row

    def is_free(self, column: int, row: int, length: int) -> bool:
        """Whether a text fits there and would cover no other."""
        inside = 0 <= row < self.height and 0 <= column <= self.width - length
        return inside and not any((at, row) in self._letters for at in range(column, column + length))

    def write(self, column: int, row: int, text: str, ink: str = "") -> None:
        """Over the dots. Every character takes one cell."""
        for at, letter in enumerate(text, column):
            self._letters[at, row] = letter
            self._inks[at, row] = ink

    def lines(self) -> Iterator[str]:
        for row in range(self.height):
            yield "".join(self._shown(column, row) for column in range(self.width))

    def runs(self, row: int) -> Iterator[tuple[str, str]]:
        """A line in parts, each with its ink."""
        for ink, columns in groupby(range(self.width), key=lambda column: self._inks.get((column, row), "")):
            yield "".join(self._shown(column, row) for column in columns), ink

    def _cell(self, across: int, down: int) -> tuple[int, int, int]:
        if self.braille:
            return across // 2, down // 4, _BITS[down % 4][across % 2]
        return across, down, 1

    def _shown(self, column: int, row: int) -> str:
        bits = self._dots.get((column, row), 0)
        letter = self._letters.get((column, row))
        if letter is not None:
            return letter
        return " " if not bits else chr(_BRAILLE + bits) if self.braille else "."
