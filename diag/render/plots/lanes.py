"""The rows of a timeline that fit into one picture, each summed up in columns, read from the tracks of a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.render.timeline_bars import Bars, busy_bars, counter_bars
from diag.render.timeline_rows import Group, Picture, Row, picture_of
from diag.store.case import Case
from diag.timeline.intervals import Times
from diag.timeline.track import Columns, equal_parts, merged
from diag.timeline.track_store import Tracks

COLUMNS = 320
STEPS = 16
"""Heights that are told apart."""

MOST_LANES = 30
LEAST = 0.005
"""Host rows that are busy in less of the time would be empty lines."""

MOST_COUNTERS = 8
"""Of the lanes. Devices and streams come first, then what is busiest."""


@dataclass(frozen=True, eq=False)
class Lane:
    group: str
    label: str
    bars: Bars
    busy: float | None  # share of the whole length; None for a counter


@dataclass(frozen=True, eq=False)
class Lanes:
    length_ns: int
    rows: Sequence[Lane]  # those of one group follow each other
    left_out: int


def lanes_of(case: Case) -> Lanes:
    tracks = Tracks(case)
    picture = picture_of(case, tracks)
    # A row of marks would be a row of dots.
    every = [(group, row) for group in picture.groups for row in group.distinct_rows if row.kind != "marks"]
    shown = {id(row) for row in _shown([row for _, row in every], picture.length_ns)}
    reading = _Reading(tracks, picture)
    lanes = [reading.lane(group, row) for group, row in every if id(row) in shown]
    return Lanes(picture.length_ns, lanes, len(every) - len(lanes))


def _shown(rows: Sequence[Row], length_ns: int) -> Sequence[Row]:
    counters = [row for row in rows if row.kind == "counter"][:MOST_COUNTERS]
    of_devices = [row for kind in ("device", "stream") for row in rows if row.kind == kind]
    others = [row for row in rows if row.kind not in ("device", "stream", "counter")]
    busy = [row for row in others if row.busy_ns > LEAST * length_ns] or others
    busy.sort(key=lambda row: -row.busy_ns)
    return [*[*of_devices, *busy][: MOST_LANES - len(counters)], *counters]


class _Reading:
    def __init__(self, tracks: Tracks, picture: Picture) -> None:
        self.tracks = tracks
        self.origin_ns = picture.origin_ns
        self.edges_ns = equal_parts(0, max(picture.length_ns, COLUMNS), COLUMNS)

    def lane(self, group: Group, row: Row) -> Lane:
        edges_ns = self.edges_ns + self.origin_ns[group.source]
        if row.kind == "counter":
            least, most = self.tracks.samples(row.tracks[0]).columns(edges_ns)
            return Lane(group.label, _up_to(row, most), counter_bars(least, most, STEPS), None)
        columns = self._columns(row, edges_ns)
        shares = columns.busy_ns / np.diff(edges_ns)
        bars = busy_bars(shares, columns.activity.astype(np.int64), STEPS)
        return Lane(group.label, row.label_with_depth, bars, float(shares.mean()))

    def _columns(self, row: Row, edges_ns: Times) -> Columns:
        """Of several tracks those of their union."""
        if len(row.tracks) == 1:
            return self.tracks.columns(row.tracks[0], edges_ns)
        return merged([self.tracks.all_slices(track) for track in row.tracks]).columns(edges_ns)


def _up_to(row: Row, values: NDArray[np.float64]) -> str:
    """What the height of a counter's bars means."""
    if np.isnan(values).all():
        return row.label
    return f"{row.label} ≤ {np.nanmax(values):.4g}{f' {row.unit}' if row.unit else ''}"
