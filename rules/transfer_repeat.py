"""Copies that may carry the same data again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals
from diag.timeline.link_copies import LinkCopies, copies_by_direction
from diag.timeline.trace import Trace


@device_rule("transfer.duplicate")
def duplicate_copies(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Copies of one size go to the device again and again.

    Asks      Is the same data copied to the device more than once?
    Decides   A trace shows sizes, not contents or addresses, so this is a suspicion and never more than information.
              Copies to the device of exactly the same size, of 1 MiB or more, count as one group. Fires when a group
              has `fewest` copies and those that no kernel hides take `share` of the window.
    Matters   Weights, tables and constants can stay on the device; a batch is new each time and cannot.
    Do        Look where they are made. Keep on the device what does not change; where a part changes, copy that part.
    Refute    The contents differ (hash the buffers before copying): then it is new data of one shape.
    """
    by_direction = {copies.direction: copies for copies in copies_by_direction(device)}
    group = _longest_group(by_direction.get("host→device"), limits["fewest"])
    exposed = Intervals.empty() if group is None else group.time - device.kernel_time
    share = device.share(exposed)
    if group is None or share < limits["share"]:
        yield Clear(subject_of(device))
        return
    size = int(group.ops.bytes[0])
    back = by_direction.get("device→host")
    n_back = 0 if back is None else int((back.ops.bytes == size).sum())
    rows = queries.operations(device, _COLUMNS, "kind = 'copy'", f"bytes = {size:d}")
    copies = units.count(len(group), "copy")
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
            Evidence("copies of this size", len(group), "count", "host→device, equal bytes", rows),
            Evidence("bytes of one", size, "bytes", "exactly"),
            Evidence("not hidden by kernels", exposed.measure_ns, "ns", "union of these copies - union of kernels"),
            Evidence("copies back of the same size", n_back, "count", "device→host, equal bytes: data that is swapped"),
        ],
        refute="The contents differ (hash the buffers before copying): then it is new data of one shape.",
        next=[
            "Find where they are made: nsys profile --cudabacktrace=memory.",
            "Keep on the device what does not change; where a part changes, copy that part.",
        ],
        extent=exposed,
    )


def _longest_group(copies: LinkCopies | None, fewest: float) -> LinkCopies | None:
    """The large copies of that size, among those with at least `fewest` copies, which took longest."""
    if copies is None:
        return None
    large = copies.large
    sizes, place, counts = np.unique(large.ops.bytes, return_inverse=True, return_counts=True)
    total_ns = np.bincount(place, large.ops.duration_ns, len(sizes)) * (counts >= fewest)
    return large.select(large.ops.bytes == sizes[np.argmax(total_ns)]) if total_ns.any() else None


_COLUMNS = "copy_kind, src_memory, dst_memory, stream, bytes, start_ns, end_ns"
