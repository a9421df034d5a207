"""How much of a timeline a file can hold: slices too short to be seen apart are put together into blocks.

With a *resolution* of r ns, slices of r and longer stay as they are; of the shorter ones those that begin in the same
r ns become one block, which keeps its extent, how much of it is busy, how many they are and the longest of them. The
resolution is the finest with which all rows together stay within a budget. Around the evidence of findings nothing is
put together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from diag.timeline.intervals import Intervals, Times
from diag.timeline.track import ACTIVITIES, Slices

MOST_BLOCKS = 80_000
"""Of all rows together. One takes 10 to 20 bytes of the file."""

MOST_DETAIL = 12_000
"""Slices of these blocks that may lie where evidence is, each by itself."""

FINE_ENOUGH = 1.05
"""The resolution is found to within a twentieth."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """What a row shows, in parallel arrays, sorted by start: single slices (count 1) and blocks of several."""

    start_ns: Times
    end_ns: Times
    busy_ns: Times  # union of the slices inside
    count: NDArray[np.int64]
    name_id: NDArray[np.int32]  # of the longest
    activity: NDArray[np.int8]  # of the longest

    def __len__(self) -> int:
        return len(self.start_ns)

    def numbers(self) -> list[NDArray[np.int64]]:
        """What is written of them, but for the names: small numbers, which take few bytes."""
        lengths_ns = self.end_ns - self.start_ns
        kinds = self.count * len(ACTIVITIES) + self.activity
        return [np.diff(self.start_ns, prepend=0), lengths_ns, lengths_ns - self.busy_ns, kinds]


@dataclass(frozen=True, eq=False)
class Extent:
    """Where the slices of a row lie: all that is needed to count its blocks."""

    start_ns: Times
    length_ns: Times

    @classmethod
    def of(cls, slices: Slices) -> Extent:
        return cls(slices.start_ns, slices.end_ns - slices.start_ns)

    def blocks_at(self, resolution_ns: int) -> int:
        starts_ns = self.start_ns[self.length_ns < resolution_ns]
        return len(self.start_ns) - len(starts_ns) + len(_heads(starts_ns // max(resolution_ns, 1)))

    def within(self, window: tuple[int, int]) -> int:
        """Slices that touch a window."""
        before = int(np.searchsorted(self.start_ns, window[1]))
        return int(np.count_nonzero(self.start_ns[:before] + self.length_ns[:before] > window[0]))


def resolution_for(rows: Sequence[Extent], length_ns: int, most: int = MOST_BLOCKS) -> int:
    """The finest resolution with which the rows have at most `most` blocks; 0 where nothing need be put together.

    Found by bisection: the number of blocks falls as the resolution gets coarser, but for a few at the borders.
    """
    if sum(len(row.start_ns) for row in rows) <= most:
        return 0
    too_fine, enough = 1, max(length_ns, 2)
    while enough > FINE_ENOUGH * too_fine and enough - too_fine > 1:
        middle = min(max(math.isqrt(too_fine * enough), too_fine + 1), enough - 1)
        if sum(row.blocks_at(middle) for row in rows) <= most:
            enough = middle
        else:
            too_fine = middle
    return enough


def kept_whole(
    rows: Sequence[Extent], windows: Sequence[tuple[int, int]], most: int = MOST_DETAIL
) -> list[tuple[int, int]]:
    """Of the windows, the first ones first, those whose slices fit into `most` together."""
    kept: list[tuple[int, int]] = []
    for window in windows:
        count = sum(row.within(window) for row in rows)
        if count <= most:
            kept.append(window)
            most -= count
    return kept


def blocks_of(slices: Slices, resolution_ns: int, whole: Intervals) -> Blocks:
    """The row at a resolution, with every slice that touches `whole` by itself."""
    lengths_ns = slices.end_ns - slices.start_ns
    alone = (lengths_ns >= resolution_ns) | _touches(slices, whole)
    singles = slices.select(alone)
    single_ns = singles.end_ns - singles.start_ns
    count = np.ones(len(singles), np.int64)
    blocks = Blocks(singles.start_ns, singles.end_ns, single_ns, count, singles.name_id, singles.activity)
    if alone.all():
        return blocks
    together = _put_together(slices.select(~alone), resolution_ns, whole)
    columns = [np.concatenate((getattr(blocks, each.name), getattr(together, each.name))) for each in fields(Blocks)]
    order = np.lexsort((-columns[1], columns[0]))
    return Blocks(*(column[order] for column in columns))


def _put_together(short: Slices, resolution_ns: int, whole: Intervals) -> Blocks:
    """No block reaches over a part that is kept whole."""
    parts = np.searchsorted(whole.starts_ns, short.start_ns, side="right")
    heads = _heads(short.start_ns // resolution_ns, parts)
    count = np.diff(np.append(heads, len(short)))
    starts_ns, ends_ns = short.start_ns[heads], np.maximum.reduceat(short.end_ns, heads)
    lengths_ns = short.end_ns - short.start_ns
    is_longest = np.flatnonzero(lengths_ns == np.repeat(np.maximum.reduceat(lengths_ns, heads), count))
    block = np.repeat(np.arange(len(heads)), count)[is_longest]
    longest = is_longest[_heads(block)]  # the first of several
    busy_ns = _busy_by_block(short.start_ns - np.repeat(starts_ns, count), lengths_ns, heads, 4 * resolution_ns)
    return Blocks(starts_ns, ends_ns, busy_ns, count, short.name_id[longest], short.activity[longest])


def _busy_by_block(start_ns: Times, length_ns: Times, heads: NDArray[np.int64], apart_ns: int) -> Times:
    """Union of the slices of each block, without those of others, given starts from that of the block.

    Blocks are moved `apart_ns` from each other, which is more than any is long, so that one running maximum does.
    """
    begins = np.zeros(len(start_ns), np.int64)
    begins[heads[1:]] = apart_ns
    start_ns = start_ns + np.cumsum(begins)
    end_ns = start_ns + length_ns
    reached_ns = np.concatenate((start_ns[:1], np.maximum.accumulate(end_ns)[:-1]))
    return np.asarray(np.add.reduceat(np.maximum(end_ns - np.maximum(start_ns, reached_ns), 0), heads))


def _touches(slices: Slices, whole: Intervals) -> NDArray[np.bool_]:
    if not whole:
        return np.zeros(len(slices), bool)
    first = np.searchsorted(whole.ends_ns, slices.start_ns, side="right")
    begins = np.append(whole.starts_ns, np.iinfo(np.int64).max)[first]
    return np.asarray(begins < slices.end_ns)


def _heads(*columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs of rows begin that are equal in all columns."""
    changes = np.zeros(len(columns[0]), bool)
    changes[:1] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changes)
