"""Kernels that take much of the time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.tables import kernel_rows
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.trace import Trace


@device_rule("kernels.hot")
def hot_kernels(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """One kernel takes much of the window.

    Asks      Is there a kernel whose launches together take a large share of the window?
    Decides   share = |union of the launches of one kernel| / window; fires for the largest one at `share`. Whether it
              could be faster a timeline cannot say, so no recoverable time is given.
    Matters   By Amdahl's law only what takes time can give time back: this is where Nsight Compute should look.
    Do        Profile this kernel with ncu and place it on the roofline; look for a fused or library version.
    Refute    Replace the kernel by an empty one: if the window hardly shrinks, its time was hidden behind other work.
    """
    rows = kernel_rows(device)
    if not rows:
        yield Clear(subject_of(device))
        return
    yield CannotTell(subject_of(device), "occupancy and headroom of kernels: no counters in a timeline (see ncu)")
    top = max(rows, key=lambda row: row.share_of_window)
    if top.share_of_window < limits["share"]:
        yield Clear(subject_of(device))
        return
    is_top = (device.ops.kind == gpu_work.KERNEL) & (device.ops.name_id == _name_id(device, top.name))
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
            Evidence("launches", top.count, "count", "kernel rows of this name"),
            Evidence("total", top.total_ns, "ns", "sum of durations"),
            Evidence("median", top.median_ns, "ns", "median duration"),
            Evidence("longest", top.max_ns, "ns", "largest duration"),
        ],
        refute="Replace the kernel by an empty one: if the window hardly shrinks, its time was hidden.",
        next=[
            f"ncu --set full --kernel-name regex:{_regex_for(top.short_name)} --launch-count 5 YOUR COMMAND",
        ],
        extent=device.time_of(is_top),
    )


def _name_id(device: DeviceTimeline, name: str) -> int:
    return next(int(i) for i in np.unique(device.ops.name_id) if device.names.get(int(i)) == name)


def _regex_for(short_name: str) -> str:
    """A pattern that is safe to paste into a shell."""
    return re.sub(r"[^0-9A-Za-z_]+", ".", short_name)[:60]
