"""Steps of a program: the range that repeats and fills the time of a thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from diag.timeline.host import HostThread
from diag.timeline.intervals import Times
from diag.timeline.ranges import OPEN_NS

FEWEST_STEPS = 5
LEAST_COVER = 0.5  # of the thread's span; own choice: what fills less than half of the time is a part of a step
PROFILER_STEP = "ProfilerStep#"


@dataclass(frozen=True, eq=False)
class Steps:
    """Instances of the step range on one thread, in order; they do not overlap."""

    thread_id: int
    pattern: str
    start_ns: Times
    end_ns: Times
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def duration_ns(self) -> Times:
        return self.end_ns - self.start_ns


def find_steps(thread: HostThread, names: Mapping[int, str]) -> Steps | None:
    """The step range of a thread, or None.

    ProfilerStep ranges are steps by definition. Otherwise it is the pattern whose instances follow each other without
    overlap at least five times and cover most of the thread's time, at least half of it.
    """
    closed = thread.ranges.end_ns != OPEN_NS
    if not closed.any():
        return None
    labels, texts = thread.range_labels, thread.range_patterns
    outermost = closed & thread.outermost
    start_ns, end_ns = thread.ranges.start_ns, thread.ranges.end_ns
    span_ns = int(end_ns[closed].max() - start_ns[closed].min())
    cover = np.bincount(labels[outermost], (end_ns - start_ns)[outermost], len(texts)) / max(span_ns, 1)
    count = np.bincount(labels[outermost], minlength=len(texts))
    enough = (count >= FEWEST_STEPS) & (cover >= LEAST_COVER)
    for label in sorted(np.flatnonzero(enough).tolist(), key=lambda i: (texts[i] != PROFILER_STEP, -cover[i])):
        at = np.flatnonzero(outermost & (labels == label))
        if (start_ns[at][1:] >= end_ns[at][:-1]).all():
            of = tuple(names[i] for i in thread.ranges.name_id[at].tolist())
            return Steps(thread.thread_id, texts[label], start_ns[at], end_ns[at], of)
    return None
