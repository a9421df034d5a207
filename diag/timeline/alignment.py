"""How far one clock is ahead of another, told by events that both recorded.

Two profilers of one process see some of the same events: kernels, or ranges that were announced to both. Either may
miss some, or record for a shorter time. The shift is the one under which most events of equal names meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.timeline.intervals import Times

MOST_APART_NS = 1_000_000_000
"""Clocks that were both read as UTC on one machine do not differ by more."""

MEETING_NS = 100_000
"""Two profilers begin what is one event within this of each other: one wraps the other, by some microseconds."""

FEWEST_MATCHES = 3
LEAST_MATCHED = 0.5
"""So many of the rarer side's events of shared names, in the time that both recorded, must meet."""

ENOUGH = 2_000
"""Events of the guest that tell the shift. The rarest names are asked first: those of every 50 µs always meet some."""

MOST_PAIRS = 1_000_000


@dataclass(frozen=True, eq=False)
class Events:
    """Parallel arrays. Equal keys are events that could be the same one."""

    key: NDArray[np.int64]
    start_ns: Times
    end_ns: Times

    def __len__(self) -> int:
        return len(self.key)

    def select(self, selection: NDArray[np.bool_] | NDArray[np.intp]) -> Events:
        return Events(self.key[selection], self.start_ns[selection], self.end_ns[selection])


@dataclass(frozen=True)
class Alignment:
    shift_ns: int
    """To be added to the guest's times."""
    error_ns: int
    n_matches: int


def align(leader: Events, guest: Events, *, tick_ns: int) -> Alignment | None:
    """The shift of the guest's clock, both being near each other already; None when too few events meet.

    A profiler that wraps another one begins earlier and ends later. So the differences of the starts and of the ends
    bracket the shift: it is taken from their middle, and its error is the largest of half their distance, the median
    absolute deviation and half of the coarser tick.
    """
    leader_at, guest_at = _pairs(leader, guest)
    if not len(guest_at):
        return None
    asked = guest.select(np.unique(guest_at))
    apart_ns = leader.start_ns[leader_at] - guest.start_ns[guest_at]
    rough_ns = _where_most_meet(apart_ns)
    meets = np.abs(apart_ns - rough_ns) <= MEETING_NS
    leader_at, guest_at = _each_once(leader_at[meets], guest_at[meets], np.abs(apart_ns[meets] - rough_ns))
    if len(leader_at) < max(FEWEST_MATCHES, LEAST_MATCHED * _fewer_in_common(leader, asked, rough_ns)):
        return None
    starts_ns = leader.start_ns[leader_at] - guest.start_ns[guest_at]
    ends_ns = leader.end_ns[leader_at] - guest.end_ns[guest_at]
    by_start, by_end = float(np.median(starts_ns)), float(np.median(ends_ns))
    deviation = max(np.median(np.abs(starts_ns - by_start)), np.median(np.abs(ends_ns - by_end)))
    error_ns = max(abs(by_start - by_end) / 2, float(deviation), tick_ns / 2)
    return Alignment(round((by_start + by_end) / 2), int(np.ceil(error_ns)), len(leader_at))


def _pairs(leader: Events, guest: Events) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of pairs of equal keys that are not too far apart, for the guest's events of the rarest keys."""
    leader_order, guest_order = (np.lexsort((each.start_ns, each.key)) for each in (leader, guest))
    keys = np.intersect1d(leader.key, guest.key)
    leader_bounds, guest_bounds = (
        np.stack([np.searchsorted(each.key[order], keys, side) for side in ("left", "right")], axis=1)
        for each, order in ((leader, leader_order), (guest, guest_order))
    )
    n_pairs = np.diff(leader_bounds)[:, 0] * np.diff(guest_bounds)[:, 0]
    leader_at, guest_at = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    asked, left = 0, MOST_PAIRS
    for at in np.argsort(n_pairs, kind="stable").tolist():
        if asked >= ENOUGH:
            break
        of_leader, of_guest = leader_order[slice(*leader_bounds[at])], guest_order[slice(*guest_bounds[at])]
        starts_ns = leader.start_ns[of_leader]
        first = np.searchsorted(starts_ns, guest.start_ns[of_guest] - MOST_APART_NS)
        counts = np.searchsorted(starts_ns, guest.start_ns[of_guest] + MOST_APART_NS) - first
        fits = np.cumsum(counts) <= left
        counts = np.where(fits, counts, 0)
        asked += int((counts > 0).sum())
        left -= int(counts.sum())
        member = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        leader_at.append(of_leader[member])
        guest_at.append(np.repeat(of_guest, counts))
    return np.concatenate(leader_at), np.concatenate(guest_at)


def _where_most_meet(apart_ns: Times) -> float:
    """Median of the densest stretch of differences; of several nearly as dense, as regular steps make, the nearest."""
    apart_ns = np.sort(apart_ns)
    stop = np.searchsorted(apart_ns, apart_ns + MEETING_NS, side="right")
    density = stop - np.arange(len(apart_ns))
    dense = np.flatnonzero(density >= 0.9 * density.max())
    middles = (apart_ns[dense] + apart_ns[stop[dense] - 1]) / 2
    nearest = middles[np.argmin(np.abs(middles))]
    near = np.flatnonzero(np.abs(middles - nearest) <= MEETING_NS)
    best = dense[near[np.argmax(density[dense[near]])]]
    return float(np.median(apart_ns[best : stop[best]]))


def _each_once(
    leader_at: NDArray[np.intp], guest_at: NDArray[np.intp], apart_ns: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Of the pairs with one event in common only the closest."""
    closest = np.argsort(apart_ns, kind="stable")
    leader_at, guest_at = leader_at[closest], guest_at[closest]
    for events in (0, 1):
        _, first = np.unique((leader_at, guest_at)[events], return_index=True)
        first = np.sort(first)
        leader_at, guest_at = leader_at[first], guest_at[first]
    return leader_at, guest_at


def _fewer_in_common(leader: Events, guest: Events, shift_ns: float) -> int:
    """Events of the side that has fewer, with the guest's keys and in the time that both recorded."""
    leader = leader.select(np.isin(leader.key, guest.key))
    start_ns = max(leader.start_ns.min(), guest.start_ns.min() + shift_ns)
    stop_ns = min(leader.start_ns.max(), guest.start_ns.max() + shift_ns)
    of_leader = (leader.start_ns >= start_ns) & (leader.start_ns <= stop_ns)
    of_guest = (guest.start_ns + shift_ns >= start_ns) & (guest.start_ns + shift_ns <= stop_ns)
    return int(min(of_leader.sum(), of_guest.sum()))
