"""Overlap of computation with communication and copies: what stays exposed, and what the overlap costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work, nesting
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import NONE, Column, GpuOps
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace

Mask = NDArray[np.bool_]

FEWEST_INSTANCES = 10
"""Of a kernel, both beside other work and alone: medians of fewer say little."""

_OPERATION_COLUMNS = "context, stream, name_id, start_ns, end_ns"


@device_rule("overlap.communication")
def exposed_communication(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Communication that no computation hides.

    Asks      What share of the window do communication kernels (NCCL, RCCL, NVSHMEM, oneCCL) run without any other?
    Decides   exposed = union(communication) - union(other kernels and graph launches); fires at `share` of the window.
              It is called blocking only as far as a dependency of the trace shows it: a later kernel, launched before
              the communication ended, was let go by its end (same stream or event), or a host thread synchronised with
              it. Overlap hides at most min(exposed, other kernels - communication).
    Matters   Kernels of a collective also wait for the slowest rank: the time is busy, but need not be transfer.
    Do        Start it earlier and in parts (buckets of DDP, `forward_prefetch` and `backward_prefetch` of FSDP), keep
              it on a stream of its own, send less (bf16 gradients, gradient accumulation), balance the ranks.
    Refute    Run the same step without communication (`no_sync()`, one rank): if it takes as long, it was hidden. If
              only some ranks wait long, the slowest rank is the cause, not the network.
    """
    exposed = device.exposed_communication - device.graph_time  # what runs inside a graph's row is not known
    share = device.share(exposed)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    blocking = _blocking(trace, device) & exposed
    others = device.kernel_time - device.communication_time
    hidden_ns = min(exposed.measure_ns, others.measure_ns)
    whole_ns = device.communication_time.measure_ns
    yield Finding(
        title=f"Exposed communication: {units.share(share)} of the window"
        + (", and computation waits for it" if blocking else ""),
        claim=f"Communication kernels run {units.time(whole_ns)}, {units.time(exposed.measure_ns)} of that "
        f"({units.share(share)} of the window) with no other kernel. {_blocking_sentence(trace, blocking)} Part of it "
        "may be waiting for other ranks.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=hidden_ns,
        confidence="high" if blocking else "medium",
        counterfactual=f"Perfect overlap with the other kernels would hide {units.time(hidden_ns)} at most; "
        "communicating less, or evenly loaded ranks, can win more.",
        evidence=[
            Evidence(
                "exposed communication", exposed.measure_ns, "ns", "union of communication kernels - other kernels",
                _communication_rows(device),
            ),
            Evidence("communication", whole_ns, "ns", "union of communication kernels"),
            Evidence("blocking, shown by a dependency", blocking.measure_ns, "ns", _BLOCKING_FORMULA),
            Evidence("hidden by perfect overlap", hidden_ns, "ns", "min(exposed, other kernels - communication)"),
            *_collectives(trace, device),
        ],
        refute="Run the same step without communication (`no_sync()`, one rank): if it takes as long, it was hidden. "
        "If only some ranks wait long, the slowest rank is the cause, not the network.",
        next=[
            "Compare the ranks' reports: a rank whose collectives are short arrives last, and the others wait for it.",
            "Start communication earlier and in parts: `bucket_cap_mb` and `gradient_as_bucket_view` of DDP, "
            "`forward_prefetch`, `backward_prefetch` of FSDP.",
        ],
        extent=exposed,
    )  # fmt: skip


_BLOCKING_FORMULA = (
    "exposed time of communication whose end let a launched kernel go (stream, event) or a synchronising host thread"
)


def _blocking(trace: Trace, device: DeviceTimeline) -> Intervals:
    """Time of the communication that something provably waited for."""
    ops = device.all_ops
    communicates = np.isin(ops.id, device.ops.id[device.is_communication])
    released_by = trace.dependencies_of(device).released_by
    computes = (ops.kind == gpu_work.KERNEL) & ~communicates
    waited_for = np.zeros(len(ops) + 1, bool)  # one more for NONE
    waited_for[released_by[computes]] = True
    waited_for = waited_for[:-1] | np.isin(ops.id, trace.waited_for_by_host)
    chosen = waited_for & communicates
    return Intervals.union_of(ops.start_ns[chosen], ops.end_ns[chosen]) & device.window


def _blocking_sentence(trace: Trace, blocking: Intervals) -> str:
    if blocking:
        return f"For {units.time(blocking.measure_ns)} of that a dependency shows that something waited for it."
    why = "" if trace.source.has("cuda_event") else " (records of CUDA events were not captured)"
    return f"That later kernels waited for it is not shown by the trace{why}."


def _communication_rows(device: DeviceTimeline) -> str:
    ids = np.unique(device.ops.name_id[device.is_communication]).tolist()
    names = ", ".join(f"{name_id:d}" for name_id in ids)
    return queries.operations(device, _OPERATION_COLUMNS, "kind = 'kernel'", f"name_id IN ({names})")


def _collectives(trace: Trace, device: DeviceTimeline) -> Iterator[Evidence]:
    """Bytes by operation, where the trace tells them."""
    key = (trace.source.id, device.process_id, device.device)
    for op, count, n_bytes in trace.case.db.execute(_BYTES_BY_OP, key).fetchall():
        if n_bytes is not None:
            sql = _COLLECTIVE_ROWS.format(source_id=trace.source.id, process_id=device.process_id, device=device.device)
            label = f"input of {units.count(count, 'call')} of {op}"
            yield Evidence(label, int(n_bytes), "bytes", "sum of the input sizes of one rank, whole trace", sql)


_BYTES_BY_OP = """
    SELECT c.op, COUNT(*), iif(COUNT(c.input_bytes), TOTAL(c.input_bytes), NULL)
      FROM collective c JOIN gpu_op g ON g.id = c.gpu_op_id
     WHERE c.source_id = ? AND c.process_id = ? AND g.device = ? AND c.op IS NOT NULL
     GROUP BY c.op
     ORDER BY 3 DESC, 1
     LIMIT 5
"""
_COLLECTIVE_ROWS = (
    "SELECT c.op, c.dtype, c.input_bytes, c.group_size, g.start_ns, g.end_ns "
    "FROM collective c JOIN gpu_op g ON g.id = c.gpu_op_id "
    "WHERE c.source_id = {source_id:d} AND c.process_id = {process_id:d} AND g.device = {device:d} ORDER BY g.start_ns"
)


@device_rule("overlap.tax")
def overlap_tax(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Kernels that take longer beside communication and copies.

    Asks      How much longer do the same kernels take while communication or copies run beside them?
    Decides   Kernels of one name, grid and block: those that lie for at least half of their time beside communication
              or copies against those that touch neither, ten of each at least. tax = median beside / median alone;
              counts at `ratio`. Lost = what the former take beyond the median alone, at most the union of them; fires
              at `share` of the window. While the overlap hides more than it costs, it is information.
    Matters   Both sides share memory bandwidth, caches and SMs: overlap is never free (NCCL's channels occupy SMs).
    Do        Give communication fewer SMs (`NCCL_MAX_NCHANNELS`, `NCCL_MAX_CTAS`), prefer copy engines for transfers
              within a node, or move the overlap to kernels that do not need what is short.
    Refute    Time the kernel alone on the same data: if it takes as long, the slow instances had other work to do,
              which name and grid do not tell.
    """
    disturbing = device.communication_time | device.copy_time
    kernels = device.ops.select((device.ops.kind == gpu_work.KERNEL) & ~device.is_communication)
    beside_ns = disturbing.measure_within(kernels.start_ns, kernels.end_ns) if disturbing else np.zeros(0, np.int64)
    if not (beside_ns > 0).any():
        yield Clear(subject_of(device))
        return
    taxed = _taxed(trace, kernels, beside_ns, limits["ratio"])
    extent = Intervals.union_of(*_times(kernels, taxed)) & device.window
    lost_ns = min(sum(kernel.lost_ns for kernel in taxed), extent.measure_ns)
    share = device.share(lost_ns)
    if share < limits["share"] or not taxed:
        yield Clear(subject_of(device))
        return
    hidden_ns = (extent & disturbing).measure_ns
    worst = taxed[0]
    name = device.name_of(worst.name_id)
    yield Finding(
        title=f"Overlap tax: kernels take up to {max(k.ratio for k in taxed):.2f} times as long beside other work",
        claim=f"{units.count(len(taxed), 'kernel')} (by name and grid) take longer beside communication or copies than "
        f"alone: {units.time(lost_ns)} ({units.share(share)} of the window) in all. Most is lost by {name}: median "
        f"{units.time(worst.beside_median_ns)} against {units.time(worst.alone_median_ns)} alone. The overlap hides "
        f"{units.time(hidden_ns)} meanwhile.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=lost_ns,
        confidence="medium",
        level="info" if hidden_ns >= lost_ns else None,
        counterfactual=f"If they ran as fast as alone, at most {units.time(lost_ns)} would be won; without the overlap "
        f"the {units.time(hidden_ns)} that it hides would come back.",
        evidence=[
            Evidence("lost", lost_ns, "ns", "min(sum of (duration - median alone) over taxed kernels, their union)"),
            Evidence("hidden meanwhile", hidden_ns, "ns", "union of taxed kernels and (communication or copies)"),
            *(_evidence_of(device, kernel) for kernel in taxed[:5]),
        ],
        refute="Time the kernel alone on the same data: if it takes as long, the slow instances had other work to do, "
        "which name and grid do not tell.",
        next=["Give communication fewer SMs (`NCCL_MAX_NCHANNELS=4`, `NCCL_MAX_CTAS`) and compare the step time."],
        extent=extent,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Taxed:
    """One kernel (name and launch shape) that takes longer beside other work."""

    name_id: int
    beside: Column  # indices of its instances beside other work
    n_alone: int
    beside_median_ns: float
    alone_median_ns: float
    lost_ns: int

    @property
    def ratio(self) -> float:
        return self.beside_median_ns / self.alone_median_ns


_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def _taxed(trace: Trace, kernels: GpuOps, beside_ns: Column, ratio: float) -> list[_Taxed]:
    """Kernels whose tax is at least `ratio`, most lost time first."""
    duration_ns = kernels.duration_ns
    beside = 2 * beside_ns >= np.maximum(duration_ns, 1)
    alone = beside_ns == 0
    candidate = np.isin(kernels.name_id, _seen_often(kernels.name_id, beside, alone))
    if not candidate.any():
        return []
    of = np.flatnonzero(candidate)
    columns = np.column_stack((kernels.name_id[of], *trace.details(kernels.select(of), *_SHAPE)))
    label = np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(label, kind="stable")
    taxed = []
    for first, stop in nesting.runs_of_equal(label[order]):
        members = of[order[first:stop]]
        of_beside, of_alone = members[beside[members]], members[alone[members]]
        if min(len(of_beside), len(of_alone)) < FEWEST_INSTANCES:
            continue
        medians = float(np.median(duration_ns[of_beside])), float(np.median(duration_ns[of_alone]))
        lost_ns = int(np.maximum(duration_ns[of_beside] - medians[1], 0).sum())
        kernel = _Taxed(int(kernels.name_id[members[0]]), of_beside, len(of_alone), *medians, lost_ns)
        if medians[1] > 0 and kernel.ratio >= ratio:
            taxed.append(kernel)
    return sorted(taxed, key=lambda kernel: (-kernel.lost_ns, kernel.name_id))


def _seen_often(names: NDArray[np.int32], beside: Mask, alone: Mask) -> NDArray[np.int32]:
    """Names with enough instances of both kinds, whatever their shape."""
    return np.intersect1d(_often(names[beside]), _often(names[alone]))


def _often(names: NDArray[np.int32]) -> NDArray[np.int32]:
    values, counts = np.unique(names, return_counts=True)
    return values[counts >= FEWEST_INSTANCES]


def _times(kernels: GpuOps, taxed: Sequence[_Taxed]) -> tuple[Column, Column]:
    chosen = np.concatenate([np.empty(0, np.int64), *(kernel.beside for kernel in taxed)])
    return kernels.start_ns[chosen], kernels.end_ns[chosen]


def _evidence_of(device: DeviceTimeline, kernel: _Taxed) -> Evidence:
    name = device.name_of(kernel.name_id)
    n_beside = len(kernel.beside)
    return Evidence(
        f"tax of {name[:80]}", f"{kernel.ratio:.2f}", "text",
        f"median of {n_beside} beside / median of {kernel.n_alone} alone "
        f"({units.time(kernel.beside_median_ns)} / {units.time(kernel.alone_median_ns)})",
        queries.launches_of_kernel(device, kernel.name_id if kernel.name_id >= 0 else NONE),
    )  # fmt: skip
