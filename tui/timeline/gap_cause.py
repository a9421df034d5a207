"""Why a device was idle in one gap: the parts that `diag.timeline.idle` gives all of its idle time, for this one.

It needs two rows of the case, where the account of a whole device needs all of its operations and calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.store.case import Case
from diag.timeline.intervals import Intervals
from diag.tui.timeline.details import launching_call


@dataclass(frozen=True)
class GapCause:
    """A partition of the gap, in ns. `call_id` and what follows is of the call that launched the operation behind it;
    None where it was not captured."""

    other_process_ns: int
    host_late_ns: int
    launch_latency_ns: int
    device_side_ns: int
    not_captured_ns: int
    call_id: int | None
    call: str | None
    thread_id: int | None
    call_start_ns: int | None


def cause_of(case: Case, gap: tuple[int, int], enders: Sequence[int], others: Intervals) -> GapCause:
    """`enders` are the ids of the operations that start where the gap ends; `others` is when other processes used the
    hardware, on the clock of the source."""
    process_id, correlation = _first_launched(case, enders)
    call = launching_call(case, process_id, correlation)
    idle = Intervals.single(*gap) - others
    host_late = launch_latency = device_side = 0
    for start_ns, end_ns in idle:
        if call is None:
            continue
        if call["start_ns"] < start_ns:
            device_side += end_ns - start_ns
        else:
            late_until = min(call["start_ns"], end_ns)
            host_late += late_until - start_ns
            launch_latency += end_ns - late_until
    return GapCause(
        other_process_ns=gap[1] - gap[0] - idle.measure_ns,
        host_late_ns=host_late,
        launch_latency_ns=launch_latency,
        device_side_ns=device_side,
        not_captured_ns=idle.measure_ns if call is None else 0,
        call_id=None if call is None else call["id"],
        call=None if call is None else call["name"],
        thread_id=None if call is None else call["thread_id"],
        call_start_ns=None if call is None else call["start_ns"],
    )


def _first_launched(case: Case, ids: Sequence[int]) -> tuple[int, int | None]:
    """Process and correlation id of the operation that was launched first."""
    marks = ", ".join("?" for _ in ids)
    sql = f"SELECT process_id, correlation FROM gpu_op WHERE id IN ({marks}) ORDER BY correlation IS NULL, correlation"
    process_id, correlation = case.db.execute(sql, list(ids)).fetchone()
    return process_id, correlation
