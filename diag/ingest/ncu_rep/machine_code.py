"""Machine code in a report: which line of source code an instruction comes from.

A cubin tells that where it was compiled with -lineinfo or -G. What an instruction reads like (SASS) would take a
disassembler.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from diag.ingest.launch_records import Instruction
from diag.ingest.ncu_rep.elf import Elf
from diag.ingest.ncu_rep.line_table import DamagedTable, Row, rows_of

LARGEST_TABLE_BYTES = 1 << 20
"""A byte of it may be a row, which takes 1 µs and 200 bytes."""

_TABLE = ".debug_line"
_CODE = ".text."
_ADDRESS = struct.Struct("<Q")
_APART = 32
"""Functions lie 4 GiB apart while their table is read: in a cubin each of them begins at 0."""


@dataclass(frozen=True)
class Function:
    """A function of a cubin. Addresses of `rows` count from its first byte and ascend."""

    n_bytes: int
    rows: Sequence[Row]

    def instructions(self, start: int, width: int) -> Iterator[Instruction]:
        """Those whose line is known, when the function was loaded to `start`; each takes `width` bytes."""
        for offset in range(0, self.n_bytes, width):
            at = bisect_right(self.rows, offset, key=attrgetter("address"))
            if at and self.rows[at - 1].line is not None:
                row = self.rows[at - 1]
                yield Instruction(start + offset, file=row.file, line=row.line)


def functions_with_lines(cubin: bytes) -> Mapping[str, Function]:
    """The functions of a cubin that its table of lines tells of, by their mangled names.

    Raises DamagedElf, and DamagedTable also for a table that is too large or of a version that is not known.
    """
    elf = Elf(cubin)
    section = elf.section(_TABLE)
    if section is None:
        return {}
    if section.n_bytes > LARGEST_TABLE_BYTES:
        raise DamagedTable(f"it is larger than {LARGEST_TABLE_BYTES >> 20} MB")
    table = bytearray(elf.data(section))
    code = {}
    for number, relocation in enumerate(elf.relocations(_TABLE), 1):
        if relocation.section.name.startswith(_CODE) and relocation.offset + _ADDRESS.size <= len(table):
            elf.data(relocation.section)  # raises where its size is only claimed
            _ADDRESS.pack_into(table, relocation.offset, (number << _APART) + relocation.value % (1 << _APART))
            code[number] = relocation.section
    rows = defaultdict(list)
    for row in rows_of(bytes(table)):
        number, offset = divmod(row.address, 1 << _APART)
        if number in code:
            rows[code[number]].append(row._replace(address=offset))
    return {
        section.name.removeprefix(_CODE): Function(section.n_bytes, sorted(each, key=attrgetter("address")))
        for section, each in rows.items()
    }
