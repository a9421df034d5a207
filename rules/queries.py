"""SQL that shows the rows behind a number, and commands that look closer.

Only integers go into the SQL: names in a trace may hold anything.
"""

from __future__ import annotations

import shlex

from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import NONE
from diag.timeline.trace import Trace


def report_on_range(trace: Trace, name: str) -> str:
    """The command that reports on one range alone, safe to paste into a shell."""
    paths = " ".join(shlex.quote(source.path) for source in trace.sources)
    return f"diag report {paths} --range {shlex.quote(name)}"


def operations(device: DeviceTimeline, columns: str, *conditions: str) -> str:
    """The operations of a device that touch its window."""
    where = " AND ".join(
        (
            f"source_id = {device.source_id:d}",
            f"process_id = {device.process_id:d}",
            f"device = {device.device:d}",
            f"end_ns >= {device.start_ns:d}",
            f"start_ns <= {device.end_ns:d}",
            *conditions,
        )
    )
    return f"SELECT {columns} FROM gpu_op WHERE {where} ORDER BY start_ns"


def launches_of_kernel(device: DeviceTimeline, name_id: int) -> str:
    name = "NULL" if name_id == NONE else f"{name_id:d}"
    columns = "stream, start_ns, end_ns, end_ns - start_ns AS duration_ns"
    return operations(device, columns, "kind = 'kernel'", f"name_id IS {name}")


def unlaunched_operations(device: DeviceTimeline) -> str:
    calls = (
        "SELECT a.correlation FROM api_call a JOIN thread t ON t.id = a.thread_id "
        f"WHERE t.process_id = {device.process_id:d} AND a.correlation IS NOT NULL"
    )
    return operations(
        device, "kind, stream, start_ns, end_ns", f"(correlation IS NULL OR correlation NOT IN ({calls}))"
    )


def graph_launches(device: DeviceTimeline) -> str:
    """The graph launches of the process that began in the window, with the number of operations that they left."""
    return (
        "SELECT n.text, a.thread_id, a.start_ns, a.end_ns, a.status, COUNT(g.id) AS operations "
        "FROM api_call a JOIN thread t ON t.id = a.thread_id JOIN name n ON n.id = a.name_id "
        "LEFT JOIN gpu_op g ON g.process_id = t.process_id AND g.correlation = a.correlation "
        f"WHERE a.source_id = {device.source_id:d} AND t.process_id = {device.process_id:d} "
        f"AND n.text LIKE '%GraphLaunch%' AND a.start_ns >= {device.start_ns:d} AND a.start_ns < {device.end_ns:d} "
        "GROUP BY a.id ORDER BY a.start_ns"
    )


def profiler_overheads(device: DeviceTimeline) -> str:
    return (
        "SELECT o.thread_id, o.start_ns, o.end_ns, n.text FROM overhead o JOIN thread t ON t.id = o.thread_id "
        "LEFT JOIN name n ON n.id = o.name_id "
        f"WHERE o.source_id = {device.source_id:d} AND t.process_id = {device.process_id:d} AND o.kind = 'profiler' "
        f"AND o.end_ns > {device.start_ns:d} AND o.start_ns < {device.end_ns:d} ORDER BY o.start_ns"
    )


def ranges(trace: Trace, thread_id: int, *, like_name: int | None = None) -> str | None:
    """The ranges of a thread, or those of the same pattern as a name; None where the case keeps columns, not rows."""
    if any(trace.case.value(_HAS_COLUMNS, (source.id,)) for source in trace.sources):
        return None
    rows = ", ".join(f"({source:d}, {thread:d})" for source, thread in trace.recorded.recorded_as(thread_id))
    shift = f" + s.clock_offset_ns - {trace.source.clock_offset_ns:d}" if len(trace.sources) > 1 else ""
    same = "" if like_name is None else f"AND n.pattern = (SELECT pattern FROM name WHERE id = {like_name:d}) "
    return (
        f"SELECT n.text, r.start_ns{shift} AS start_ns, r.end_ns{shift} AS end_ns "
        "FROM cpu_range r JOIN name n ON n.id = r.name_id JOIN source s ON s.id = r.source_id "
        f"WHERE (r.source_id, r.thread_id) IN (VALUES {rows}) {same}ORDER BY 2"
    )


_HAS_COLUMNS = "SELECT EXISTS (SELECT 1 FROM column_block WHERE source_id = ? AND table_name = 'cpu_range')"
