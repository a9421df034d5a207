"""What a selection holds, in words: set measures of docs/definitions.md, and the names that take most of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.timeline.intervals import Intervals
from diag.timeline.track import ACTIVITIES, Slices
from diag.tui.timeline.device_time import NAMELESS, Measured, measured, top_names
from diag.tui.timeline.frame import slices_of
from diag.tui.timeline.lines import Line
from diag.tui.timeline.material import Material
from diag.tui.timeline.ruler import exact

MOST_NAMES = 5

_PLURALS = {"copy": "copies", "memset": "memsets", "graph": "graph launches", "kernel": "kernels without a name"}


def measure(material: Material, line: Line, start_ns: int, end_ns: int) -> Measured:
    """Of the device that a line with streams is of, or of one of its streams alone. Times are those of the axis."""
    origin_ns = material.picture.origin_ns[line.group.source]
    start_ns, end_ns = start_ns + origin_ns, end_ns + origin_ns
    window = material.device(line.group.rows[0].tracks).window
    parts = [slices for _, slices in slices_of(material, line, start_ns, end_ns)]
    return measured(parts, window, start_ns, end_ns, MOST_NAMES)


@dataclass(frozen=True)
class Said:
    """A line: numbers, and behind them a text that may come from the trace."""

    numbers: str
    text: str = ""


def measured_text(material: Material, line: Line, selection: tuple[int, int]) -> list[Said]:
    start_ns, end_ns = selection
    head = Said(f"selected {units.time(end_ns - start_ns)} from {exact(start_ns)} to {exact(end_ns)}")
    if line.kind in ("device", "stream"):
        return [head, *_of_device(measure(material, line, start_ns, end_ns), line, material.name)]
    if line.kind == "counter":
        return [head, Said("", _of_counter(material, line, start_ns, end_ns))]
    return [head, *_of_host(material, line, start_ns, end_ns)]


def _of_device(of: Measured, line: Line, name: Callable[[int], str]) -> list[Said]:
    where = line.label if line.kind == "stream" else "device"
    if not of.window_ns:
        return [Said("", f"{where}: outside its window")]
    busy = f"busy {_share(of.busy_ns, of.window_ns)} · idle {_share(of.idle_ns, of.window_ns)}"
    kernels = of.counts["kernel"] + of.counts["communication"]
    kinds = [
        (kernels, "kernel", of.kernel_ns),
        (of.counts["copy"], "copy", of.copy_ns),
        (of.counts["memset"], "memset", of.memset_ns),
        (of.counts["graph"], "graph launch", of.graph_ns),
    ]
    parts = [f"{units.count(count, noun)} {units.time(time_ns)}" for count, noun, time_ns in kinds if count]
    if of.comm_ns:
        parts.append(f"communication {units.time(of.comm_ns)}, exposed {units.time(of.exposed_comm_ns)}")
    return [Said("", f"{where}: {busy}"), Said(" · ".join(parts) or "no operations"), *_top(of.top, of.window_ns, name)]


def _of_host(material: Material, line: Line, start_ns: int, end_ns: int) -> list[Said]:
    origin_ns = material.picture.origin_ns[line.group.source]
    around = start_ns + origin_ns, end_ns + origin_ns
    parts = [slices for _, slices in slices_of(material, line, *around)]
    if not parts:
        return [Said("no row is selected: choose one with the arrow keys")]
    inside = [_inside(part, *around) for part in parts]
    starts, ends, names = (
        np.concatenate([getattr(part, column) for part in inside]) for column in ("start_ns", "end_ns", "name_id")
    )
    busy_ns = Intervals.union_of(starts, ends).measure_ns
    top = top_names(names, ends - starts, MOST_NAMES)
    length_ns = end_ns - start_ns
    head = f"{line.label}: {_share(busy_ns, length_ns)} in {units.count(len(names), 'slice')}"
    return [Said("", head), *_top(top, length_ns, material.name)]


def _inside(slices: Slices, start_ns: int, end_ns: int) -> Slices:
    """Those that touch it, cut to it."""
    here = (slices.start_ns < end_ns) & ((slices.end_ns > start_ns) | (slices.start_ns >= start_ns))
    mine = slices.select(here)
    starts, ends = np.clip(mine.start_ns, start_ns, end_ns), np.clip(mine.end_ns, start_ns, end_ns)
    return Slices(starts, ends, mine.name_id, mine.activity, mine.row_id)


def time_by_name(material: Material, line: Line, start_ns: int, end_ns: int) -> list[tuple[str, int]]:
    """Names of what a line holds of a stretch, on the clock of its source, and how long it was, longest first."""
    parts = [_inside(slices, start_ns, end_ns) for _, slices in slices_of(material, line, start_ns, end_ns)]
    tops = [top_names(part.name_id, part.end_ns - part.start_ns, MOST_NAMES) for part in parts]
    return [(material.name(name_id), time_ns) for top in tops for name_id, time_ns, _ in top if time_ns]


def _of_counter(material: Material, line: Line, start_ns: int, end_ns: int) -> str:
    (track,) = line.tracks
    samples, origin_ns = material.tracks.samples(track), material.picture.origin_ns[line.group.source]
    edges_ns = np.array([start_ns, end_ns]) + origin_ns
    least, most = samples.columns(edges_ns)
    if np.isnan(least[0]):
        return f"{line.label}: no value"
    return f"{line.label}: {least[0]:.6g} to {most[0]:.6g} {line.unit or ''}".rstrip()


def _top(top: Sequence[tuple[int, int, int]], whole_ns: int, name: Callable[[int], str]) -> list[Said]:
    return [
        Said(f"{units.share(time_ns / whole_ns):>8} {units.time(time_ns):>9} {count:>7,} × ", _named(name_id, name))
        for name_id, time_ns, count in top
    ]


def _named(name_id: int, name: Callable[[int], str]) -> str:
    return name(name_id) if name_id > NAMELESS else _PLURALS[ACTIVITIES[NAMELESS - name_id]]


def _share(ns: int, of_ns: int) -> str:
    return f"{units.time(ns)} ({units.share(ns / of_ns)})"
