"""How much memory of a device a process held over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diag.store.case import Case
from diag.timeline.gpu_work import NONE
from diag.timeline.intervals import Integers, Times


@dataclass(frozen=True, eq=False)
class Held:
    """Device memory that one process held, after each event that changed it. At least that: see `load_held`."""

    time_ns: Times
    held_bytes: Integers
    in_use_bytes: Integers  # of it, as the allocator says; NONE where it does not
    was_complete: bool  # nothing was freed that the capture did not see allocated

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def peak(self) -> int:
        """Index of the event after which most was held."""
        return int(np.argmax(self.held_bytes))


def load_held(case: Case, source_id: int, process_id: int, device: int) -> Held:
    """What allocators reserved (`reserved_bytes`, their last word counts), and allocations outside of any, added up.

    What was allocated before the capture is known only as far as it was freed in it, and of several pools only the one
    that spoke last counts: the process held at least this much.
    """
    sql = _HELD.format(source_id=source_id, process_id=process_id, device=device)
    rows = case.arrays(sql, _HELD_COLUMNS)
    before_bytes = _freed_unseen(rows["address"], rows["change_bytes"])
    return Held(
        time_ns=rows["time_ns"],
        held_bytes=before_bytes + np.cumsum(rows["change_bytes"]) + _last_known(rows["reserved_bytes"]),
        in_use_bytes=rows["in_use_bytes"],
        was_complete=before_bytes == 0,
    )


def _freed_unseen(address: Integers, change_bytes: Integers) -> int:
    """Bytes of frees, in time order, that no allocation of the same address comes before."""
    order = np.argsort(address, kind="stable")
    address, change = address[order], change_bytes[order]
    follows = np.zeros(len(order), bool)
    follows[1:] = (address[1:] == address[:-1]) & (change[:-1] > 0)
    return -int(change[(change < 0) & ~follows].sum())


def _last_known(values: Integers) -> Integers:
    """Each value, or where it is NONE the last one before it; 0 before the first."""
    at = np.maximum.accumulate(np.where(values == NONE, -1, np.arange(len(values))))
    return np.where(at >= 0, values[np.maximum(at, 0)], 0) if len(values) else values


_HELD_COLUMNS = dict.fromkeys(("time_ns", "address", "change_bytes", "reserved_bytes", "in_use_bytes"), "i8")
_HELD = """
    SELECT time_ns, COALESCE(address, -1) AS address,
           CASE WHEN reserved_bytes IS NOT NULL THEN 0 WHEN operation = 'alloc' THEN bytes ELSE -bytes END
               AS change_bytes,
           COALESCE(reserved_bytes, -1) AS reserved_bytes, COALESCE(allocated_bytes, -1) AS in_use_bytes
      FROM allocation
     WHERE source_id = {source_id:d} AND process_id = {process_id:d} AND device = {device:d}
       AND COALESCE(memory, 'device') IN ('device', 'array', 'device static')
     UNION ALL
    SELECT time_ns, -1, 0, size_bytes, COALESCE(used_bytes, -1)
      FROM memory_pool
     WHERE source_id = {source_id:d} AND process_id = {process_id:d} AND device = {device:d} AND size_bytes IS NOT NULL
     ORDER BY time_ns
"""
