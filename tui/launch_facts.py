"""What the Launch screen shows of one launch, read from the case at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diag.launches.breakdown import UnitUse, units_used
from diag.launches.instructions import instructions
from diag.launches.kernel import ProfiledKernel, Untold
from diag.launches.launch import launches_of
from diag.launches.occupancy import LaunchOccupancy, occupancy_of
from diag.launches.stalls import Stall, stalls_of
from diag.model.quantities import Measured, Missing
from diag.model.speed_of_light import Side
from diag.rules.launch_report import LaunchRow
from diag.store.case import Case

EXECUTED = "inst_executed"
"""Times that warps executed each instruction."""

MEMORY = (
    "duration", "global_loaded", "global_stored", "local_bytes", "shared_wavefronts", "bank_conflicts",
    "l1_hit_rate", "l1_throughput", "l1_fill", "l2_written", "l2_hit_rate", "l2_throughput",
    "dram_read", "dram_written", "dram_throughput", "host_bytes", "peer_bytes",
)  # fmt: skip
"""Quantities of the memory chart."""


@dataclass(frozen=True)
class CodeLine:
    """One instruction with what the sampler and the counters saw at it; None where they were not collected."""

    address: int
    samples: int | None
    not_issued: int | None  # of them, those while the scheduler issued nothing
    reasons: Sequence[tuple[str, int]]  # samples by state, the most first
    executed: float | None
    sass: str | None
    file: str | None
    line: int | None


@dataclass(frozen=True)
class LaunchFacts:
    row: LaunchRow
    units: Mapping[Side, Sequence[UnitUse]]
    memory: Mapping[str, Measured | Missing]
    occupancy: LaunchOccupancy | Untold
    stalls: Sequence[Stall]
    code: Sequence[CodeLine]


def facts_of(case: Case, row: LaunchRow) -> LaunchFacts:
    launch = next(each for each in launches_of(case, row.source) if each.label == row.id)
    kernel = ProfiledKernel(case, [launch], None)
    return LaunchFacts(
        row=row,
        units={side: units_used(kernel, side) for side in ("sm", "memory")},
        memory={name: kernel.quantity(name) for name in MEMORY},
        occupancy=occupancy_of(kernel),
        stalls=stalls_of(kernel),
        code=_code(case, launch.id),
    )


def _code(case: Case, launch_id: int) -> list[CodeLine]:
    """All instructions of which anything is known, by address."""
    samples: dict[int, list[tuple[str, int, int | None]]] = {}
    for row in case.rows(_SAMPLES, (launch_id,)):
        samples.setdefault(row["address"], []).append((row["reason"], row["samples"], row["not_issued"]))
    counted = {each.address: each for each in instructions(case, launch_id, [EXECUTED])}
    known = {row["address"]: row for row in case.rows(_KNOWN, (launch_id,))}
    lines = []
    for address in sorted({*samples, *counted, *known}):
        at, code = samples.get(address, []), known.get(address)
        unissued = [each for _, _, each in at if each is not None]
        lines.append(
            CodeLine(
                address=address,
                samples=sum(count for _, count, _ in at) if at else (0 if samples else None),
                not_issued=sum(unissued) if unissued else None,
                reasons=[(reason, count) for reason, count, _ in at],
                executed=counted[address].counts[EXECUTED] if address in counted else None,
                sass=code["sass"] if code else None,
                file=code["file"] if code else None,
                line=code["line"] if code else None,
            )
        )
    return lines


_SAMPLES = """
    SELECT address, reason, samples, not_issued
      FROM launch_stall
     WHERE launch_id = ? AND samples > 0
     ORDER BY samples DESC, reason
"""
_KNOWN = """
    SELECT c.address, c.sass, n.text AS file, c.line
      FROM launch_instruction c LEFT JOIN name n ON n.id = c.file_id
     WHERE c.launch_id = ?
"""
