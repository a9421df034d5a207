"""Synthetic cubins: ELF files of 64 bits with functions of no-operations and a table of lines, as nvcc writes them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from tests.builders.nsys_report import varint

Lines = Sequence[tuple[int, int]]
"""Line by address, ascending: the instructions from there on come from it."""

INSTRUCTION_BYTES = 16
_FILE, _FOLDER = "kernels.cu", "/src"


def cubin(functions: Mapping[str, tuple[int, Lines]] | None = None, *, version: int = 2) -> bytes:
    """Of functions by name: number of instructions, and lines of /src/kernels.cu. Without, one that has no lines."""
    functions = functions or {}
    program, relocations = b"", b""
    for number, (_, (n_instructions, lines)) in enumerate(functions.items(), 1):
        sequence, address_at = _sequence(n_instructions, lines)
        relocations += struct.pack("<QQ", _header_bytes(version) + len(program) + address_at, number << 32 | 2)
        program += sequence
    code = {f".text.{name}": bytes(INSTRUCTION_BYTES * n) for name, (n, _) in functions.items()}
    symbols = bytes(24) + b"".join(struct.pack("<IBBHQQ", 0, 2, 0, at, 0, 0) for at in range(1, len(functions) + 1))
    debug = {
        ".debug_line": _line_program(program, version),
        ".rel.debug_line": relocations,
        ".symtab": symbols,
    }
    return _elf({**code, **(debug if functions else {})})


def _elf(sections: Mapping[str, bytes]) -> bytes:
    names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
    named = {**sections, ".shstrtab": names}
    starts = list(accumulate((len(data) for data in named.values()), initial=64))
    rows = bytes(64) + b"".join(
        struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), 1, 0, 0, start, len(data), 0, 0, 1, 0)
        for (name, data), start in zip(named.items(), starts, strict=False)
    )
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQI", 2, 190, 1, 0, 0, starts[-1], 0)
    header += struct.pack("<HHHHHH", 64, 0, 0, 64, len(named) + 1, len(named))
    return header + b"".join(named.values()) + rows


def _sequence(n_instructions: int, lines: Lines) -> tuple[bytes, int]:
    """Operations for the rows of one function, and where among their bytes its address stands."""
    address = b"\x00" + varint(9) + b"\x02" + bytes(8)
    rows = [
        b"\x03" + _signed(line - line_before) + b"\x02" + varint(start - start_before) + b"\x01"
        for (start_before, line_before), (start, line) in pairwise([(0, 1), *lines])
    ]
    end = b"\x02" + varint(INSTRUCTION_BYTES * n_instructions - lines[-1][0]) + b"\x00\x01\x01"
    return address + b"".join(rows) + end, 3


def _line_program(program: bytes, version: int) -> bytes:
    header = _header(version)
    unit = struct.pack("<HI", version, len(header)) + header + program
    return struct.pack("<I", len(unit)) + unit


def _header_bytes(version: int) -> int:
    return 4 + 6 + len(_header(version))


def _header(version: int) -> bytes:
    """Instructions of one byte, as nvcc says; lines go from -5 to 8 in special opcodes, which begin at 10."""
    operations = b"\x01" if version >= 4 else b""
    standard = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))
    files = _FOLDER.encode() + b"\0\0" + _FILE.encode() + b"\0\x01\0\0" + b"\0"
    return b"\x01" + operations + b"\x01" + b"\xfb\x0e" + b"\x0a" + standard + files


def _signed(value: int) -> bytes:
    """A signed number in groups of seven bits, of which one is enough for -64 to 63."""
    assert -64 <= value <= 63
    return bytes([value & 0x7F])
