"""A whole case as a picture for Perfetto (ui.perfetto.dev): devices, host threads, counters, arrows and findings.

Each (process, device) is a group with a row for each stream, each process a group with rows for each thread. Slices
that a row could not hold go to lanes below it, so that the viewer drops none. Rows of the case are streamed: memory
does not grow with their number, but for what sorts them in SQLite and for the arrays of ranges kept as columns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import diag
from diag.export import perfetto_statements as sql
from diag.export.axis import Part, origins
from diag.export.lanes import Nesting, Partition
from diag.export.rows import Picture, Rows
from diag.export.trace_events import Track, arguments, arrow, counter, encoded
from diag.rules.finding import Finding
from diag.store.case import Case, Source
from diag.timeline.intervals import Intervals
from diag.timeline.ranges import KINDS, OPEN_NS, load_ranges
from diag.timeline.trace import Trace

MOST_EXTENTS = 10_000
"""Of the times that a finding speaks of, so many are drawn, the longest first."""

BATCH = 1 << 14

Row = tuple[Any, ...]


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


@dataclass(frozen=True)
class Axis:
    """One source, the part of it that is drawn, and where on the axis of the picture."""

    source: Source
    part: Part
    start_ns: int  # 0 of the axis, on the source's clock
    span: tuple[int, int]  # first and last time on the source's clock

    @property
    def parameters(self) -> dict[str, int]:
        return {"source": self.source.id, "from": self.part.start_ns, "until": self.part.end_ns}

    def at(self, time_ns: int) -> int:
        return time_ns - self.start_ns


def _span(case: Case, source: Source) -> tuple[int, int]:
    """First and last time of a source, counters included: they may be sampled before the program starts."""
    first, last = Trace(case, source).event_span
    if "counter" in case.tables:
        (row,) = case.rows(sql.COUNTER_SPAN, {"source": source.id})
        if row["first"] is not None:
            nothing_else = (first, last) == (0, 0)
            first = row["first"] if nothing_else else min(first, row["first"])
            last = row["last"] if nothing_else else max(last, row["last"])
    return first, last


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
    yield from _calls(picture, axis, calls)
    yield from _ranges(picture, axis)
    yield from _of_threads(picture, axis, sql.OS_CALLS, "OS calls", "os_call", place=2)
    yield from _of_threads(picture, axis, sql.OVERHEAD, "overhead", "overhead", place=3)
    yield from _operations(picture, axis, calls)
    yield from _counters(picture, axis)
    yield from _findings(picture, axis, findings)


def _groups(picture: Picture, axis: Axis) -> Iterator[str]:
    """Names of the devices that each process used, then of the processes."""
    source = axis.source
    name = _path(source).rpartition("/")[2] if source.rank is None else f"rank {source.rank}"
    where = f", {name}" if len(picture.case.sources) > 1 else ""
    for row in picture.case.rows(sql.DEVICES, axis.parameters):
        hardware = f" {row['hardware']}" if row["hardware"] else ""
        name = f"GPU {row['device']}{hardware}, pid {row['pid']}{where}"
        yield picture.begin_group(name, "device", row["process_id"], row["device"])
    for row in picture.case.rows(sql.PROCESSES, axis.parameters):
        yield picture.begin_group(f"{row['name'] or 'process'}, pid {row['pid']}{where}", "process", row["id"])


# ---- host ----------------------------------------------------------------------------------------------------------


class CallTracks:
    """Where each CUDA call lies: on the first row of its thread's calls, but for those few that cross others."""

    def __init__(self) -> None:
        self._of_thread: dict[int, Track] = {}
        self._elsewhere: dict[int, Track] = {}

    def add(self, call: int, thread_id: int, rows: Rows) -> None:
        if rows.latest_lane == 0:
            self._of_thread[thread_id] = rows.latest
        else:
            self._elsewhere[call] = rows.latest

    def of(self, call: int, thread_id: int) -> Track:
        return self._elsewhere.get(call) or self._of_thread[thread_id]


def _rows_by_thread(
    picture: Picture, axis: Axis, rows: Iterator[Row], title: str, place: int
) -> Iterator[tuple[Rows, Iterator[Row]]]:
    """For each thread, whose id begins its rows, the rows of the picture that events of this kind lie on."""
    threads = picture.case.rows(sql.THREADS, axis.parameters)
    position = {thread["id"]: number for number, thread in enumerate(threads)}
    for thread_id, of_thread in groupby(rows, key=itemgetter(0)):
        thread = threads[position[thread_id]]
        name = f"{thread['name'] or 'thread'} {thread['tid']}: {title}"
        group = picture.group("process", thread["process_id"])
        yield Rows(picture, group, name, Nesting, 10 * position[thread_id] + place), of_thread


def _calls(picture: Picture, axis: Axis, tracks: CallTracks) -> Iterator[str]:
    cursor = picture.case.db.execute(sql.CALLS, axis.parameters)
    for rows, calls in _rows_by_thread(picture, axis, cursor, "CUDA calls", place=1):
        for thread_id, start_ns, end_ns, name_id, call, correlation, status in calls:
            args = arguments({"correlation": correlation, "status": status or None})
            yield rows.slice("cuda_call", picture.name(name_id), axis.at(start_ns), axis.at(end_ns), args)
            tracks.add(call, thread_id, rows)


def _of_threads(picture: Picture, axis: Axis, statement: str, title: str, category: str, place: int) -> Iterator[str]:
    """Events of threads of which little is known but their times and names."""
    cursor = picture.case.db.execute(statement, axis.parameters)
    for rows, events in _rows_by_thread(picture, axis, cursor, title, place):
        for _, start_ns, end_ns, name_id, kind in events:
            args = arguments({"kind": kind})
            yield rows.slice(category, picture.name(name_id), axis.at(start_ns), axis.at(end_ns), args)


def _ranges(picture: Picture, axis: Axis) -> Iterator[str]:
    """Start/end ranges nest with nothing; they get rows of their own, below those that do."""
    for unnested, of_kind in groupby(_range_rows(picture.case, axis), key=lambda row: row[1] == "process"):
        title, place = ("start/end ranges", 4) if unnested else ("ranges", 0)
        for rows, ranges in _rows_by_thread(picture, axis, of_kind, title, place):
            for _, kind, start_ns, end_ns, name_id, domain, shapes, ends_on in ranges:
                if kind == "mark":
                    yield rows.instant(kind, picture.name(name_id), axis.at(start_ns))
                    continue
                end = "not recorded" if end_ns is None else None
                args = arguments({"domain": domain, "shapes": shapes, "ends_on_thread": ends_on, "end": end})
                last_ns = max(start_ns, axis.span[1]) if end_ns is None else end_ns
                yield rows.slice(kind, picture.name(name_id), axis.at(start_ns), axis.at(last_ns), args)


def _range_rows(case: Case, axis: Axis) -> Iterator[Row]:
    """Rows as `RANGES` gives them, also of a source whose ranges the case keeps as columns."""
    yield from case.db.execute(sql.RANGES, axis.parameters)
    if not case.value(sql.HAS_RANGE_COLUMNS, axis.parameters):
        return
    ranges = load_ranges(case, axis.source.id)
    unnested = ranges.kind == KINDS.index("process")
    for of_kind in (ranges.select(~unnested), ranges.select(unnested)):
        for first in range(0, len(of_kind), BATCH):
            part = of_kind.select(slice(first, first + BATCH))
            columns = (part.thread_id, part.kind, part.start_ns, part.end_ns, part.name_id)
            for thread_id, kind, start_ns, end_ns, name_id in zip(*(c.tolist() for c in columns), strict=True):
                if axis.part.holds(start_ns, end_ns):
                    known_end_ns = None if end_ns == OPEN_NS else end_ns
                    yield thread_id, KINDS[kind], start_ns, known_end_ns, name_id, None, None, None


# ---- devices -------------------------------------------------------------------------------------------------------


def _operations(picture: Picture, axis: Axis, calls: CallTracks) -> Iterator[str]:
    cursor = picture.case.db.execute(sql.OPERATIONS, axis.parameters)
    columns = [description[0] for description in cursor.description]
    for place, ((process_id, device, context, stream), of_stream) in enumerate(
        groupby(cursor, key=itemgetter(0, 1, 2, 3))
    ):
        group = picture.group("device", process_id, device)
        rows = Rows(picture, group, _stream(context, stream), Partition, place)
        for values in of_stream:
            op = dict(zip(columns, values, strict=True))
            start_ns, end_ns = axis.at(op["start_ns"]), axis.at(op["end_ns"])
            yield rows.slice(op["kind"], _operation_name(picture, op), start_ns, end_ns, _operation_args(picture, op))
            if op["call"] is not None:
                call = calls.of(op["call"], op["calling_thread"]), axis.at(op["called_ns"])
                yield arrow(picture.next_arrow(), call, (rows.latest, start_ns))


def _stream(context: int | None, stream: int | None) -> str:
    """
    >>> _stream(1, 7), _stream(None, None)
    ('stream 7, context 1', 'stream not captured')
    """
    name = "stream not captured" if stream is None else f"stream {stream}"
    return name if context is None else f"{name}, context {context}"


def _operation_name(picture: Picture, op: Mapping[str, Any]) -> str:
    match op["kind"]:
        case "copy":
            return encoded(f"copy {op['copy_kind'] or ''}".rstrip())
        case "kernel":
            return picture.name(op["short_name_id"])
        case kind:
            return encoded(kind)


def _operation_args(picture: Picture, op: Mapping[str, Any]) -> str:
    known = {key: op[key] for key in _PLAIN_ARGS}
    for size in ("grid", "block", "cluster"):
        if op[f"{size}_x"] is not None:
            known[size] = f"{op[f'{size}_x']} x {op[f'{size}_y']} x {op[f'{size}_z']}"
    if op["name_id"] != op["short_name_id"] and op["name_id"] is not None:
        known["name"] = picture.case.names.get(op["name_id"])
    return arguments(known)


_PLAIN_ARGS = (
    "correlation",
    "graph",
    "graph_node",
    "registers_per_thread",
    "shared_static_bytes",
    "shared_dynamic_bytes",
    "local_per_thread_bytes",
    "bytes",
    "src_memory",
    "dst_memory",
    "peer_device",
)


def _counters(picture: Picture, axis: Axis) -> Iterator[str]:
    """Time series, in a group for each device that they are of."""
    if "counter" not in picture.case.tables:
        return
    cursor = picture.case.db.execute(sql.COUNTERS, axis.parameters)
    for device, of_device in groupby(cursor, key=itemgetter(0)):
        key = ("counters", axis.source.id, device)
        yield picture.begin_group("Counters" if device is None else f"Counters of GPU {device}", *key)
        for _, name_id, time_ns, value in of_device:
            if value is not None and math.isfinite(value):
                yield counter(picture.group(*key), picture.name(name_id), axis.at(time_ns), json.dumps(value))


# ---- findings ------------------------------------------------------------------------------------------------------


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
