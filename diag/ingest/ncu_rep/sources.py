"""What a report holds of the program: cubins, to which launches refer by number, and imported source files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from diag.ingest.launch_records import Instruction
from diag.ingest.launch_values import MOST_INTEGER
from diag.ingest.ncu_rep.elf import DamagedElf
from diag.ingest.ncu_rep.line_table import DamagedTable
from diag.ingest.ncu_rep.machine_code import Function, functions_with_lines
from diag.ingest.ncu_rep.values import text

MOST_INSTRUCTIONS = 5_000_000
"""Of all launches together: each launch of a kernel has them anew, however small it is itself."""

VOLTA = 7
"""Since then an instruction takes 16 bytes, and 8 before."""


class Sources:
    """Fills while a report is read; a launch finds the cubins that stand before it."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.problems: list[str] = []
        self._functions: dict[int, Mapping[str, Function]] = {}
        self._widths: dict[int, int] = {}
        self._left = MOST_INSTRUCTIONS

    def add(self, source: Any) -> None:
        """A message with a cubin, with source files, or with neither."""
        for file in source.sources.files:
            if file.content:
                self.files.setdefault(text(file.name), text(file.content))
        if source.cubin:
            self._widths[source.reference] = 16 if source.revision >> 16 >= VOLTA else 8
            self._functions[source.reference] = self._read(source.cubin)

    def instructions(self, reference: int, function: str, start: int) -> Sequence[Instruction]:
        """Of the function that was loaded to the address `start`, those whose line is known."""
        code = self._functions.get(reference, {}).get(function)
        if code is None or self._left == 0 or start + code.n_bytes > MOST_INTEGER:
            return ()
        found = list(islice(code.instructions(start, self._widths[reference]), self._left))
        self._left -= len(found)
        if self._left == 0:
            self.problems.append(f"Lines are known of the first {MOST_INSTRUCTIONS:,} instructions only.")
        return found

    def _read(self, cubin: bytes) -> Mapping[str, Function]:
        try:
            return functions_with_lines(cubin)
        except (DamagedElf, DamagedTable) as error:
            self.problems.append(f"The table of lines of some machine code cannot be read: {error}.")
            return {}
