"""Copies so small that starting them takes longer than moving their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import FEWEST_OPERATIONS, DeviceTimeline
from diag.timeline.idle import idle_inside
from diag.timeline.intervals import Intervals
from diag.timeline.link_copies import LinkCopies, copies_by_direction
from diag.timeline.trace import Trace

SMALL_BYTES = 16 << 10
"""16 KiB cross a PCIe 3.0 link of 16 lanes in a microsecond, which is about what it takes to start a copy."""


@device_rule("transfer.tiny")
def tiny_copies(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Many small copies.

    Asks      How much time goes to copies between host and device that are too small to use the link?
    Decides   Small copies are those of up to 16 KiB, ten of one direction at least; where the trace has copies of 1 MiB
              or more in the same direction, only if the small ones reach no more than `rate_ratio` of their rate.
              Time = (union of the small copies - union of kernels), and the idle time of the device in which the
              launching thread was inside a call that launched one and did not have to wait for it. Fires at `share` of
              the window. What could be won is that time less their bytes at the rate of the large copies.
    Matters   Every copy costs a call on the host and a start on the device, whatever its size (CUDA C++ Best
              Practices Guide, 10.1: batch many small transfers into one).
    Do        Gather on the host (one pinned buffer, one copy), pass scalars as kernel arguments, keep small tables on
              the device, capture the copies in a CUDA graph.
    Refute    Pack them into one copy for one run: if the window stays as long, they were hidden.
    """
    slow = [part for copies in copies_by_direction(device) if (part := _small_part(copies, limits["rate_ratio"]))]
    lost = _lost_to(trace, device, slow)
    share = device.share(lost)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    n_copies = sum(len(part.copies) for part in slow)
    moving_ns = int(sum(part.copies.bytes * 1e9 / part.large_bytes_per_s for part in slow if part.large_bytes_per_s))
    won_ns = max(0, lost.measure_ns - moving_ns)
    top = max(slow, key=lambda part: len(part.copies))
    yield Finding(
        title=f"{units.count(n_copies, 'small copy')} between host and device",
        claim=f"{units.count(len(top.copies), 'copy')} {top.name}, of {units.size(top.copies.median_bytes)} (median), "
        f"take {units.time(top.median_ns)} each (median); with the calls that the device waits for, small copies take "
        f"{units.time(lost.measure_ns)} ({units.share(share)} of the window) that no kernel hides.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=won_ns,
        confidence="medium",
        counterfactual=f"Gathered into a few large copies, or hidden, they would win {units.time(won_ns)} at most.",
        evidence=[evidence for part in slow for evidence in part.evidence()],
        refute="Pack them into one copy for one run: if the window stays as long, they were hidden.",
        next=[
            "Gather them into one pinned buffer and copy once per step; pass scalars as kernel arguments.",
            "Replay them as part of a CUDA graph, if their number cannot be helped.",
        ],
        extent=lost,
    )


@dataclass(frozen=True, eq=False)
class _SmallPart:
    """The small copies of one direction."""

    copies: LinkCopies
    large_bytes_per_s: float | None  # of the same direction; None without large copies

    @property
    def name(self) -> str:
        return self.copies.direction

    @property
    def median_ns(self) -> int:
        return int(np.median(self.copies.ops.duration_ns))

    def evidence(self) -> Iterator[Evidence]:
        rows = queries.operations(self.copies.device, _COLUMNS, "kind = 'copy'", f"bytes <= {SMALL_BYTES:d}")
        rate = self.copies.bytes_per_s or 0.0
        yield Evidence(f"small copies {self.name}", len(self.copies), "count", "up to 16 KiB", rows)
        yield Evidence(f"bytes of one, {self.name}", self.copies.median_bytes, "bytes", "median")
        yield Evidence(f"time of one, {self.name}", self.median_ns, "ns", "median duration")
        yield Evidence(f"rate of small copies {self.name}", rate, "bytes/s", "bytes / union of the copies")
        if self.large_bytes_per_s:
            formula = "bytes / union of the copies of 1 MiB or more"
            yield Evidence(f"rate of large copies {self.name}", self.large_bytes_per_s, "bytes/s", formula)


def _small_part(copies: LinkCopies, rate_ratio: float) -> _SmallPart | None:
    small = copies.select(copies.ops.bytes <= SMALL_BYTES)
    if len(small) < FEWEST_OPERATIONS:
        return None
    large_rate = copies.large.bytes_per_s
    is_fast = large_rate is not None and (small.bytes_per_s or 0.0) > rate_ratio * large_rate
    return None if is_fast else _SmallPart(small, large_rate)


def _lost_to(trace: Trace, device: DeviceTimeline, slow: Sequence[_SmallPart]) -> Intervals:
    """Time of small copies that no kernel hides, and of the device waiting for the calls that launch them."""
    launched = np.concatenate([part.copies.launch for part in slow] or [np.empty(0, np.int64)])
    launched = launched[launched != gpu_work.NONE]
    calls = np.zeros(len(device.calls), bool)
    calls[launched] = True
    lost = idle_inside(trace.idle_of(device), device.calls, calls)
    for thread_id in np.unique(device.calls.thread_id[launched]).tolist():
        lost = lost - trace.threads[thread_id].synchronising
    for part in slow:
        lost = lost | (part.copies.time - device.kernel_time)
    return lost


_COLUMNS = "copy_kind, src_memory, dst_memory, stream, bytes, start_ns, end_ns"
