"""A gap in words: its parts by cause, and what the host rows of the process show meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.render.timeline_rows import Group
from diag.tui.timeline.details import Link
from diag.tui.timeline.gap_cause import GapCause
from diag.tui.timeline.lines import Line, lines_of
from diag.tui.timeline.material import Material
from diag.tui.timeline.measuring import time_by_name

MOST_NAMES = 2
MOST_THREADS = 4

_WORDS = (
    ("other_process_ns", "used by another process"),
    ("host_late_ns", "host late: the launch came this long after the gap began"),
    ("launch_latency_ns", "launch latency: from the launching call to the start"),
    ("device_side_ns", "device side: launched before the gap began"),
    ("not_captured_ns", "not captured: the launch of what ended the gap"),
)


def parts(cause: GapCause) -> list[tuple[str, str]]:
    """Each part with its length; they add up to the gap."""
    lengths = ((getattr(cause, field), words) for field, words in _WORDS)
    return [("cause", f"{units.time(ns)} {words}") for ns, words in lengths if ns]


def enders_of(material: Material, line: Line, end_ns: int) -> list[int]:
    """Ids of the operations of a device that start at this time, on the clock of its source."""
    ids: list[int] = []
    for track in line.tracks:
        slices = material.tracks.slices(track, end_ns, end_ns + 1)
        ids += slices.row_id[slices.start_ns == end_ns].tolist()
    return ids


def host_of(material: Material, group: Group, thread_id: int | None, gap: tuple[int, int]) -> list[tuple[str, str]]:
    """What takes most of a gap on the rows of the thread that launched, or of the busiest threads of the process."""
    found = []
    for _, of_thread in _threads(material, group, thread_id):
        rows = [(line.label, time_by_name(material, line, *gap)[:MOST_NAMES]) for line in of_thread]
        said = [(label, ", ".join(f"{name} {units.time(ns)}" for name, ns in top)) for label, top in rows if top]
        longest_ns = max((ns for _, top in rows for _, ns in top), default=0)
        if said:
            found.append((longest_ns, [("thread", of_thread[0].group.label), *said]))
    found.sort(key=lambda each: -each[0])
    return [fact for _, facts in found[:MOST_THREADS] for fact in facts]


def _threads(material: Material, group: Group, thread_id: int | None) -> Iterator[tuple[int, list[Line]]]:
    """Lines by the index of their group."""
    picture = material.picture
    for at, other in enumerate(picture.groups):
        is_thread = other.rows[0].kind not in ("device", "counter")
        same = (other.source, other.process) == (group.source, group.process)
        if is_thread and same and thread_id in (None, other.rows[0].tracks[0].thread):
            yield at, [line for line in lines_of(picture, {at}, {}) if line.key[0] == at and line.key[1] >= 0]


def line_of(material: Material, link: Link, source: int) -> tuple[int, int] | None:
    """Key of the line that holds a row, whose time is on the clock of its source."""
    kinds = {"gpu_op": "stream", "api_call": "calls", "os_call": "os_calls"}
    for at, group in enumerate(material.picture.groups):
        for number, row in enumerate(group.rows):
            if group.source != source or row.kind != kinds[link.table]:
                continue
            slices = material.tracks.slices(row.tracks[0], link.start_ns, max(link.end_ns, link.start_ns + 1))
            if np.isin(link.row_id, slices.row_id):
                return at, number
    return None
