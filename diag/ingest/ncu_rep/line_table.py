"""From the addresses of instructions to lines of source code (DWARF 4, section 6.2; nvcc writes version 2).

A table is a program for a small machine, whose registers hold an address, a file and a line. It says when they make a
row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

VERSIONS = range(2, 5)
"""Those whose header is alike."""


class Row(NamedTuple):
    """From this address on, up to that of the next row, instructions come from this line; None: from none."""

    address: int
    file: str | None
    line: int | None


class DamagedTable(ValueError):
    """It ends where it should not, or is of another version."""


def rows_of(section: bytes) -> Iterator[Row]:
    """The rows of all programs in a section `.debug_line`. Raises DamagedTable."""
    cursor = _Cursor(section)
    while cursor.at < len(section):
        program = _Cursor(cursor.take(cursor.number(4)))
        yield from _run(program, _header(program))


# ---- the header of a program ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Header:
    step: int  # bytes that the address goes on by
    line_base: int
    line_range: int
    n_operands: Sequence[int]  # of each standard opcode; its number is the place, from 1
    files: Mapping[int, str]
    end: int  # where the program begins

    @property
    def opcode_base(self) -> int:
        return len(self.n_operands) + 1


def _header(cursor: _Cursor) -> _Header:
    version = cursor.number(2)
    if version not in VERSIONS:
        raise DamagedTable(f"version {version} is not known")
    n_bytes = cursor.number(4)
    end = cursor.at + n_bytes
    step = cursor.number(1)
    cursor.take(1 if version < 4 else 2)  # is a row a statement; from version 4 on, operations in an instruction
    line_base, line_range = cursor.signed_byte(), cursor.number(1)
    n_operands = list(cursor.take(max(cursor.number(1) - 1, 0)))
    if line_range == 0:
        raise DamagedTable("no opcode can mean a line")
    return _Header(step, line_base, line_range, n_operands, _files(cursor), end)


def _files(cursor: _Cursor) -> Mapping[int, str]:
    """By their numbers, from 1, with their folders as far as they are known."""
    folders = {0: ""} | dict(enumerate(iter(cursor.text, ""), 1))
    files = {}
    for number, name in enumerate(iter(cursor.text, ""), 1):
        folder = folders.get(cursor.uleb(), "")
        cursor.uleb(), cursor.uleb()  # time and size
        files[number] = f"{folder}/{name}" if folder and not name.startswith("/") else name
    return files


# ---- the program ---------------------------------------------------------------------------------------------------


def _run(cursor: _Cursor, header: _Header) -> Iterator[Row]:
    cursor.at = header.end
    address, file, line = 0, 1, 1
    while cursor.at < len(cursor.data):
        opcode = cursor.number(1)
        if opcode >= header.opcode_base:
            steps, lines = divmod(opcode - header.opcode_base, header.line_range)
            address += steps * header.step
            line += header.line_base + lines
            yield Row(address, header.files.get(file), line)
            continue
        match opcode:
            case 0:
                extended = _Cursor(cursor.take(cursor.uleb()))
                what = extended.number(1)
                if what == 1:  # end of a sequence
                    yield Row(address, None, None)
                    address, file, line = 0, 1, 1
                elif what == 2:
                    address = extended.number(len(extended.data) - 1)
            case 1:
                yield Row(address, header.files.get(file), line)
            case 2:
                address += cursor.uleb() * header.step
            case 3:
                line += cursor.sleb()
            case 4:
                file = cursor.uleb()
            case 8:
                address += (255 - header.opcode_base) // header.line_range * header.step
            case 9:
                address += cursor.number(2)
            case _:
                for _ in range(header.n_operands[opcode - 1]):
                    cursor.uleb()


class _Cursor:
    """Reads bytes one after the other. Raises DamagedTable behind the last one."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, n_bytes: int) -> bytes:
        if not 0 <= n_bytes <= len(self.data) - self.at:
            raise DamagedTable("it is cut")
        self.at += n_bytes
        return self.data[self.at - n_bytes : self.at]

    def number(self, n_bytes: int) -> int:
        return int.from_bytes(self.take(n_bytes), "little")

    def signed_byte(self) -> int:
        return int.from_bytes(self.take(1), "little", signed=True)

    def uleb(self) -> int:
        """A number in groups of seven bits, the least first."""
        return self._groups()[0]

    def sleb(self) -> int:
        value, n_bits = self._groups()
        return value - (1 << n_bits) if value >> (n_bits - 1) else value

    def text(self) -> str:
        end = self.data.find(b"\0", self.at)
        taken = self.take(end + 1 - self.at)
        return taken[:-1].decode("utf-8", "replace")

    def _groups(self) -> tuple[int, int]:
        value = 0
        for n_bits in range(0, 64, 7):
            byte = self.number(1)
            value |= (byte & 0x7F) << n_bits
            if byte < 0x80:
                return value, n_bits + 7
        raise DamagedTable("a number is too long")
