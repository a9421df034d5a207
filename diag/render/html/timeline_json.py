"""The timeline as data inside the page: names once, rows as encoded columns. `decode.js` reads it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diag.render.escape import one_line
from diag.render.html.detail import Blocks
from diag.render.html.encoding import encoded, script_json
from diag.render.html.timeline import DrawnGroup, DrawnRow, Levels, Timeline
from diag.render.layout import elide
from diag.timeline.track import ACTIVITIES

LONGEST_NAME = 160
LONGEST_LABEL = 80

MOST_NAME_BYTES = 200_000
"""Of all names together. Where there are more, those that stand for the least time are told by their pattern."""

LEFT_OUT = "(name left out)"

LEVELS = 254
"""Steps of a counter between its least and its largest value; one more says that none is known."""


def timeline_json(timeline: Timeline) -> dict[str, Any]:
    numbers, names = _names(timeline)
    return {
        "length": timeline.length_ns,
        "resolution": timeline.resolution_ns,
        "activities": list(ACTIVITIES),
        "names": names,
        "whole": [[start, end] for start, end in timeline.whole],
        "groups": [_group(group, numbers) for group in timeline.groups],
    }


def _names(timeline: Timeline) -> tuple[Mapping[int, int], list[str]]:
    """For each name's id its place in the list, from 1: those that stand for most time first, as far as they fit."""
    places: dict[int, int] = {}
    names: dict[str, int] = {}
    room = MOST_NAME_BYTES
    for name_id in _by_time(timeline):
        for said in (timeline.names.get(name_id), timeline.patterns.get(name_id)):
            shown = elide(one_line(said or "(no name)"), LONGEST_NAME)
            if shown not in names and (cost := len(script_json(shown)) + 1) <= room:
                room -= cost
                names[shown] = len(names) + 1
            if shown in names:
                places[name_id] = names[shown]
                break
        else:
            places[name_id] = names.setdefault(LEFT_OUT, len(names) + 1)
    return places, list(names)


def _by_time(timeline: Timeline) -> list[int]:
    drawn = [row.drawn for group in timeline.groups for row in group.rows if isinstance(row.drawn, Blocks)]
    if not drawn:
        return []
    ids, at = np.unique(np.concatenate([blocks.name_id for blocks in drawn]), return_inverse=True)
    times_ns = np.bincount(at, np.concatenate([blocks.busy_ns for blocks in drawn]))
    return [int(each) for each in ids[np.lexsort((ids, -times_ns))] if each >= 0]


def _group(group: DrawnGroup, names: Mapping[int, int]) -> dict[str, Any]:
    said: dict[str, Any] = {"label": _label(group.label), "rows": [_row(row, names) for row in group.rows]}
    if group.device is not None:
        said["device"] = f"{group.source}.{group.process}.{group.device}"
    if group.gaps:
        said["gaps"] = [[start, end] for start, end in group.gaps]
    return said


def _row(row: DrawnRow, names: Mapping[int, int]) -> dict[str, Any]:
    said = {"kind": row.kind, "label": _label(row.label), "count": row.count}
    if isinstance(row.drawn, Levels):
        return said | {"unit": row.unit or ""} | _levels(row.drawn)
    numbers = np.array([names.get(int(name_id), 0) for name_id in row.drawn.name_id], np.int64)
    return said | {"n": len(row.drawn), "data": encoded([*row.drawn.numbers(), numbers])}


def _levels(levels: Levels) -> dict[str, Any]:
    """Least and largest value of each bin in a byte each."""
    known = np.isfinite(levels.least) & np.isfinite(levels.most)  # a case may have been edited
    low = float(np.min(levels.least[known])) if known.any() else 0.0
    high = float(np.max(levels.most[known])) if known.any() else 0.0
    step = (high - low) / LEVELS or 1.0

    def codes(values: NDArray[np.float64]) -> NDArray[np.uint8]:
        return np.where(known, np.rint((np.where(known, values, low) - low) / step), LEVELS + 1).astype(np.uint8)

    both = codes(levels.least).tobytes() + codes(levels.most).tobytes()
    return {"low": low, "high": high, "n": len(known), "data": base64.b64encode(both).decode("ascii")}


def _label(said: str) -> str:
    return elide(one_line(said), LONGEST_LABEL)
