"""How launching keeps up with the device: too slow, or ahead of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace


@device_rule("launch.bound", needs=("api",))
def launch_bound(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """The device outruns the host that launches its work.

    Asks      Does the device wait, launch after launch, for the next small operation?
    Decides   An operation found its queue empty if its launching call began after all earlier operations had ended.
              Fires when that holds for `empty_queue_share` of the launched operations, the median kernel is shorter
              than the median time between two launches, and the gaps paced by launching (host late or launch latency,
              no longer than `paced_ratio` x that time) take `share` of the window.
    Matters   Each launch costs the host some microseconds; kernels shorter than that leave the device idle.
    Do        Replay the sequence as a CUDA graph, compile it (torch.compile, fused kernels), use larger batches, and
              keep Python work off the launching thread.
    Refute    Replay the same kernels as one CUDA graph: if the time per step stays, launching was not the limit.
    """
    launched = device.launch != gpu_work.NONE
    if not launched.any():
        yield CannotTell(subject_of(device), "no operation in the window has a launching call in the trace")
        return
    empty = float(_found_empty_queue(device)[launched].mean())
    period_ns = median_launch_period_ns(device)
    paced = _paced_gaps(trace, device, limits["paced_ratio"] * period_ns)
    share = device.share(paced)
    kernels = device.ops.select(device.ops.kind == gpu_work.KERNEL)
    median_ns = int(np.median(kernels.duration_ns)) if len(kernels) else 0
    if empty < limits["empty_queue_share"] or share < limits["share"] or median_ns >= period_ns:
        yield Clear(subject_of(device))
        return
    yield Finding(
        title="Launch-bound: the device finishes before the host has launched the next operation",
        claim=f"{units.share(empty)} of the launched operations found the queue empty. The host launches one every "
        f"{units.time(period_ns)} (median), a kernel takes {units.time(median_ns)}; the gaps in between add up to "
        f"{units.time(paced.measure_ns)} ({units.share(share)} of the window).",
        subject=subject_of(device),
        share=share,
        recoverable_ns=paced.measure_ns,
        counterfactual=f"With launches that cost nothing the window would be at most {units.time(paced.measure_ns)} "
        "shorter.",
        evidence=[
            Evidence(
                "launches into an empty queue", empty, "share", "launching call's start >= end of all earlier work"
            ),
            Evidence(
                "time between launches", period_ns, "ns", "median difference of launching calls' starts, per thread"
            ),
            Evidence("kernel duration", median_ns, "ns", "median"),
            Evidence("gaps paced by launching", paced.measure_ns, "ns", "host late or launch latency, short gaps only"),
        ],
        refute="Replay the same kernels as one CUDA graph: if the time per step stays, launching was not the limit.",
        next=[
            "Capture the repeated sequence as a CUDA graph, or compile it (torch.compile(mode='reduce-overhead')).",
            "Use larger batches or fused kernels, so that each launch carries more work.",
        ],
        extent=paced,
    )


@device_rule("launch.back_pressure", needs=("api",))
def back_pressure(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """The host is ahead of the device.

    Asks      Is the queue of the device full, so that the host waits to launch and not the other way round?
    Decides   Fires when the driver reported a full command buffer, or when `queued_share` of the operations were
              launched while earlier work of the device was still running; in both cases only while host-late idle time
              stays below `late_share` of the window.
    Matters   It is good news about the host: making its code faster cannot make this run faster.
    Do        Look at what the device itself does: copies, kernels, their order.
    Refute    Delay the host a little (a microsecond per launch): if the run gets slower, it was not ahead.
    """
    launched = device.launch != gpu_work.NONE
    full = trace.overhead_of(device.process_id, "command buffer full")
    if not launched.any() and not full:
        yield CannotTell(subject_of(device), "no operation in the window has a launching call in the trace")
        return
    queued = float(_was_queued(device)[launched].mean()) if launched.any() else 0.0
    late = device.share(trace.idle_of(device).host_late)
    if late >= limits["late_share"] or (not full and queued < limits["queued_share"]):
        yield Clear(subject_of(device))
        return
    n_full = trace.overhead_count(device.process_id, "command buffer full")
    full_text = (
        f" The driver reported a full command buffer {units.count(n_full, 'time')} "
        f"({units.time(full.measure_ns)} of waiting to launch)."
        if full
        else ""
    )
    yield Finding(
        title="The host is ahead of the device: not CPU-bound",
        claim=f"{units.share(queued)} of the launched operations had to queue behind earlier work.{full_text}",
        subject=subject_of(device),
        level="info",
        confidence="high" if full else "medium",
        counterfactual="A faster host would win nothing here.",
        evidence=[
            Evidence("launched into a busy queue", queued, "share", "launching call's end <= end of all earlier work"),
            Evidence("command buffer full", n_full, "count", "overhead rows of that kind", _FULL),
            Evidence("waiting to launch", full.measure_ns, "ns", "union of those rows"),
        ],
        refute="Delay each launch by a microsecond: if the run gets slower, the host was not ahead.",
        next=["Do not optimise host code for this run; look at the device's copies and kernels."],
    )


def _earlier_end_ns(device: DeviceTimeline) -> NDArray[np.int64]:
    """For each operation, the end of all work that started before it."""
    reach = np.maximum.accumulate(device.ops.end_ns)
    return np.concatenate(([np.iinfo(np.int64).min], reach[:-1]))


def _found_empty_queue(device: DeviceTimeline) -> NDArray[np.bool_]:
    return np.asarray(device.calls.start_ns[device.launch] >= _earlier_end_ns(device))


def _was_queued(device: DeviceTimeline) -> NDArray[np.bool_]:
    return np.asarray(device.calls.end_ns[device.launch] <= _earlier_end_ns(device))


def median_launch_period_ns(device: DeviceTimeline) -> int:
    """Median time between the starts of a thread's consecutive launching calls; 0 with fewer than two."""
    launches = np.unique(device.launch[device.launch != gpu_work.NONE])
    order = launches[np.lexsort((device.calls.start_ns[launches], device.calls.thread_id[launches]))]
    periods = np.diff(device.calls.start_ns[order])[np.diff(device.calls.thread_id[order]) == 0]
    return int(np.median(periods)) if len(periods) else 0


def _paced_gaps(trace: Trace, device: DeviceTimeline, longest_ns: float) -> Intervals:
    account = trace.idle_of(device)
    short = account.idle.lengths_ns <= longest_ns
    gaps = Intervals(account.idle.starts_ns[short], account.idle.ends_ns[short])
    return gaps & (account.host_late | account.launch_latency)


_FULL = "SELECT thread_id, start_ns, end_ns FROM overhead WHERE kind = 'command buffer full'"
