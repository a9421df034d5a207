"""What was counted for each instruction of a launch, with its machine code and source line where they are known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diag.model.quantities import is_number
from diag.store.case import Case


@dataclass(frozen=True)
class Instruction:
    """One instruction that ran. `counts` are by metric; one that has no value here is absent."""

    address: int
    counts: Mapping[str, float]
    sass: str | None
    file: str | None
    line: int | None

    @property
    def where(self) -> str:
        """
        >>> Instruction(0x7F00, {}, "LDG.E R2, [R4.64]", "/src/stencil.cu", 12).where
        '0x7f00 (LDG.E R2, [R4.64]; stencil.cu:12)'
        >>> Instruction(0x7F00, {}, None, None, None).where
        '0x7f00'
        """
        line = f"{self.file.rsplit('/', 1)[-1]}:{self.line}" if self.file and self.line else None
        told = "; ".join(part for part in (self.sass, line) if part)
        return f"{self.address:#x} ({told})" if told else f"{self.address:#x}"


def instructions(case: Case, launch_id: int, metrics: Sequence[str]) -> list[Instruction]:
    """The instructions for which one of these metrics was counted, by address; empty where none was."""
    counts: dict[int, dict[str, float]] = {}
    for address, metric, value in case.db.execute(_COUNTS, (launch_id, json.dumps(list(metrics)))):
        if is_number(value):
            counts.setdefault(address, {})[metric] = value
    code = {row[0]: row[1:] for row in case.db.execute(_CODE, (launch_id,))}
    nothing = (None, None, None)
    return [Instruction(address, found, *code.get(address, nothing)) for address, found in sorted(counts.items())]


_COUNTS = """
    SELECT i.key, m.name, i.value
      FROM launch_instance i JOIN metric m ON m.id = i.metric_id
     WHERE i.launch_id = ? AND m.name IN (SELECT value FROM json_each(?))
       AND typeof(i.key) = 'integer'
"""
_CODE = """
    SELECT c.address, c.sass, n.text, c.line
      FROM launch_instruction c LEFT JOIN name n ON n.id = c.file_id
     WHERE c.launch_id = ?
"""
