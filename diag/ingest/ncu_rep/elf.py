"""Sections, symbols and relocations of a cubin, which is a little-endian 64-bit ELF file (System V ABI, ELF-64)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAGIC = b"\x7fELF\x02\x01"
"""Of 64 bits, with the least byte first."""

LONGEST_NAME = 1 << 16

_HEADER = struct.Struct("<40xQ10xHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_REL, _RELA = struct.Struct("<QQ"), struct.Struct("<QQq")


class DamagedElf(ValueError):
    """An offset or a number of it leads nowhere."""


@dataclass(frozen=True)
class Section:
    name: str
    offset: int
    n_bytes: int


@dataclass(frozen=True)
class Relocation:
    """An address in the bytes of a section that is to become that of a symbol, which lies in `section`."""

    offset: int
    section: Section
    value: int  # of the symbol: where it is in that section


class Elf:
    """Raises DamagedElf, also later."""

    def __init__(self, content: bytes) -> None:
        if not content.startswith(MAGIC):
            raise DamagedElf("not an ELF file of 64 bits")
        self._content = content
        rows, names_at = _section_table(content)
        names = rows[names_at]
        self.sections = [Section(self._text(names[4] + row[0]), row[4], row[5]) for row in rows]

    def section(self, name: str) -> Section | None:
        return next((each for each in self.sections if each.name == name), None)

    def data(self, section: Section) -> bytes:
        data = self._content[section.offset : section.offset + section.n_bytes]
        if len(data) < section.n_bytes:
            raise DamagedElf(f"{section.name} is cut")
        return data

    def relocations(self, name: str) -> Iterator[Relocation]:
        """Those of the section of that name, of which the section's own bytes hold no part."""
        symbols = self._symbols()
        for prefix, row in ((".rel", _REL), (".rela", _RELA)):
            section = self.section(prefix + name)
            if section is None:
                continue
            data = self.data(section)
            for offset, info, *addend in row.iter_unpack(data[: len(data) // row.size * row.size]):
                index, value = symbols[info >> 32] if info >> 32 < len(symbols) else (0, 0)
                if index < len(self.sections):
                    yield Relocation(offset, self.sections[index], value + sum(addend))

    def _symbols(self) -> list[tuple[int, int]]:
        """Of each its section, by number, and where it is there."""
        section = self.section(".symtab")
        data = self.data(section) if section else b""
        rows = _SYMBOL.iter_unpack(data[: len(data) // _SYMBOL.size * _SYMBOL.size])
        return [(index, value) for _, _, _, index, value, _ in rows]

    def _text(self, start: int) -> str:
        end = self._content.find(b"\0", start, start + LONGEST_NAME)
        if end < 0:
            raise DamagedElf("a name is cut")
        return self._content[start:end].decode("utf-8", "replace")


def _section_table(content: bytes) -> tuple[Sequence[tuple[int, ...]], int]:
    """A row for each section, and which of them holds the names."""
    if len(content) < _HEADER.size:
        raise DamagedElf("it is cut in its header")
    start, n_bytes, n_sections, names_at = _HEADER.unpack_from(content)
    if start + n_bytes * n_sections > len(content) or n_bytes < _SECTION.size or names_at >= n_sections:
        raise DamagedElf("its table of sections is cut")
    return [_SECTION.unpack_from(content, start + n_bytes * index) for index in range(n_sections)], names_at
