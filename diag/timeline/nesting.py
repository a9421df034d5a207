"""Which range encloses which: parents, innermost ranges at an instant, and self time.

Ranges of one thread normally nest (NVTX push/pop, operators, Python functions), which allows a solution by sorting
alone. Some cross: a profiler step opens inside the function that announces it and outlives it. Then a stack walk gives
the answer for that thread. In both cases the parent of a range is the latest-started range that contains all of it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from diag.timeline.intervals import Integers, Times

Index = NDArray[np.int64]


def nesting_order(threads: Integers, starts_ns: Times, ends_ns: Times) -> Index:
    """Order by thread, then start, then longest first: an enclosing range precedes what it encloses."""
    order = np.argsort(starts_ns, kind="stable")
    starts = starts_ns[order]
    same = starts[1:] == starts[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))  # few: all others are in order
    order[tied] = order[tied][np.lexsort((-ends_ns[order[tied]], starts[tied]))]
    return np.asarray(order[np.argsort(threads[order], kind="stable")], np.int64)


def parents(starts_ns: Times, ends_ns: Times) -> Index:
    """Index of each range's parent, or -1, for the ranges of one thread in nesting order."""
    ends = np.maximum(ends_ns, starts_ns + 1)  # an instant must not end before it starts
    n = len(ends)
    depth = np.arange(n) - np.searchsorted(np.sort(ends), starts_ns, side="right")
    keys = np.sort(depth * n + np.arange(n))
    by_depth = keys % n if n else keys
    found = np.searchsorted(keys, keys - n, side="left") - 1  # queries that rise are answered several times faster
    parent = np.empty(n, np.int64)
    parent[by_depth] = np.where(keys >= n, by_depth[found], -1)
    inside = np.flatnonzero(parent >= 0)
    if (ends[parent[inside]] < ends[inside]).any():
        return _parents_by_stack(ends)
    return parent


def _parents_by_stack(ends_ns: Times) -> Index:
    parent = []
    active: list[int] = []  # each ends no later than the one below it: an earlier one that ends first encloses no more
    ends = ends_ns.tolist()
    for index, end in enumerate(ends):
        while active and ends[active[-1]] < end:
            active.pop()
        parent.append(active[-1] if active else -1)
        active.append(index)
    return np.array(parent, np.int64)


def parents_by_thread(threads: Integers, starts_ns: Times, ends_ns: Times) -> Index:
    """Index of each range's parent, or -1, for the ranges of many threads in nesting order."""
    result = np.empty(len(threads), np.int64)
    for first, stop in runs_of_equal(threads):
        parent = parents(starts_ns[first:stop], ends_ns[first:stop])
        result[first:stop] = np.where(parent >= 0, parent + first, -1)
    return result


def runs_of_equal(values: Integers) -> list[tuple[int, int]]:
    """`[first, stop)` of each run of equal values."""
    if not len(values):
        return []
    edges = np.flatnonzero(values[1:] != values[:-1]) + 1
    bounds = [0, *edges.tolist(), len(values)]
    return list(pairwise(bounds))


def innermost_at(times_ns: Times, starts_ns: Times, ends_ns: Times, parent: Index) -> Index:
    """For each time, the index of the latest-started range `[start, end)` of one thread that contains it, or -1.

    Climbing parents is enough also where ranges cross: one that does not contain its successor ends before it does.
    """
    at = np.searchsorted(starts_ns, times_ns, side="right") - 1
    ended = np.flatnonzero((at >= 0) & (ends_ns[np.maximum(at, 0)] <= times_ns)) if len(starts_ns) else at[:0]
    while len(ended):
        at[ended] = parent[at[ended]]
        still = at[ended] >= 0
        ended = ended[still]
        ended = ended[ends_ns[at[ended]] <= times_ns[ended]]
    return np.asarray(at, np.int64)


def self_times_ns(durations_ns: Times, parent: Index) -> Times:
    """Duration of each range less that of its children; never negative, also where children cross."""
    child = np.flatnonzero(parent >= 0)
    taken = np.bincount(parent[child], durations_ns[child], len(durations_ns)).astype(np.int64)
    return np.asarray(np.maximum(durations_ns - taken, 0), np.int64)


def outermost_of_label(labels: Integers, parent: Index) -> NDArray[np.bool_]:
    """True for a range that no range of the same label encloses, so that recursion is counted once."""
    outermost = np.ones(len(labels), bool)
    here = np.flatnonzero(parent >= 0)
    ancestor = parent[here]
    while len(here):
        outermost[here[labels[ancestor] == labels[here]]] = False
        go_on = (parent[ancestor] >= 0) & outermost[here]
        here, ancestor = here[go_on], parent[ancestor[go_on]]
    return outermost


def parents_among(chosen: NDArray[np.bool_], parent: Index) -> tuple[Index, Index]:
    """For each range the nearest chosen one from itself on, and from its parent on; -1 where none is."""
    nearest = np.append(np.where(chosen, np.arange(len(parent)), parent), -1)  # the last one stands for no range
    while (nearest != (further := nearest[nearest])).any():
        nearest = further
    return nearest[:-1], nearest[parent]
