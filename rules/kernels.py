"""Kernels that take much of the time."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.kernel_occupancy import occupancy_by_name
from diag.rules.kernel_profiler import command, is_amd
from diag.rules.tables import kernels_by_name
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.trace import Trace


@device_rule("kernels.hot")
def hot_kernels(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """One kernel takes much of the window.

    Asks      Is there a kernel whose launches together take a large share of the window?
    Decides   share = |union of the launches of one kernel| / window; fires for the largest one at `share`. Whether it
              could be faster a timeline cannot say, so no recoverable time is given. Kernels of communication are left
              out: they may only be waiting for other ranks.
    Matters   By Amdahl's law only what takes time can give time back: this is where a kernel profiler should look.
    Do        Profile this kernel (ncu, rocprof-compute), place it on the roofline; look for a fused or library version.
    Refute    Replace the kernel by an empty one: if the window hardly shrinks, its time was hidden behind other work.
    """
    communication = set(device.ops.name_id[device.is_communication].tolist())
    rows = {name_id: row for name_id, row in kernels_by_name(device).items() if name_id not in communication}
    if not rows:
        yield Clear(subject_of(device))
        return
    profiler = "rocprof-compute" if is_amd(device) else "ncu"
    yield CannotTell(subject_of(device), f"a timeline holds no counters of what a kernel achieves (see {profiler})")
    name_id, top = max(rows.items(), key=lambda item: item[1].share_of_window)
    if top.share_of_window < limits["share"]:
        yield Clear(subject_of(device))
        return
    is_top = (device.ops.kind == gpu_work.KERNEL) & (device.ops.name_id == name_id)
    sql = queries.launches_of_kernel(device, name_id)
    yield Finding(
        title=f"Hot kernel: {top.short_name}",
        claim=f"{top.short_name} takes {units.share(top.share_of_window)} of the window and "
        f"{units.share(top.share_of_kernel_time)} of all kernel time, in {units.count(top.count, 'launch')} of "
        f"{units.time(top.median_ns)} (median).",
        subject=subject_of(device, kernel=top.name),
        share=top.share_of_window,
        level="info",
        counterfactual="How much faster it could be, a timeline cannot tell.",
        evidence=[
            Evidence("launches", top.count, "count", "kernel rows of this name", sql),
            Evidence("total", top.total_ns, "ns", "sum of durations, cut to the window", sql),
            Evidence("median", top.median_ns, "ns", "median duration", sql),
            Evidence("longest", top.max_ns, "ns", "largest duration", sql),
            *_occupancy(trace, device, name_id),
        ],
        refute="Replace the kernel by an empty one: if the window hardly shrinks, its time was hidden.",
        next=[command(device, top.short_name)],
        extent=device.time_of(is_top),
    )


def _occupancy(trace: Trace, device: DeviceTimeline, name_id: int) -> Iterator[Evidence]:
    if known := occupancy_by_name(trace, device).get(name_id):
        formula = f"limited by {' and '.join(known.occupancy.limiters).replace('_', ' ')} (docs/definitions.md)"
        yield Evidence("theoretical occupancy", known.occupancy.theoretical_pct / 100, "share", formula)
