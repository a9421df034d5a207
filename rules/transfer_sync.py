"""Copies whose calls keep the launching thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import GpuOps
from diag.timeline.host import SYNCHRONISING_CALL
from diag.timeline.idle import idle_inside
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace

SCALAR_BYTES = 64
"""A copy to the host of no more than this is a value that the program looks at (`.item()`), not data."""


@device_rule("transfer.synchronous", needs=("api",))
def synchronous_copies(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Copies block the thread that launches the work.

    Asks      How long does the device idle while the launching thread is inside a copy that does not return at once?
    Decides   A copy blocks when its call has no Async in its name, and with it when the copy writes pageable memory, or
              reads more than 64 KB of it (CUDA Runtime API, "API synchronization behavior"). Lost = the idle time of
              the device in which the thread that it waited for was inside such a call: late with the next launch, or
              staging what the device waits for. Fires at `share` of the window.
    Matters   Until the call returns nothing is launched behind the copy: the device runs dry after each one.
    Do        Pin the memory and copy with cudaMemcpyAsync (`non_blocking=True`), launch what comes next, and wait for
              an event only where the data is used; read results a step later, many at once.
    Refute    Make the copies asynchronous, from pinned memory, for one run: if the device idles as long, the thread
              had nothing to launch.
    """
    blocking = _blocking_copies(device)
    calls = np.zeros(len(device.calls), bool)
    calls[device.launch[blocking]] = True
    lost = idle_inside(trace.idle_of(device), device.calls, calls)
    share = device.share(lost)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    inside = Intervals.union_of(device.calls.start_ns[calls], device.calls.end_ns[calls]) & device.window
    n_scalars = int((device.ops.bytes[blocking] <= SCALAR_BYTES).sum())
    names = [device.names[name_id] for name_id in _most_frequent(device.calls.name_id[calls])]
    yield Finding(
        title=f"Copies block the launching thread ({names[0]})",
        claim=f"{units.count(int(calls.sum()), 'call')} of {', '.join(names[:2])} copied between host and device and "
        f"returned only when that was done; the device idled for {units.time(lost.measure_ns)} "
        f"({units.share(share)} of the window) meanwhile.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=lost.measure_ns,
        confidence="medium",
        counterfactual=f"With copies that return at once the device could be fed meanwhile: "
        f"{units.time(lost.measure_ns)} at most.",
        evidence=list(_evidence(trace, device, device.ops.select(blocking), inside, lost)),
        refute="Make them asynchronous, from pinned memory, for one run: if the device idles as long, the thread had "
        "nothing to launch.",
        next=[
            *([_SCALARS.format(n=f"{n_scalars:,}")] if 2 * n_scalars >= len(blocking) else []),
            "Pin the buffers and copy with cudaMemcpyAsync (`pin_memory=True`, `non_blocking=True`).",
            "Launch the next step before waiting for the copy; wait for an event where the data is used.",
        ],
        extent=lost,
    )


def _blocking_copies(device: DeviceTimeline) -> NDArray[np.intp]:
    """Indices of the copies whose call was captured and returned only when the host's side was done."""
    copies = np.flatnonzero((device.ops.kind == gpu_work.COPY) & (device.launch != gpu_work.NONE))
    names = device.calls.name_id[device.launch[copies]]
    by_name = [i for i in np.unique(names).tolist() if SYNCHRONISING_CALL.search(device.names[i])]
    return copies[np.isin(names, by_name) | device.ops.select(copies).blocks_host]


def _most_frequent(ids: NDArray[np.int32]) -> list[int]:
    names, counts = np.unique(ids, return_counts=True)
    return [int(name) for name in names[np.argsort(-counts, kind="stable")]]


def _evidence(
    trace: Trace, device: DeviceTimeline, copies: GpuOps, inside: Intervals, lost: Intervals
) -> Iterator[Evidence]:
    rows = queries.operations(device, _COLUMNS, "kind = 'copy'")
    drained = Intervals.empty()
    for thread_id, late in trace.idle_of(device).host_late_of.items():
        drained = drained | (late & trace.threads[thread_id].synchronising)
    yield Evidence("blocking copies", len(copies), "count", "by name, or of pageable memory", rows)
    yield Evidence("bytes of one", int(np.median(copies.bytes)), "bytes", "median")
    yield Evidence("host inside these calls", inside.measure_ns, "ns", "union of the calls, cut to the window")
    yield Evidence(
        "device copying meanwhile", (copies.union() & inside).measure_ns, "ns", "union of the copies in that time"
    )
    yield Evidence("device idle meanwhile", lost.measure_ns, "ns", "host late or launch latency, inside these calls")
    yield Evidence("of it in sync.drain as well", (lost & drained).measure_ns, "ns", "host late inside any wait")


_SCALARS = (
    "{n} of them move single values (`.item()`, `.cpu()`, a comparison, a print): keep them on the device, or read "
    "them once in many steps."
)
_COLUMNS = "copy_kind, src_memory, dst_memory, stream, bytes, start_ns, end_ns, correlation"
