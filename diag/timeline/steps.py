"""Steps of a program: the range that repeats and fills the time of a thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.timeline.host import HostThread
from diag.timeline.intervals import Times
from diag.timeline.ranges import OPEN_NS

PROFILER_STEP = "ProfilerStep#"


@dataclass(frozen=True, eq=False)
class Steps:
    """Instances of the step range on one thread, in order; they do not overlap."""

    thread_id: int
    pattern: str
    start_ns: Times
    end_ns: Times
    name_id: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def duration_ns(self) -> Times:
        return self.end_ns - self.start_ns

    def select(self, selection: NDArray[np.bool_] | slice) -> Steps:
        return Steps(
            self.thread_id, self.pattern, self.start_ns[selection], self.end_ns[selection], self.name_id[selection]
        )


def find_steps(thread: HostThread, *, fewest: float, least_cover: float) -> Steps | None:
    """The step range of a thread, or None.

    ProfilerStep ranges are steps by definition. Otherwise it is the pattern whose instances follow each other without
    overlap at least `fewest` times and cover most of the thread's time, at least `least_cover` of it.
    """
    closed = thread.ranges.end_ns != OPEN_NS
    if not closed.any():
        return None
    labels, texts = thread.range_labels, thread.range_patterns
    outermost = closed & thread.outermost
    start_ns, end_ns = thread.ranges.start_ns, thread.ranges.end_ns
    span_ns = int(end_ns[closed].max() - start_ns[closed].min())
    cover = np.bincount(labels[outermost], (end_ns - start_ns)[outermost], len(texts)) / max(span_ns, 1)
    cover[[text == PROFILER_STEP for text in texts]] = np.inf
    count = np.bincount(labels[outermost], minlength=len(texts))
    enough = (count >= fewest) & (cover >= least_cover)
    for label in sorted(np.flatnonzero(enough).tolist(), key=lambda i: -cover[i]):
        at = np.flatnonzero(outermost & (labels == label))
        if (start_ns[at][1:] >= end_ns[at][:-1]).all():
            return Steps(thread.thread_id, texts[label], start_ns[at], end_ns[at], thread.ranges.name_id[at])
    return None
