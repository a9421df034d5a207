"""The host threads of a source, put together from all that was recorded of each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from diag.timeline.gpu_work import NONE
from diag.timeline.host import GilStates, HostThread, OsCalls, Samples, Switches
from diag.timeline.intervals import Intervals
from diag.timeline.ranges import KINDS, Ranges
from diag.timeline.recordings import Recordings, Rows, ThreadRow

WAITING_FOR_GIL, HOLDING_GIL = "Waiting for GIL", "Holding GIL"
"""Ranges of the NVTX domain 'GIL Trace', in which nsys (--trace=python-gil) records the states of Python threads."""


def host_threads(recorded: Recordings) -> Mapping[int, HostThread]:
    """Every thread of the source that has events, by thread id."""
    gil_names = _gil_names(recorded)
    return {row.id: _thread(recorded, row, gil_names) for row in recorded.threads}


def main_thread(recorded: Recordings, threads: Mapping[int, HostThread]) -> int | None:
    """The thread that launches most; without launches the one that best shows the program at work.

    Operators, annotations and NVTX ranges tell more than Python frames, of which every idle thread has some; then a
    process' first thread, the time it was recorded, and its samples.
    """
    if len(recorded.calls):
        ids, counts = np.unique(recorded.calls.thread_id, return_counts=True)
        return int(ids[np.argmax(counts)])

    def weight(thread_id: int) -> tuple[int, bool, int, int]:
        thread = threads[thread_id]
        told = thread.ranges.kind != KINDS.index("python")
        is_first = thread.tid == recorded.processes[thread.process_id].pid
        return int(told.sum()), is_first, thread.recorded.measure_ns, len(thread.samples.time_ns)

    return max(threads, key=weight, default=None)


def _thread(recorded: Recordings, row: ThreadRow, gil_names: Mapping[str, int]) -> HostThread:
    of_calls = recorded.place_of_calls(row.process_id, row.id)
    calls, blocking = recorded.calls.select(of_calls), recorded.blocking[of_calls]
    first, stop = np.searchsorted(recorded.ranges.thread_id, [row.id, row.id + 1])
    ranges, gil = _without_gil(recorded.ranges.select(slice(first, stop)), gil_names)
    os_calls, samples = _of_thread(recorded.os_calls, row.id), _of_thread(recorded.samples, row.id)
    return HostThread(
        thread_id=row.id,
        process_id=row.process_id,
        tid=row.tid,
        name=row.name,
        names=recorded.case.names,
        patterns=recorded.case.patterns,
        all_ranges=ranges,
        calls=calls,
        os_calls=OsCalls(os_calls["start_ns"], os_calls["end_ns"], os_calls["name_id"], os_calls["stack_id"]),
        switches=_switches(recorded, row.id),
        samples=Samples(samples["time_ns"], samples["stack_id"]),
        gil=gil,
        blocking_copies=Intervals.union_of(calls.start_ns[blocking], calls.end_ns[blocking]),
    )


def _switches(recorded: Recordings, thread_id: int) -> Switches | None:
    if not recorded.source.has("sched"):
        return None
    rows = _of_thread(recorded.switches, thread_id)
    return Switches(rows["time_ns"], rows["is_in"], rows["cpu"], rows["state"])


def _of_thread(rows: Rows, thread_id: int) -> Rows:
    first, stop = np.searchsorted(rows["thread_id"], [thread_id, thread_id + 1])
    return {name: column[first:stop] for name, column in rows.items()}


def _without_gil(ranges: Ranges, gil_names: Mapping[str, int]) -> tuple[Ranges, GilStates | None]:
    """The ranges of a thread without those that only say whether it had the GIL, and what these say."""
    if not gil_names:
        return ranges, None
    of = [ranges.name_id == gil_names.get(text, NONE) for text in (WAITING_FOR_GIL, HOLDING_GIL)]
    waiting, holding = (Intervals.union_of(ranges.start_ns[which], ranges.end_ns[which]) for which in of)
    return ranges.select(~(of[0] | of[1])), GilStates(waiting, holding)


def _gil_names(recorded: Recordings) -> Mapping[str, int]:
    """Ids of the names that nsys gives to a thread's states of the GIL; none when they were not traced."""
    ids = dict(recorded.case.db.execute(_GIL_NAMES, (WAITING_FOR_GIL, HOLDING_GIL)).fetchall())
    return ids if ids and np.isin(recorded.ranges.name_id, list(ids.values())).any() else {}


_GIL_NAMES = "SELECT text, id FROM name WHERE text IN (?, ?)"
