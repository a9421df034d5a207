"""A row of a timeline as a picture that does not move: how busy each column is, in the colour of what takes most of it.

The HTML page and `timeline.svg` draw the same bars; each has its own columns and colours, by class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from diag.timeline.track import ACTIVITIES

COUNTER = "counter"
"""The class of a counter's bars."""


@dataclass(frozen=True, eq=False)
class Bars:
    """In parallel arrays, one entry a column: its height in steps, 1 for the least that is there, and its activity."""

    height: NDArray[np.int64]
    activity: NDArray[np.int64] | None  # index into ACTIVITIES; None for a counter

    @property
    def looks(self) -> list[str]:
        """Classes of what is there."""
        if self.activity is None:
            return [COUNTER]
        return [ACTIVITIES[code] for code in np.unique(self.activity[self.height > 0])]


def busy_bars(shares: NDArray[np.float64], activity: NDArray[np.int64], steps: int) -> Bars:
    """`shares`: how much of each column is busy, from 0 to 1."""
    return Bars(np.ceil(np.clip(shares, 0, 1) * steps).astype(np.int64), activity)


def counter_bars(least: NDArray[np.float64], most: NDArray[np.float64], steps: int) -> Bars:
    """The largest value in each column, from the least of all, or 0, to the largest; NaN where none is known.

    A column with an infinite value is drawn as one without any: nothing could be seen of all others.
    """
    known = np.isfinite(least) & np.isfinite(most)
    if not known.any():
        return Bars(np.zeros(len(most), np.int64), None)
    low, high = min(float(least[known].min()), 0.0), float(most[known].max())
    shares = (np.where(known, most, low) - low) / max(high - low, 1e-300)
    return Bars(np.ceil(np.clip(shares, 0, 1) * steps).astype(np.int64), None)


def bar_paths(bars: Bars, left: float, width: float, room: float, steps: int) -> Iterator[tuple[str, str]]:
    """For each colour its class and the path of its bars, which stand on y = `room` and reach up to y = 0."""
    for look in bars.looks:
        mine = bars.activity is None or bars.activity == ACTIVITIES.index(look)
        yield look, _path(np.where(mine, bars.height, 0), left, width, room, steps)


def _path(heights: NDArray[np.int64], left: float, width: float, room: float, steps: int) -> str:
    """Equal neighbours are one bar."""
    borders = np.flatnonzero(np.diff(heights, prepend=-1, append=-1))
    column = width / len(heights)
    return "".join(
        f"M{left + first * column:.5g} {room:g}v{-room * heights[first] / steps:.3g}h{(stop - first) * column:.4g}"
        f"V{room:g}z"
        for first, stop in pairwise(borders)
        if heights[first]
    )
