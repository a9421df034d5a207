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

from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals


@dataclass(frozen=True, eq=False)
class IdleAccount:
    """A partition of a device's idle time."""

    idle: Intervals
    other_process: Intervals
    host_late: Intervals
    host_late_of: Mapping[int, Intervals]  # by thread id
    launch_latency: Intervals
    device_side: Intervals
    not_captured: Intervals

    @cached_property
    def latest_thread(self) -> int | None:
        """The thread that most host-late time belongs to."""
        return max(self.host_late_of, key=lambda thread: self.host_late_of[thread].measure_ns, default=None)


def account_for_idle(device: DeviceTimeline) -> IdleAccount:
    other_process = device.idle & device.others
    gaps = device.idle - other_process
    starts, ends = gaps.starts_ns, gaps.ends_ns
    # By the gap's end: an operation without duration inside the gap does not end it.
    ender = np.searchsorted(device.ops.start_ns, ends, side="left")
    launch = np.append(device.launch, gpu_work.NONE)[ender]
    captured = launch != gpu_work.NONE
    called = np.append(device.calls.start_ns, 0)[launch]
    thread = np.append(device.calls.thread_id, -1)[launch]
    late_until = np.clip(called, starts, ends)
    in_time = captured & (called < starts)
    host_late_of = {
        int(thread_id): Intervals.union_of(starts[mine], late_until[mine])
        for thread_id in np.unique(thread[captured])
        if (mine := captured & (thread == thread_id)).any()
    }
    return IdleAccount(
        idle=device.idle,
        other_process=other_process,
        host_late=Intervals.union_of(starts[captured], late_until[captured]),
        host_late_of=host_late_of,
        launch_latency=Intervals.union_of(late_until[captured & ~in_time], ends[captured & ~in_time]),
        device_side=Intervals.union_of(starts[in_time], ends[in_time]),
        not_captured=Intervals.union_of(starts[~captured], ends[~captured]),
    )
