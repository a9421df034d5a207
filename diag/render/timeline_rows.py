"""The rows of a timeline: which tracks lie on each, how they are grouped and what they are called.

The terminal and HTML draw the same rows. Labels hold names from traces: whoever shows them makes them safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from diag.store.case import Case
from diag.timeline.shared_axis import origins
from diag.timeline.track import Track
from diag.timeline.track_store import Tracks

RowKind = Literal["device", "stream", "ranges", "start_end", "marks", "calls", "os_calls", "counter"]


@dataclass(frozen=True)
class Row:
    """One line of the picture. A device's row holds the tracks of all its streams."""

    kind: RowKind
    label: str
    tracks: Sequence[Track]
    unit: str | None = None  # of a counter

    @property
    def busy_ns(self) -> int:
        """The sum over its tracks."""
        return sum(track.busy_ns for track in self.tracks)

    @property
    def label_with_depth(self) -> str:
        """Told apart from the other rows of its kind in its group; the outermost has no number."""
        depth = self.tracks[0].depth
        return f"{self.label}, depth {depth + 1}" if depth else self.label


@dataclass(frozen=True)
class Group:
    """Rows that belong together: a device as one process used it, a host thread, the counters of a device."""

    label: str
    source: int
    process: int | None  # pid
    device: int | None
    rows: Sequence[Row]

    @property
    def distinct_rows(self) -> Sequence[Row]:
        """The row of a device is that of its stream where it has one only."""
        has_one_stream = sum(row.kind == "stream" for row in self.rows) == 1
        return [row for row in self.rows if not (row.kind == "stream" and has_one_stream)]


@dataclass(frozen=True)
class Picture:
    """All that can be drawn of a case. `origin_ns` by source: what is subtracted from its times to begin at 0."""

    groups: Sequence[Group]
    origin_ns: Mapping[int, int]
    length_ns: int


def picture_of(case: Case, tracks: Tracks) -> Picture:
    timelines = [source for source in case.sources if any(track.source == source.id for track in tracks.all)]
    spans = {source.id: tracks.span(source.id) for source in timelines}
    origin_ns = origins(spans, {source.id: source.clock_offset_ns for source in timelines})
    length_ns = max((end_ns - origin_ns[source] for source, (_, end_ns) in spans.items()), default=0)
    facts = _Facts(case)
    groups = [group for source in timelines for group in _groups(facts, tracks, source.id)]
    return Picture(groups, origin_ns, length_ns)


def thread_label(tid: int, name: str | None) -> str:
    """
    >>> thread_label(7, "loader"), thread_label(7, None), thread_label(7, "thread 7 (python)")
    ('thread 7 loader', 'thread 7', 'thread 7 (python)')
    """
    if name and str(tid) in name:
        return name
    return f"thread {tid} {name}" if name else f"thread {tid}"


class _Facts:
    """What the case says of processes, threads, devices and counters, by their ids."""

    def __init__(self, case: Case) -> None:
        self.processes = {row["id"]: row for row in case.rows("SELECT id, pid, name FROM process")}
        self.threads = {row["id"]: row for row in case.rows("SELECT id, tid, name FROM thread")}
        self.hardware = {(row["process_id"], row["ordinal"]): row["name"] for row in case.rows(_HARDWARE)}
        self.series = {row["id"]: row for row in case.rows(_SERIES)}
        self.many_sources = len(case.sources) > 1
        self.ranks = {source.id: source.rank for source in case.sources}

    def of_source(self, source: int) -> str:
        if not self.many_sources:
            return ""
        return f"source {source} · " if self.ranks[source] is None else f"rank {self.ranks[source]} · "

    def device(self, track: Track) -> str:
        name = self.hardware.get((track.process, track.device)) if track.process is not None else None
        return f"{self.of_source(track.source)}GPU {track.device}" + (f" · {name}" if name else "")

    def process(self, process: int) -> str:
        row = self.processes[process]
        return f"pid {row['pid']}" + (f" {row['name']}" if row["name"] else "")

    def thread(self, track: Track) -> str:
        row = self.threads[track.thread]
        return self.of_source(track.source) + thread_label(row["tid"], row["name"])


def _groups(facts: _Facts, tracks: Tracks, source: int) -> Iterator[Group]:
    mine = [track for track in tracks.all if track.source == source]
    streams = [track for track in mine if track.kind == "stream"]
    for _, of_device in groupby(streams, key=lambda track: (track.process, track.device)):
        yield _device(facts, list(of_device))
    host = [track for track in mine if track.thread is not None]
    for _, of_thread in groupby(host, key=lambda track: track.thread):
        yield _thread(facts, list(of_thread))
    counters = [track for track in mine if track.kind == "counter"]
    for device, of_device in groupby(counters, key=lambda track: track.device):
        yield _counters(facts, device, list(of_device))


def _device(facts: _Facts, streams: Sequence[Track]) -> Group:
    first = streams[0]
    rows = [Row("device", "busy", streams)]
    rows += [Row("stream", _stream(track), [track]) for track in streams]
    label = f"{facts.device(first)} · {facts.process(first.process)}" if first.process is not None else ""
    return Group(label, first.source, _pid(facts, first), first.device, rows)


def _thread(facts: _Facts, tracks: Sequence[Track]) -> Group:
    first = tracks[0]
    rows = [Row(track.kind, _HOST_LABELS[track.kind], [track]) for track in tracks if track.kind in _HOST_LABELS]
    return Group(facts.thread(first), first.source, _pid(facts, first), None, rows)


def _counters(facts: _Facts, device: int | None, tracks: Sequence[Track]) -> Group:
    rows = []
    for track in tracks:
        series = facts.series[track.series]
        label = f"{series['name']} {series['nic']}" if series["nic"] else series["name"]
        rows.append(Row("counter", label, [track], series["unit"]))
    of = "host" if device is None else f"GPU {device}"
    return Group(f"{facts.of_source(tracks[0].source)}counters of {of}", tracks[0].source, None, device, rows)


def _pid(facts: _Facts, track: Track) -> int | None:
    return None if track.process is None else facts.processes[track.process]["pid"]


def _stream(track: Track) -> str:
    name = "stream not captured" if track.stream is None else f"stream {track.stream}"
    return name if track.context is None else f"{name}, context {track.context}"


_HOST_LABELS: Mapping[str, str] = {
    "ranges": "ranges",
    "start_end": "start/end ranges",
    "marks": "marks",
    "calls": "CUDA calls",
    "os_calls": "OS calls",
}
_HARDWARE = """
    SELECT pd.process_id, pd.ordinal, d.name
      FROM process_device pd LEFT JOIN device d ON d.id = pd.device_id
"""
_SERIES = "SELECT s.id, n.text AS name, s.nic, s.unit FROM counter_series s JOIN name n ON n.id = s.name_id"
