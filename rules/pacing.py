"""How launching paces a device: its distinct launching calls, and the gaps that end when the next one arrives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.timeline import gpu_work
from diag.timeline.device import FEWEST_OPERATIONS, DeviceTimeline
from diag.timeline.graphs import calls_of_graphs
from diag.timeline.intervals import Intervals, Times
from diag.timeline.trace import Trace


@dataclass(frozen=True, eq=False)
class Launches:
    """The distinct launching calls of a device's work in the window, in parallel arrays by thread and start.

    Each is judged by the first operation that it launched.
    """

    call: NDArray[np.int64]  # index into the device's calls
    op: NDArray[np.int64]  # index into the device's operations
    thread_id: NDArray[np.int32]
    part: NDArray[np.int64]  # of the window, which may have several, that the first operation is in
    is_graph: NDArray[np.bool_]
    start_ns: Times
    end_ns: Times
    earlier_end_ns: Times  # of all work that started before its first operation

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def duration_ns(self) -> Times:
        return self.end_ns - self.start_ns

    @cached_property
    def usual_call_ns(self) -> int:
        """Lower quartile of the calls' durations: first launches, which load code, do not count for it."""
        return int(np.percentile(self.duration_ns, 25)) if len(self) else 0

    @property
    def found_empty_queue(self) -> NDArray[np.bool_]:
        return np.asarray(self.start_ns >= self.earlier_end_ns)

    @property
    def was_queued(self) -> NDArray[np.bool_]:
        return np.asarray(self.end_ns <= self.earlier_end_ns)

    @cached_property
    def period_ns(self) -> int:
        """Median time between the starts of a thread's consecutive launches; 0 with fewer than two."""
        follows = (np.diff(self.thread_id) == 0) & (np.diff(self.part) == 0)
        periods = np.diff(self.start_ns)[follows]
        return int(np.median(periods)) if len(periods) else 0


def launches_of(device: DeviceTimeline) -> Launches:
    return device.once("launches", partial(_launches_of, device))


def _launches_of(device: DeviceTimeline) -> Launches:
    reach = np.maximum.accumulate(device.ops.end_ns)
    earlier = np.concatenate(([np.iinfo(np.int64).min], reach[:-1]))
    known = np.flatnonzero(device.launch != gpu_work.NONE)
    call, first = np.unique(device.launch[known], return_index=True)
    calls = device.calls.select(call)
    return Launches(
        call=call,
        op=known[first],
        thread_id=calls.thread_id,
        part=np.searchsorted(device.window.starts_ns, device.ops.start_ns[known[first]], side="right"),
        is_graph=calls_of_graphs(device)[call],
        start_ns=calls.start_ns,
        end_ns=calls.end_ns,
        earlier_end_ns=earlier[known[first]],
    )


def too_few(launches: Launches) -> str:
    return f"{units.count(len(launches), 'launching call')} in the window; {FEWEST_OPERATIONS} are needed"


def paced_gaps(trace: Trace, device: DeviceTimeline, paced_ratio: float) -> tuple[Intervals, float]:
    """Time paced by launching, and the share of its gaps that begin while a launching thread synchronises.

    It is host late or launch latency, outside synchronising calls, in gaps no longer than `paced_ratio` x the usual
    launching call.
    """
    longest_ns = paced_ratio * max(launches_of(device).usual_call_ns, trace.tick_ns)
    account = trace.idle_of(device)
    short = account.idle.lengths_ns <= longest_ns
    gaps = Intervals(account.idle.starts_ns[short], account.idle.ends_ns[short])
    synchronising = Intervals.empty()
    for thread_id in account.host_late_of:
        synchronising = synchronising | trace.threads[thread_id].synchronising
    to_launch = account.host_late | account.launch_latency
    late_gaps = gaps.starts_ns[to_launch.measure_within(gaps.starts_ns, gaps.ends_ns) > 0]
    after_sync = float(synchronising.contains(late_gaps).mean()) if len(late_gaps) else 0.0
    return (gaps & to_launch) - synchronising, after_sync


def ended_by(device: DeviceTimeline, gaps: Intervals, is_call: NDArray[np.bool_]) -> Intervals:
    """Those pieces of idle time whose next operation was launched by one of the chosen calls of the device."""
    next_op = np.searchsorted(device.all_ops.start_ns, gaps.ends_ns, side="left")
    launch = np.append(device.all_launch, gpu_work.NONE)[next_op]
    chosen = np.append(is_call, False)[launch]  # NONE is the last one
    return Intervals(gaps.starts_ns[chosen], gaps.ends_ns[chosen])
