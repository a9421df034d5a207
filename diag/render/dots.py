"""A picture of dots in terminal cells: braille has two by four of them in each cell, plain ASCII one."""

from __future__ import annotations

from collections.abc import Iterator

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

    def dot(self, across: int, down: int) -> None:
        if 0 <= across < self.dots_across and 0 <= down < self.dots_down:
            column, row, bit = self._cell(across, down)
            self._dots[column, row] = self._dots.get((column, row), 0) | bit

    def cell(self, across: int, down: int) -> tuple[int, int]:
        """The column and row of the cell that a dot lies in."""
        column, row, _ = self._cell(across, down)
        return column, row

    def is_free(self, column: int, row: int, length: int) -> bool:
        """Whether a text fits there and would cover no other."""
        inside = 0 <= row < self.height and 0 <= column <= self.width - length
        return inside and not any((at, row) in self._letters for at in range(column, column + length))

    def write(self, column: int, row: int, text: str) -> None:
        """Over the dots. Every character takes one cell."""
        for at, letter in enumerate(text, column):
            self._letters[at, row] = letter

    def lines(self) -> Iterator[str]:
        for row in range(self.height):
            yield "".join(self._shown(column, row) for column in range(self.width))

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
