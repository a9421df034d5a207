"""The main thread of a trace without GPU work: what the rules about the host speak of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diag.rules.finding import Subject
from diag.timeline.host import HostThread
from diag.timeline.intervals import Intervals
from diag.timeline.ranges import OPEN_NS
from diag.timeline.trace import Trace


@dataclass(frozen=True, eq=False)
class MainThread:
    """The thread, and the time from the first to the last of its ranges, OS calls and samples, cut to the scope."""

    thread: HostThread
    window: Intervals
    subject: Subject

    @property
    def window_ns(self) -> int:
        return self.window.measure_ns


def main_thread(trace: Trace) -> MainThread | None:
    """None when nothing that the thread did spans any time in scope."""
    if trace.main_thread is None:
        return None
    thread = trace.threads[trace.main_thread]
    window = _span(thread)
    if trace.scope is not None:
        window = window & trace.scope
    if not window:
        return None
    pid = trace.process_of(thread.thread_id).pid
    return MainThread(thread, window, Subject(trace.source.id, process=pid, window=window.span))


def _span(thread: HostThread) -> Intervals:
    """First start to last end of what the thread did; open ranges end with the last event."""
    starts = np.concatenate((thread.ranges.start_ns, thread.os_calls.start_ns, thread.samples.time_ns))
    closed = thread.ranges.end_ns[thread.ranges.end_ns != OPEN_NS]
    ends = np.concatenate((closed, thread.os_calls.end_ns, starts))
    return Intervals.single(int(starts.min()), int(ends.max())) if len(starts) else Intervals.empty()
