"""How long the ranges of a timeline took, instance by instance: on the host, and by what they launched on devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from diag.compare.noise import Values
from diag.compare.recording import RangeTimes
from diag.compare.series import Series, together
from diag.compare.trace_times import Periods
from diag.rules.tables import MOST_NAMES_AROUND
from diag.timeline import gpu_work, nesting
from diag.timeline.device import DeviceTimeline
from diag.timeline.host import HostThread
from diag.timeline.intervals import Times
from diag.timeline.ranges import OPEN_NS
from diag.timeline.trace import Trace


def ranges_of(trace: Trace, periods: Periods | None) -> Mapping[str, RangeTimes]:
    """By pattern, over all threads. Ranges that were still open are left out; in a part of a trace those that reach
    into it count, with their time in it.
    """
    host: defaultdict[str, list[Series]] = defaultdict(list)
    gpu: defaultdict[str, list[Series]] = defaultdict(list)
    for thread in trace.threads.values():
        for pattern, host_ns, gpu_ns, starts_ns in _of_thread(trace, thread):
            period = None if periods is None else periods.at(starts_ns)
            host[pattern].append(Series.of(host_ns, period, len(periods or ())))
            gpu[pattern].append(Series.of(gpu_ns, period, len(periods or ())))
    return {pattern: RangeTimes(together(series), _if_any(together(gpu[pattern]))) for pattern, series in host.items()}


def _if_any(gpu: Series) -> Series | None:
    return gpu if gpu.total_ns else None


def _of_thread(trace: Trace, thread: HostThread) -> Iterator[tuple[str, Values, Values, Times]]:
    """For each pattern the host time, the device time and the start of each of its instances."""
    ranges = thread.ranges
    if not len(ranges):
        return
    counts = thread.outermost & (ranges.end_ns != OPEN_NS)
    host_ns = np.where(counts, ranges.end_ns - ranges.start_ns, 0)
    if trace.scope is not None:
        host_ns = np.where(counts, trace.scope.measure_within(ranges.start_ns, ranges.end_ns), 0)
        counts = counts & (host_ns > 0)
    gpu_ns = _launched_inside(trace, thread)
    at = np.flatnonzero(counts)
    at = at[np.argsort(thread.range_labels[at], kind="stable")]
    labels = thread.range_labels[at]
    for first, stop in nesting.runs_of_equal(labels):
        of = at[first:stop]
        pattern = thread.range_patterns[int(labels[first])]
        yield pattern, host_ns[of].astype(np.float64), gpu_ns[of], ranges.start_ns[of]


def _launched_inside(trace: Trace, thread: HostThread) -> Values:
    """For each range that is the outermost of its pattern, the sum of the operations that its thread launched in it."""
    total_ns = np.zeros(len(thread.ranges))
    itself, above = nesting.parents_among(thread.outermost, thread.parents)
    for device in trace.devices:
        ops = _launched_by(device, thread)
        launch_ns = device.calls.start_ns[device.launch[ops]]
        spent_ns = device.window.measure_within(device.ops.start_ns[ops], device.ops.end_ns[ops])
        innermost = nesting.innermost_at(launch_ns, thread.ranges.start_ns, thread.ranges.end_ns, thread.parents)
        at = np.where(innermost >= 0, itself[innermost], -1)
        for _ in range(MOST_NAMES_AROUND):
            at, spent_ns = at[at >= 0], spent_ns[at >= 0]
            if not len(at):
                break
            total_ns += np.bincount(at, spent_ns, len(total_ns))
            at = above[at]
    return total_ns


def _launched_by(device: DeviceTimeline, thread: HostThread) -> NDArray[np.int64]:
    known = np.flatnonzero(device.launch != gpu_work.NONE)
    return np.asarray(known[device.calls.thread_id[device.launch[known]] == thread.thread_id])
