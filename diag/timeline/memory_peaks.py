"""How much device memory a run had at most, and in which phase: of snapshots, traces and reports alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diag.store.case import Case
from diag.timeline.memory import load_held


@dataclass(frozen=True)
class DevicePeak:
    """Of one process on one device. None: nobody said."""

    source_id: int
    process_id: int
    device: int
    held_bytes: int  # reserved by allocators and allocated outside of them, at least
    allocated_bytes: int | None  # of it, as the allocator says
    phases: Mapping[str, int]  # allocated at most while the program was at each


def memory_peaks(case: Case) -> Sequence[DevicePeak]:
    """One for each process and device with memory events, in the order of the sources."""
    phases: dict[tuple[int, int, int], dict[str, int]] = {}
    for row in case.rows(_PHASES):
        key = (row["source_id"], row["process_id"], row["device"])
        of = phases.setdefault(key, {})
        if row["phase"] is not None and row["allocated_bytes"] is not None:
            of[row["phase"]] = row["allocated_bytes"]
    return [_peak(case, key, of) for key, of in phases.items()]


def _peak(case: Case, key: tuple[int, int, int], phases: Mapping[str, int]) -> DevicePeak:
    held = load_held(case, *key)
    allocated = case.value(_ALLOCATED, key)
    return DevicePeak(*key, int(held.held_bytes[held.peak]) if len(held) else 0, allocated, phases)


_PHASES = """
    SELECT source_id, process_id, device, phase, MAX(allocated_bytes) AS allocated_bytes
      FROM allocation
     WHERE device IS NOT NULL
     GROUP BY source_id, process_id, device, phase
     ORDER BY source_id, process_id, device, phase
"""

_ALLOCATED = """
    SELECT MAX(allocated_bytes)
      FROM allocation
     WHERE source_id = ? AND process_id = ? AND device = ?
"""
