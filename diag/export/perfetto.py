"""A whole case as a picture for Perfetto (ui.perfetto.dev): devices, host threads, counters, arrows and findings.

Each (process, device) is a group with a row for each stream, each process a group with rows for each thread. Slices
that a row could not hold go to lanes below it, so that the viewer drops none. Rows of the case are streamed: memory
does not grow with their number, but for what sorts them in SQLite and for the arrays of ranges kept as columns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

import diag
from diag.export import perfetto_statements as sql
from diag.export.axis import Axis, Part
from diag.export.device_events import operation_events
from diag.export.host_events import CallTracks, call_events, range_events, thread_events
from diag.export.lanes import Partition
from diag.export.rows import Picture, Rows
from diag.export.trace_events import arguments, counter, encoded
from diag.rules.finding import Finding
from diag.store.case import Case, Source
from diag.timeline.intervals import Intervals
from diag.timeline.shared_axis import origins
from diag.timeline.trace import Trace

MOST_EXTENTS = 10_000
"""Of the times that a finding speaks of, so many are drawn, the longest first."""


def trace_of(case: Case, parts: Mapping[int, Part], findings: Sequence[Finding]) -> Iterator[str]:
    """The text of the trace in pieces: one JSON object whose `traceEvents` stand one to a line.

    Times are microseconds from the first event of the case, with nanoseconds as decimals. `parts` are those of each
    source, by its id; whatever touches them is drawn uncut.
    """
    spans = {source.id: _span(case, source) for source in case.sources}
    starts = origins(spans, {source.id: source.clock_offset_ns for source in case.sources})
    picture = Picture(case)
    yield f'{{"displayTimeUnit":"ns","otherData":{_about(case, starts)},"traceEvents":[\n'
    separator = ""
    for source in case.sources:
        axis = Axis(source, parts[source.id], starts[source.id], spans[source.id])
        for event in _events(picture, axis, [f for f in findings if f.subject.source == source.id]):
            yield separator + event
            separator = ",\n"
    yield "\n]}\n"


def _span(case: Case, source: Source) -> tuple[int, int]:
    """First and last time of a source, counters included: they may be sampled before the program starts."""
    first, last = Trace(case, source).event_span
    (row,) = case.rows(sql.COUNTER_SPAN, {"source": source.id})
    if row["first"] is None:
        return first, last
    if (first, last) == (0, 0):
        return row["first"], row["last"]
    return min(first, row["first"]), max(last, row["last"])


def _about(case: Case, starts: Mapping[int, int]) -> str:
    """What the picture shows; 0 of its axis is `start_ns` on the clock of each source."""
    sources = [
        {"path": _path(source), "sha256": source.sha256, "start_ns": starts[source.id]} for source in case.sources
    ]
    return json.dumps({"diag_version": diag.__version__, "sources": sources})


def _path(source: Source) -> str:
    return source.path.encode("utf-8", "backslashreplace").decode("utf-8")


def _events(picture: Picture, axis: Axis, findings: Sequence[Finding]) -> Iterator[str]:
    """All events of one source. Calls come before what they launched: an arrow starts at a slice already drawn."""
    calls = CallTracks()
    yield from _groups(picture, axis)
    yield from call_events(picture, axis, calls)
    yield from range_events(picture, axis)
    yield from thread_events(picture, axis, sql.OS_CALLS, "OS calls", "os_call", place=2)
    yield from thread_events(picture, axis, sql.OVERHEAD, "overhead", "overhead", place=3)
    yield from operation_events(picture, axis, calls)
    yield from _counters(picture, axis)
    yield from _findings(picture, axis, findings)


def _groups(picture: Picture, axis: Axis) -> Iterator[str]:
    """Names of the devices that each process used, then of the processes."""
    where = _where(picture, axis)
    for row in picture.case.rows(sql.DEVICES, axis.parameters):
        hardware = f" {row['hardware']}" if row["hardware"] else ""
        name = f"GPU {row['device']}{hardware}, pid {row['pid']}{where}"
        yield picture.begin_group(name, "device", row["process_id"], row["device"])
    for row in picture.case.rows(sql.PROCESSES, axis.parameters):
        yield picture.begin_group(f"{row['name'] or 'process'}, pid {row['pid']}{where}", "process", row["id"])


def _where(picture: Picture, axis: Axis) -> str:
    """Which of several sources; nothing where there is one."""
    if len(picture.case.sources) == 1:
        return ""
    rank = axis.source.rank
    return f", {_path(axis.source).rpartition('/')[2]}" if rank is None else f", rank {rank}"


def _counters(picture: Picture, axis: Axis) -> Iterator[str]:
    """Time series, in a group for each device or network card that they are of."""
    cursor = picture.case.db.execute(sql.COUNTERS, axis.parameters)
    for (device, nic), of_hardware in groupby(cursor, key=itemgetter(0, 1)):
        key = ("counters", axis.source.id, device, nic)
        hardware = nic if device is None else f"GPU {device}"
        yield picture.begin_group(f"Counters{f' of {hardware}' if hardware else ''}{_where(picture, axis)}", *key)
        for *_, name_id, time_ns, value in of_hardware:
            if math.isfinite(value):
                yield counter(picture.group(*key), picture.name(name_id), axis.at(time_ns), json.dumps(value))


def _findings(picture: Picture, axis: Axis, findings: Sequence[Finding]) -> Iterator[str]:
    """A row for each finding, on its device or process: the times that it speaks of, or the window that it judges."""
    processes = {row["pid"]: row["id"] for row in picture.case.rows(sql.PROCESSES, axis.parameters)}
    some_process = min(processes.values(), default=None)
    for rank, finding in enumerate(findings):
        about = finding.subject
        process_id = some_process if about.process is None else processes.get(about.process)
        if process_id is None:
            continue
        owner = ("process", process_id) if about.device is None else ("device", process_id, about.device)
        rows = Rows(picture, picture.group(*owner), f"finding: {finding.title}", Partition, _BELOW_STREAMS + rank)
        name, args = encoded(finding.title), _finding_args(finding)
        for start_ns, end_ns in _extent(finding, axis):
            yield rows.slice("finding", name, axis.at(start_ns), axis.at(end_ns), args)


_BELOW_STREAMS = 1_000_000


def _extent(finding: Finding, axis: Axis) -> Intervals:
    start_ns, end_ns = finding.subject.window or axis.span
    if not finding.extent:
        return Intervals.single(start_ns, end_ns)
    extent = finding.extent
    if len(extent) <= MOST_EXTENTS:
        return extent
    longest = extent.lengths_ns.argsort(kind="stable")[-MOST_EXTENTS:]
    return Intervals.union_of(extent.starts_ns[longest], extent.ends_ns[longest])


def _finding_args(finding: Finding) -> str:
    return arguments(
        {
            "id": finding.id,
            "rule": finding.rule,
            "severity": finding.severity,
            "claim": finding.claim,
            "could win": finding.counterfactual,
            "next": finding.next[0] if finding.next else None,
            "refute": finding.refute,
        }
    )
