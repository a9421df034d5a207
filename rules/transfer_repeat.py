"""Copies that may carry the same data again."""

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
from diag.timeline.link_copies import LARGE_BYTES
from diag.timeline.trace import Trace

H2D = gpu_work.COPY_KINDS.index("h2d")
D2H = gpu_work.COPY_KINDS.index("d2h")


@device_rule("transfer.duplicate")
def duplicate_copies(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Copies of one size go to the device again and again.

    Asks      Is the same data copied to the device more than once?
    Decides   A trace shows sizes, not contents or addresses, so this is a suspicion and never more than information.
              Copies to the device of exactly the same size, of 1 MiB or more, count as one group. Fires when a group
              has `fewest` copies and those that no kernel hides take `share` of the window.
    Matters   Weights, tables and constants can stay on the device; a batch is new each time and cannot.
    Do        Look where they are made. Keep on the device what does not change; copy what changes in part in part.
    Refute    The contents differ (hash the buffers before copying): then it is new data of one shape.
    """
    large = (device.ops.copy_kind == H2D) & (device.ops.kind == gpu_work.COPY) & (device.ops.bytes >= LARGE_BYTES)
    group = _longest_group(device, large, limits["fewest"])
    exposed = device.time_of(group) - device.kernel_time
    share = device.share(exposed)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    size = int(device.ops.bytes[group][0])
    n_back = int(((device.ops.copy_kind == D2H) & (device.ops.bytes == size)).sum())
    rows = queries.operations(device, _COLUMNS, "kind = 'copy'", f"bytes = {size:d}")
    copies = units.count(int(group.sum()), "copy")
    yield Finding(
        title=f"Possibly the same data again: {copies} of {units.size(size)} to the device",
        claim=f"{copies} to the device have exactly {size:,} bytes each; {units.time(exposed.measure_ns)} of them "
        f"({units.share(share)} of the window) no kernel hides. The trace cannot show whether their contents are the "
        "same.",
        subject=subject_of(device),
        share=share,
        confidence="low",
        level="info",
        counterfactual="If the contents are the same, all but the first copy could go; if each is a new batch, none.",
        evidence=[
            Evidence("copies of this size", int(group.sum()), "count", "host→device, equal bytes", rows),
            Evidence("bytes of one", size, "bytes", "exactly"),
            Evidence("not hidden by kernels", exposed.measure_ns, "ns", "union of these copies - union of kernels"),
            Evidence("copies back of the same size", n_back, "count", "device→host, equal bytes: data that is swapped"),
        ],
        refute="The contents differ (hash the buffers before copying): then it is new data of one shape.",
        next=["Find where they are made (nsys profile --cudabacktrace=memory) and keep there what does not change."],
        extent=exposed,
    )


def _longest_group(device: DeviceTimeline, selection: NDArray[np.bool_], fewest: float) -> NDArray[np.bool_]:
    """The selected copies of that size, among those with at least `fewest` copies, which took longest."""
    sizes, place, counts = np.unique(device.ops.bytes[selection], return_inverse=True, return_counts=True)
    total_ns = np.bincount(place, device.ops.duration_ns[selection], len(sizes)) * (counts >= fewest)
    if not total_ns.any():
        return np.zeros(len(device.ops), bool)
    return np.asarray(selection & (device.ops.bytes == sizes[np.argmax(total_ns)]))


_COLUMNS = "copy_kind, src_memory, dst_memory, stream, bytes, start_ns, end_ns"
