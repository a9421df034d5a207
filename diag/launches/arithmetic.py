"""Floating-point instructions of a launch: added, multiplied, fused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diag.launches.kernel import ProfiledKernel
from diag.model.quantities import Measured, Missing, is_number, together

Precision = Literal["fp32", "fp64"]

KINDS = ("adds", "multiplications", "fused")
PER_OPCODE = "sass__inst_executed_per_opcode"
_OPCODES: dict[Precision, tuple[str, str, str]] = {
    "fp32": ("FADD", "FMUL", "FFMA"),
    "fp64": ("DADD", "DMUL", "DFMA"),
}


@dataclass(frozen=True)
class Arithmetic:
    """Instructions of one precision, all counted by threads or all by warps."""

    adds: Measured
    multiplications: Measured
    fused: Measured

    @property
    def instructions(self) -> float:
        return self.adds.value + self.multiplications.value + self.fused.value

    @property
    def pairs(self) -> float:
        """Multiplications that an addition could take in, at most: each such pair is one instruction too many."""
        return min(self.adds.value, self.multiplications.value)

    @property
    def saved(self) -> float:
        """Share of the instructions that fusing all pairs would save."""
        return self.pairs / self.instructions if self.instructions else 0.0


def arithmetic_of(kernel: ProfiledKernel, precision: Precision) -> Arithmetic | str:
    """What one precision executed, or why that is not known.

    By threads where the counters of the rooflines were collected, else by warps from the mix of instructions.
    """
    found = [kernel.quantity(f"{precision}_{kind}") for kind in KINDS]
    if missing := [each for each in found if isinstance(each, Missing)]:
        counted = opcodes(kernel)
        if not counted:
            return together(missing)
        found = [_of_opcode(opcode, counted) for opcode in _OPCODES[precision]]
    return Arithmetic(*(each for each in found if isinstance(each, Measured)))


def _of_opcode(opcode: str, counted: dict[str, float]) -> Measured:
    return Measured(counted.get(opcode, 0.0), "inst", f"{PER_OPCODE} of {opcode}", (PER_OPCODE,))


def opcodes(kernel: ProfiledKernel) -> dict[str, float]:
    """Executed instructions of warps by SASS opcode; empty where they were not counted."""
    counted = kernel.case.db.execute(opcodes_sql(kernel.launch.id))
    return {opcode: instructions for opcode, instructions in counted if is_number(instructions)}


def opcodes_sql(launch_id: int) -> str:
    """The statement behind them."""
    return " ".join(_PER_OPCODE.format(launch_id=launch_id).split())


_PER_OPCODE = f"""
    SELECT upper(i.key) AS opcode, total(i.value) AS instructions
      FROM launch_instance i JOIN metric m ON m.id = i.metric_id
     WHERE i.launch_id = {{launch_id:d}} AND m.name = '{PER_OPCODE}' AND typeof(i.key) = 'text'
     GROUP BY 1
     ORDER BY 2 DESC
"""
