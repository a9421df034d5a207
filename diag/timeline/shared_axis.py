"""The one axis that several sources are drawn on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def origins(spans: Mapping[int, tuple[int, int]], offsets: Mapping[int, int]) -> Mapping[int, int]:
    """For each source what is subtracted from its own times, so that the picture begins at 0.

    `spans` are first and last times on each source's clock, `offsets` their clock offsets. Captures that overlap keep
    their distance; others (of another day, or with clocks that do not compare) would lie years apart and all begin
    at 0. Small times also survive viewers that hold microseconds in a double.
    """
    shared = sorted(
        (first + offsets[source], last + offsets[source], source) for source, (first, last) in spans.items()
    )
    return {source: group[0][0] - offsets[source] for group in _overlapping(shared) for _, _, source in group}


def _overlapping(spans: Sequence[tuple[int, int, int]]) -> list[list[tuple[int, int, int]]]:
    """Groups of (first, last, source), sorted by first, in which each overlaps one before it."""
    groups: list[list[tuple[int, int, int]]] = []
    latest = 0
    for span in spans:
        if groups and span[0] <= latest:
            groups[-1].append(span)
            latest = max(latest, span[1])
        else:
            groups.append([span])
            latest = span[1]
    return groups
