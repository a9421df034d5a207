"""Which ranges of a thread explain a set of its time best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diag.timeline.host import HostThread
from diag.timeline.intervals import Intervals
from diag.timeline.steps import PROFILER_STEP

MANY_PIECES = 10
"""A range around so many gaps is around whatever the program does; own choice."""


@dataclass(frozen=True, eq=False)
class RangeCover:
    """How much of a set of time the ranges of one name pattern cover."""

    pattern: str
    count: int  # ranges that touch the set
    covered: Intervals
    ranges: Intervals  # all the time of those ranges

    @property
    def covered_ns(self) -> int:
        return self.covered.measure_ns


def cover_by_ranges(thread: HostThread, when: Intervals, *, least_share: float, most: int = 3) -> list[RangeCover]:
    """Up to `most` patterns that explain `when`, each at least `least_share` of it, the best fit first.

    The fit of a pattern is |when ∩ ranges| / |when ∪ ranges| (Jaccard), its ranges cut to the span of `when`, so that
    neither an enclosing main loop nor a small detail is named where a range fits. Each further pattern explains what
    those before it left over. What holds all of many pieces (main program, loop), or is the profiler's own
    step, explains nothing.
    """
    wanted_ns = least_share * when.measure_ns
    covers: list[RangeCover] = []
    rest = when
    while len(covers) < most and rest.measure_ns > max(wanted_ns, 0):
        cover = _best_cover(thread, rest)
        if cover is None or cover.covered_ns < wanted_ns:
            break
        covers.append(cover)
        rest = rest - cover.covered
    return covers


def _best_cover(thread: HostThread, when: Intervals) -> RangeCover | None:
    ranges = thread.ranges
    inside_ns = when.measure_within(ranges.start_ns, ranges.end_ns)
    if not inside_ns.any():
        return None
    labels, texts = thread.range_labels, thread.range_patterns
    outermost = thread.outermost
    duration_ns = np.clip(ranges.end_ns, *when.span) - np.clip(ranges.start_ns, *when.span)
    covered_ns = np.bincount(labels[outermost], inside_ns[outermost], len(texts))
    range_ns = np.bincount(labels[outermost], duration_ns[outermost], len(texts))
    fit = covered_ns / (when.measure_ns + range_ns - covered_ns)
    fit[[text == PROFILER_STEP for text in texts]] = 0
    first_ns, last_ns = when.span
    if len(when) >= MANY_PIECES:
        fit[labels[(ranges.start_ns <= first_ns) & (ranges.end_ns >= last_ns)]] = 0
    best = int(np.argmax(fit))
    if not fit[best]:
        return None
    of = np.flatnonzero(outermost & (labels == best) & (inside_ns > 0))
    time = Intervals.union_of(ranges.start_ns[of], ranges.end_ns[of])
    return RangeCover(texts[best], len(of), when & time, time)
