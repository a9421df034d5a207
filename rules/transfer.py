"""Copies between host and device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from diag.model import hardware, units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import Copies, DeviceTimeline
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace

_DIRECTIONS = {"h2d": "host→device", "d2h": "device→host", "unified h2d": "unified host→device"}

FEWEST_BYTES_FOR_A_RATE = 1 << 20
"""Copies of less than 1 MiB in total take what it costs to start them: their rate says nothing about the link."""


@device_rule("transfer.bound")
def transfer_bound(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Copies over the link take the time.

    Asks      What share of the window is spent copying between host and device with no kernel running meanwhile?
    Decides   exposed = union(copies between host and device) - union(kernels); fires at `share` of the window.
              If as much is still copied, perfect overlap with kernels can hide at most min(exposed, kernels that no
              such copy overlaps); copying less can win more.
              Device-to-device copies are memory traffic and never counted here.
    Matters   The link between host and device is some fifty times slower than device memory.
    Do        Move less (keep data on the device, smaller types), move it once, and overlap what remains with kernels
              (own stream, pinned memory, one step ahead).
    Refute    Skip the copies for one run (reuse what is on the device): if the window stays as long, they were hidden.
    """
    link_copies = [group for group in device.copies if group.crosses_link]
    if not link_copies:
        yield Clear(subject_of(device))
        return
    exposed = device.exposed_link_copies
    share = device.share(exposed)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    top = link_copies[0]
    overlap_ns = min(exposed.measure_ns, (device.kernel_time - device.link_copy_time).measure_ns)
    yield Finding(
        title=f"{_bound(share)}: {_describe(top)} at {units.rate(top.bytes, top.busy_ns)}",
        claim=f"{units.share(share)} of the window ({units.time(exposed.measure_ns)} of "
        f"{units.time(device.window_ns)}) copies between host and device while no kernel runs"
        f"{_above_all(link_copies)} {units.count(top.count, 'copy')} {_describe(top)}, {units.size(top.bytes)} at "
        f"{units.rate(top.bytes, top.busy_ns)}{_of_link(device, top)}. Kernels take "
        f"{units.time(device.kernel_time.measure_ns)}{_same_stream(device)}.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=overlap_ns,
        counterfactual=f"If as much is still copied, perfect overlap with the kernels would win "
        f"{units.time(overlap_ns)} at most (the copies alone take {units.time(device.link_copy_time.measure_ns)}); "
        "copying less can win more.",
        evidence=[*_copy_evidence(device), *_overlap_evidence(device, exposed, overlap_ns)],
        refute="Skip the copies for one run (reuse what is on the device): if the window stays, they were hidden.",
        next=[
            f"Move less: keep on the device what is copied again and again ({units.size(top.bytes)} in this window), "
            "or use a smaller type.",
            "Copy on a stream of its own, from pinned memory, one step ahead of the kernels that need the data.",
        ],
        extent=exposed,
    )


@device_rule("transfer.pageable", needs=("memory_kind",))
def pageable_copies(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Host copies that the driver must stage because their memory is pageable.

    Asks      What share of the window is busy with copies from or to pageable host memory?
    Decides   share = |union of those copies| / window; fires at `share`. What pinning could win is their time less the
              same bytes at the rate of this trace's own pinned copies in that direction, without any at the full rate
              of the product's link. Where neither is known the bound is all their time; typically it is about
              half (CUDA C++ Best Practices Guide, 10.1.1: pinned copies reach about twice the rate).
    Matters   A pageable copy goes through a staging buffer, cannot overlap with kernels and blocks the calling thread.
    Do        Pin the buffers (`pin_memory=True`, `cudaHostAlloc`), copy with `non_blocking=True`, reuse them.
    Refute    The same copies after pinning take as long: then the link, not staging, was the limit.
    """
    is_pageable = (device.ops.src_memory == gpu_work.PAGEABLE) | (device.ops.dst_memory == gpu_work.PAGEABLE)
    is_pageable &= device.ops.kind == gpu_work.COPY
    time = device.time_of(is_pageable)
    share = device.share(time)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    groups = [group for group in device.copies if "pageable" in (group.src, group.dst)]
    n_bytes = sum(group.bytes for group in groups)
    saved_ns = min(time.measure_ns, sum(_won_by_pinning_ns(device, group) for group in groups))
    typically = "" if all(_pinned_like(device, group) for group in groups) else ", typically about half of their time"
    yield Finding(
        title=f"Pageable host memory: {units.count(int(is_pageable.sum()), 'copy')} must be staged",
        claim=f"{units.share(share)} of the window ({units.time(time.measure_ns)}) goes to "
        f"{units.count(int(is_pageable.sum()), 'copy')} from or to pageable host memory ({units.size(n_bytes)} at "
        f"{units.rate(n_bytes, time.measure_ns)}).",
        subject=subject_of(device),
        share=share,
        recoverable_ns=saved_ns,
        confidence="medium",
        counterfactual=f"Pinned memory would win {units.time(saved_ns)} at most{typically}, and lets copies overlap.",
        evidence=[*(_evidence_of(group, device) for group in groups), *_blocked_evidence(device, is_pageable)],
        refute="The same copies after pinning take as long: then the link, not staging, was the limit.",
        next=[
            *([_NO_COPY] if hardware.is_integrated(device.hardware) else []),
            "Pin the buffers (`pin_memory=True`, `cudaHostAlloc`) and reuse them; copy with `non_blocking=True`.",
        ],
        extent=time,
    )


def _pinned_like(device: DeviceTimeline, pageable: Copies) -> Copies | None:
    """The trace's own pinned copies in the same direction, if they are enough for a rate."""
    pinned = (g for g in device.copies if g.kind == pageable.kind and "pinned" in (g.src, g.dst))
    return next((group for group in pinned if group.bytes >= FEWEST_BYTES_FOR_A_RATE), None)


def _won_by_pinning_ns(device: DeviceTimeline, pageable: Copies) -> int:
    """At most: without pinned copies to compare with, and a link whose rate is known, all the time of the copies."""
    if pinned := _pinned_like(device, pageable):
        return max(0, int(pageable.busy_ns - pageable.bytes * pinned.busy_ns / pinned.bytes))
    share_of_link = _link_share(device, pageable)
    return pageable.busy_ns if share_of_link is None else int(pageable.busy_ns * (1 - share_of_link))


def _blocked_evidence(device: DeviceTimeline, is_pageable: NDArray[np.bool_]) -> Iterator[Evidence]:
    """A pageable copy keeps its thread inside the call, be it an asynchronous one, until the data is staged."""
    calls = device.launch[is_pageable & (device.launch != gpu_work.NONE)]
    blocked = Intervals.union_of(device.calls.start_ns[calls], device.calls.end_ns[calls]) & device.window
    if blocked:
        formula = "union of the calls that launched these copies, cut to the window"
        yield Evidence("host blocked in the launching calls", blocked.measure_ns, "ns", formula)


def _bound(share: float) -> str:
    """What takes less than half of the window does not bound it."""
    return "Transfer-bound" if 2 * share >= 1 else "Exposed copies"


def _above_all(groups: Sequence[Copies]) -> str:
    """The first group stands for all where the others take next to nothing."""
    others_ns = sum(group.busy_ns for group in groups[1:])
    return ", above all in" if 100 * others_ns >= groups[0].busy_ns else ":"


def _describe(copies: Copies) -> str:
    host_memory = copies.src if copies.kind.endswith("h2d") else copies.dst
    return f"{host_memory} {_DIRECTIONS.get(copies.kind, copies.kind)}"


def _link_share(device: DeviceTimeline, copies: Copies) -> float | None:
    """None where the link is not known, or is not the one that the product has by its datasheet: it would be faster."""
    link = hardware.host_link(device.hardware)
    share = copies.bytes * 1e9 / copies.busy_ns / link.bytes_per_s if link and copies.busy_ns else None
    return share if share is not None and share <= 1 else None


def _of_link(device: DeviceTimeline, copies: Copies) -> str:
    share = _link_share(device, copies)
    return "" if share is None else f" ({units.share(share)} of what the link carries)"


def _same_stream(device: DeviceTimeline) -> str:
    is_copy = (device.ops.kind == gpu_work.COPY) & np.isin(device.ops.copy_kind, gpu_work.LINK_COPY_KINDS)
    copy_streams = set(device.ops.stream[is_copy].tolist())
    kernel_streams = set(device.ops.stream[device.ops.kind == gpu_work.KERNEL].tolist())
    overlapped = device.link_copy_time & device.kernel_time
    if len(copy_streams | kernel_streams) == 1 and not overlapped:
        return f", all on stream {next(iter(copy_streams))}, without overlap"
    return f", {units.time(overlapped.measure_ns)} of them overlapped" if overlapped else ", without overlap"


def _copy_evidence(device: DeviceTimeline) -> Iterator[Evidence]:
    for group in device.copies:
        yield _evidence_of(group, device)
        if group.crosses_link and group.bytes >= FEWEST_BYTES_FOR_A_RATE:
            label = f"rate {group.kind} {group.src}→{group.dst}"
            yield Evidence(label, group.bytes * 1e9 / group.busy_ns, "bytes/s", "bytes / union of the copies")
            if (share := _link_share(device, group)) is not None:
                formula = f"rate / rate of the link of {device.hardware} in one direction"
                yield Evidence(f"share of the link {group.kind} {group.src}→{group.dst}", share, "share", formula)


def _evidence_of(group: Copies, device: DeviceTimeline) -> Evidence:
    return Evidence(
        f"{group.kind} {group.src}→{group.dst}, {units.count(group.count, 'copy')}",
        group.busy_ns,
        "ns",
        "union of the copies, cut to the window",
        queries.operations(device, _COPY_COLUMNS, "kind = 'copy'"),
    )


def _overlap_evidence(device: DeviceTimeline, exposed: Intervals, overlap_ns: int) -> Iterator[Evidence]:
    yield Evidence("exposed copies", exposed.measure_ns, "ns", "union of link copies - union of kernels")
    yield Evidence("kernels", device.kernel_time.measure_ns, "ns", "union of kernels")
    yield Evidence("won by perfect overlap", overlap_ns, "ns", "min(exposed copies, kernels outside link copies)")


_NO_COPY = (
    "Host and device share this memory: map the buffers (cudaHostAlloc with cudaHostAllocMapped, cudaMallocManaged) "
    "and copy nothing."
)
_COPY_COLUMNS = "copy_kind, src_memory, dst_memory, stream, bytes, start_ns, end_ns"
