"""Copies so small that starting them takes longer than moving their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import FEWEST_OPERATIONS, DeviceTimeline
from diag.timeline.idle import idle_inside
from diag.timeline.intervals import Intervals
from diag.timeline.link_copies import Direction, directions
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
    slow = [part for direction in directions(device) if (part := _small_part(direction, limits["rate_ratio"]))]
    lost = _lost_to(trace, device, slow)
    share = device.share(lost)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    n_copies = sum(int(part.is_small.sum()) for part in slow)
    moving_ns = int(sum(part.bytes * 1e9 / part.large_bytes_per_s for part in slow if part.large_bytes_per_s))
    won_ns = max(0, lost.measure_ns - moving_ns)
    top = max(slow, key=lambda part: part.count)
    yield Finding(
        title=f"{units.count(n_copies, 'small copy')} between host and device",
        claim=f"{units.count(top.count, 'copy')} {top.name} with a median of {units.size(top.median_bytes)} take "
        f"{units.time(top.median_ns)} each (median); with the calls that the device waits for, small copies take "
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

    direction: Direction
    is_small: NDArray[np.bool_]
    large_bytes_per_s: float | None  # of the same direction; None without large copies

    @property
    def name(self) -> str:
        return self.direction.name

    @property
    def device(self) -> DeviceTimeline:
        return self.direction.device

    @property
    def count(self) -> int:
        return int(self.is_small.sum())

    @property
    def bytes(self) -> int:
        return self.device.bytes_of(self.is_small)

    @property
    def bytes_per_s(self) -> float:
        return self.direction.bytes_per_s(self.is_small) or 0.0

    @property
    def median_bytes(self) -> int:
        return int(np.median(self.device.ops.bytes[self.is_small]))

    @property
    def median_ns(self) -> int:
        return int(np.median(self.device.ops.duration_ns[self.is_small]))

    def evidence(self) -> Iterator[Evidence]:
        rows = queries.operations(self.device, _COLUMNS, "kind = 'copy'", f"bytes <= {SMALL_BYTES:d}")
        yield Evidence(f"small copies {self.name}", self.count, "count", "up to 16 KiB", rows)
        yield Evidence(f"bytes of one, {self.name}", self.median_bytes, "bytes", "median")
        yield Evidence(f"time of one, {self.name}", self.median_ns, "ns", "median duration")
        yield Evidence(f"rate of small copies {self.name}", self.bytes_per_s, "bytes/s", "bytes / union of the copies")
        if self.large_bytes_per_s:
            formula = "bytes / union of the copies of 1 MiB or more"
            yield Evidence(f"rate of large copies {self.name}", self.large_bytes_per_s, "bytes/s", formula)


def _small_part(direction: Direction, rate_ratio: float) -> _SmallPart | None:
    is_small = direction.is_copy & (direction.device.ops.bytes <= SMALL_BYTES)
    if is_small.sum() < FEWEST_OPERATIONS:
        return None
    part = _SmallPart(direction, is_small, direction.bytes_per_s(direction.is_large))
    fast = part.large_bytes_per_s is not None and part.bytes_per_s > rate_ratio * part.large_bytes_per_s
    return None if fast else part


def _lost_to(trace: Trace, device: DeviceTimeline, slow: list[_SmallPart]) -> Intervals:
    is_small = np.zeros(len(device.ops), bool)
    for part in slow:
        is_small |= part.is_small
    launched = device.launch[is_small & (device.launch != gpu_work.NONE)]
    calls = np.zeros(len(device.calls), bool)
    calls[launched] = True
    waiting = idle_inside(trace.idle_of(device), device.calls, calls)
    for thread_id in np.unique(device.calls.thread_id[launched]).tolist():
        waiting = waiting - trace.threads[thread_id].synchronising
    return (device.time_of(is_small) - device.kernel_time) | waiting


_COLUMNS = "copy_kind, src_memory, dst_memory, stream, bytes, start_ns, end_ns"
