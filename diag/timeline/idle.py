"""Why a device was idle: every idle nanosecond gets exactly one cause.

For a gap `[e, s)` ended by operation k, launched by call L on thread T (docs/definitions.md):
`[e, min(L.start, s))` is *host late* and belongs to T; the rest is *launch latency* if L started at or after e, else
*device side*. Without L the gap is *not captured*. Work of another process on the hardware is not idle time at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import Calls
from diag.timeline.intervals import Intervals, Times, union_of_all


@dataclass(frozen=True, eq=False)
class IdleAccount:
    """A partition of a device's idle time, cut to its window."""

    other_process: Intervals
    host_late_of: Mapping[int, Intervals]  # by the id of the thread that launched too late
    launch_latency: Intervals
    device_side: Intervals
    not_captured: Intervals

    @cached_property
    def host_late(self) -> Intervals:
        return union_of_all(self.host_late_of.values())

    @cached_property
    def idle(self) -> Intervals:
        """Time in which nobody used the hardware, as far as known: all parts but that of another process."""
        return union_of_all((self.host_late, self.launch_latency, self.device_side, self.not_captured))

    @cached_property
    def latest_thread(self) -> int | None:
        """The thread that most host-late time belongs to."""
        return max(self.host_late_of, key=lambda thread: self.host_late_of[thread].measure_ns, default=None)


def account_for_idle(device: DeviceTimeline) -> IdleAccount:
    """Gaps are those of all the device's work; a part of a trace cuts the answer, not what caused what."""
    idle = device.all_ops.union().gaps(int(device.all_ops.start_ns[0]), int(device.all_ops.end_ns.max()))
    gaps = idle - device.others
    starts, ends = gaps.starts_ns, gaps.ends_ns
    # By the gap's end: an operation without duration inside the gap does not end it.
    ender = np.searchsorted(device.all_ops.start_ns, ends, side="left")
    launch = np.append(device.all_launch, gpu_work.NONE)[ender]
    captured = launch != gpu_work.NONE
    called = np.append(device.calls.start_ns, 0)[launch]
    thread = np.append(device.calls.thread_id, -1)[launch]
    late_until = np.clip(called, starts, ends)
    in_time = captured & (called < starts)

    def part(which: NDArray[np.bool_], from_ns: Times, to_ns: Times) -> Intervals:
        return Intervals.union_of(from_ns[which], to_ns[which]) & device.window

    host_late_of = {
        thread_id: part(captured & (thread == thread_id), starts, late_until)
        for thread_id in np.unique(thread[captured]).tolist()
    }
    return IdleAccount(
        other_process=idle & device.others & device.window,
        host_late_of={thread_id: late for thread_id, late in host_late_of.items() if late},
        launch_latency=part(captured & ~in_time, late_until, ends),
        device_side=part(in_time, starts, ends),
        not_captured=part(~captured, starts, ends),
    )


def idle_inside(account: IdleAccount, calls: Calls, chosen: NDArray[np.bool_]) -> Intervals:
    """Idle time in which the thread that the device waited for was inside one of the chosen calls.

    The chosen calls made the thread late, or had just launched what the device waited for (launch latency).
    """
    if not chosen.any():
        return Intervals.empty()
    inside = union_of_all(
        late & _time_inside(calls.select(chosen & (calls.thread_id == thread_id)))
        for thread_id, late in account.host_late_of.items()
    )
    return inside | (account.launch_latency & _time_inside(calls.select(chosen)))


def _time_inside(calls: Calls) -> Intervals:
    return Intervals.union_of(calls.start_ns, calls.end_ns)
