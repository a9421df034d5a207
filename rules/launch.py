"""How launching keeps up with the device: too slow, or ahead of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.rules import pacing
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.pacing import too_few
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import FEWEST_OPERATIONS, DeviceTimeline
from diag.timeline.trace import Trace


@device_rule("launch.bound", needs=("api",))
def launch_bound(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """The device outruns the host that launches its work.

    Asks      Does the device wait, launch after launch, for the next small operation?
    Decides   A launch found the queue empty if it began after all earlier operations had ended. A gap is paced by
              launching if it is host late or launch latency, outside synchronising calls, and no longer than
              `paced_ratio` x the duration of a usual launching call (lower quartile, so that first launches, which load
              code, do not set it). Fires when `empty_queue_share` of the launches found the queue empty, the median
              kernel is shorter than the median time between launches, and paced gaps take `share` of the window. Nodes
              of a graph count as the one launch that they are.
    Matters   Each launch costs the host some microseconds; kernels shorter than that leave the device idle.
    Do        Replay the sequence as a CUDA graph, compile it (torch.compile, fused kernels), use larger batches, and
              keep Python work off the launching thread.
    Refute    Replay the same kernels as one CUDA graph: if the time per step stays, launching was not the limit.
    """
    launches = pacing.launches_of(device)
    kernels = device.ops.duration_ns[device.ops.kind == gpu_work.KERNEL]
    if len(launches) < FEWEST_OPERATIONS or not len(kernels):
        yield CannotTell(subject_of(device), too_few(launches) if len(kernels) else "only graph launches, no kernels")
        return
    empty = float(launches.found_empty_queue.mean())
    median_ns = int(np.median(kernels))
    paced, after_sync = pacing.paced_gaps(trace, device, limits["paced_ratio"])
    share = device.share(paced)
    if empty < limits["empty_queue_share"] or share < limits["share"] or median_ns >= launches.period_ns:
        yield Clear(subject_of(device))
        return
    rows = _LAUNCHES.format(source=device.source_id, process=device.process_id)
    yield Finding(
        title="Launch-bound: the device finishes before the host has launched the next operation",
        claim=f"{units.share(empty)} of the launches found the queue empty. The host launches one every "
        f"{units.time(launches.period_ns)} (median), a kernel takes {units.time(median_ns)}; the short gaps in between "
        f"add up to {units.time(paced.measure_ns)} ({units.share(share)} of the window).",
        subject=subject_of(device),
        share=share,
        recoverable_ns=paced.measure_ns,
        counterfactual=f"With launches that cost nothing the window would be at most {units.time(paced.measure_ns)} "
        "shorter.",
        evidence=[
            Evidence("launches into an empty queue", empty, "share", "call's start >= end of all earlier work", rows),
            Evidence(
                "time between launches", launches.period_ns, "ns", "median over consecutive calls of a thread", rows
            ),
            Evidence("launching call", launches.usual_call_ns, "ns", "lower quartile of its duration", rows),
            Evidence("kernel", median_ns, "ns", "median duration"),
            Evidence("gaps paced by launching", paced.measure_ns, "ns", "host late or launch latency, short gaps only"),
            Evidence("gaps that begin inside a synchronisation", after_sync, "share", "of the gaps paced by launching"),
        ],
        refute="Replay the same kernels as one CUDA graph: if the time per step stays, launching was not the limit.",
        next=[
            *([_DROP_SYNC.format(share=units.share(after_sync))] if after_sync >= 0.5 else []),
            _MORE_PER_GRAPH if launches.is_graph.mean() >= 0.5 else _USE_GRAPHS,
            "Use larger batches or fused kernels, so that each launch carries more work.",
        ],
        extent=paced,
    )


@device_rule("launch.back_pressure", needs=("api",))
def back_pressure(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """The host is ahead of the device.

    Asks      Is the queue of the device full, so that the host waits to launch and not the other way round?
    Decides   Fires when the driver reported a full command buffer inside the window, or when `queued_share` of the
              launches returned while earlier work of the device was still running; in both cases only while host-late
              idle time stays below `late_share` of the window. Nodes of a graph count as one launch. A full command
              buffer is the process', so it counts only for a device on which a tenth of the launches queued.
    Matters   It is good news about the host: making its code faster cannot make this run faster.
    Do        Look at what the device itself does: copies, kernels, their order.
    Refute    Delay the host a little (a microsecond per launch): if the run gets slower, it was not ahead.
    """
    launches = pacing.launches_of(device)
    reported = trace.overhead_of(device.process_id, "command buffer full")
    queued = float(launches.was_queued.mean()) if len(launches) else 0.0
    # The rows are those of the process: on a device where nothing queues they speak of another one.
    n_full = (
        int((device.window.measure_within(reported.start_ns, reported.end_ns) > 0).sum())
        if queued >= LEAST_QUEUED
        else 0
    )
    if len(launches) < FEWEST_OPERATIONS and not n_full:
        yield CannotTell(subject_of(device), too_few(launches))
        return
    full = reported.union() & device.window
    late = device.share(trace.idle_of(device).host_late)
    if late >= limits["late_share"] or (not n_full and queued < limits["queued_share"]):
        yield Clear(subject_of(device))
        return
    said = (
        f" The driver reported a full command buffer {units.count(n_full, 'time')} in this process "
        f"({units.time(full.measure_ns)} of waiting to launch)."
    )
    rows = _LAUNCHES.format(source=device.source_id, process=device.process_id)
    full_rows = _FULL.format(source=device.source_id, process=device.process_id)
    yield Finding(
        title="The host is ahead of the device: not CPU-bound",
        claim=f"{units.share(queued)} of the launches had to queue behind earlier work.{said if n_full else ''}",
        subject=subject_of(device),
        level="info",
        confidence="high" if n_full and queued >= limits["queued_share"] else "medium",
        counterfactual="A faster host would win nothing here.",
        evidence=[
            Evidence("launches into a busy queue", queued, "share", "call's end <= end of all earlier work", rows),
            Evidence("command buffer full", n_full, "count", "overhead rows of the process in the window", full_rows),
            Evidence("waiting to launch", full.measure_ns, "ns", "union of those rows", full_rows),
        ],
        refute="Delay each launch by a microsecond: if the run gets slower, the host was not ahead.",
        next=["Do not optimise host code for this run; look at the device's copies and kernels."],
    )


LEAST_QUEUED = 0.1

_USE_GRAPHS = (
    "Capture the repeated sequence as a CUDA graph, or compile it (torch.compile(mode='reduce-overhead')); "
    "graph.coverage tells what a graph could win and what stands in its way."
)
_MORE_PER_GRAPH = "Put more of the work, or several steps, into one graph: each graph launch carries too little."
_DROP_SYNC = (
    "Drop the synchronisation first: {share} of these gaps begin while the host still waits for the device, "
    "so nothing is queued behind."
)


_LAUNCHES = (
    "SELECT n.text, a.thread_id, a.start_ns, a.end_ns, g.start_ns AS op_start_ns FROM gpu_op g "
    "JOIN api_call a ON a.correlation = g.correlation JOIN thread t ON t.id = a.thread_id "
    "AND t.process_id = g.process_id JOIN name n ON n.id = a.name_id "
    "WHERE g.source_id = {source} AND g.process_id = {process} ORDER BY a.start_ns"
)
_FULL = (
    "SELECT o.thread_id, o.start_ns, o.end_ns FROM overhead o JOIN thread t ON t.id = o.thread_id "
    "WHERE o.kind = 'command buffer full' AND o.source_id = {source} AND t.process_id = {process}"
)
