"""Streams that put work in a row: copies in the kernels' own, and all that the legacy default stream stops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.dependencies import NEVER_NS, Dependencies, lanes
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import NONE, Column
from diag.timeline.intervals import Intervals
from diag.timeline.streams import Key
from diag.timeline.trace import Trace

Mask = NDArray[np.bool_]

_NO_STREAMS = "on which stream the operations ran was not captured"
OPERATION_COLUMNS = "context, stream, kind, copy_kind, start_ns, end_ns"


@device_rule("streams.serial")
def serial_work(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Copies and kernels share a stream, and so cannot overlap.

    Asks      How much of the copying between host and device runs on streams that run kernels, too, in turn with them?
    Decides   Of pinned copies over the link on such streams: hidden at most = min(copies - kernels, kernels - copies),
              by unions; fires at `share` of the window. Pageable copies are left out: they overlap with nothing. The
              trace shows the order of the stream, not whether a copy needs the kernel before it; so this is a chance,
              never a fault, and level info whatever its share.
    Matters   A GPU has copy engines beside its SMs, but operations of one stream run one after the other.
    Do        Copy on a second stream, from pinned memory, with events for what really depends; double-buffer, so that
              the copy of the next part runs beside the kernels of this one.
    Refute    Put the copies on a stream of their own, with an event for each true dependency: if nothing overlaps, the
              data itself demands the order.
    """
    ops = device.ops
    if (ops.stream == NONE).all():
        yield CannotTell(subject_of(device), _NO_STREAMS)
        return
    is_kernel = ops.kind == gpu_work.KERNEL
    is_copy = (ops.kind == gpu_work.COPY) & np.isin(ops.copy_kind, gpu_work.LINK_COPY_KINDS)
    is_copy &= (ops.src_memory != gpu_work.PAGEABLE) & (ops.dst_memory != gpu_work.PAGEABLE)
    if not (is_copy.any() and is_kernel.any()):
        yield Clear(subject_of(device))
        return
    lane = lanes(_in_window(device, trace.contexts_of(device)), ops.stream)
    in_shared = np.isin(lane, np.intersect1d(lane[is_copy], lane[is_kernel]))
    copies = device.time_of(is_copy & in_shared)
    exposed, free_kernels = copies - device.kernel_time, device.kernel_time - device.copy_time
    hidden_ns = min(exposed.measure_ns, free_kernels.measure_ns)
    if device.share(hidden_ns) < limits["share"]:
        yield Clear(subject_of(device))
        return
    yield _serial(device, exposed, free_kernels, np.unique(ops.stream[in_shared]), len(np.unique(lane)))


def _serial(
    device: DeviceTimeline, exposed: Intervals, free_kernels: Intervals, shared: NDArray[Any], n_streams: int
) -> Finding:
    """`shared`: numbers of the streams that run both."""
    hidden_ns = min(exposed.measure_ns, free_kernels.measure_ns)
    share = device.share(hidden_ns)
    numbers = ", ".join(map(str, shared[:8].tolist()))
    alone = n_streams == 1
    return Finding(
        title="All work is on one stream: nothing can overlap" if alone else "Copies wait in the kernels' own stream",
        claim=f"{units.time(exposed.measure_ns)} of pinned copies between host and device run alone on "
        f"{'stream' if len(shared) == 1 else 'streams'} {numbers}, which {'runs' if len(shared) == 1 else 'run'} "
        f"kernels, too ({units.time(free_kernels.measure_ns)} without a copy beside them). One stream puts them in a "
        "row; whether the data does, too, a trace does not show.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=hidden_ns,
        confidence="medium",
        level="info",
        counterfactual=f"On a stream of their own the copies could hide at most {units.time(hidden_ns)} "
        f"({units.share(share)} of the window), if they do not depend on the kernels next to them.",
        evidence=[
            Evidence(
                "copies alone", exposed.measure_ns, "ns", "union of pinned link copies on these streams - kernels",
                queries.operations(device, OPERATION_COLUMNS, "kind IN ('kernel', 'copy')"),
            ),
            Evidence("kernels without copies", free_kernels.measure_ns, "ns", "union of kernels - union of copies"),
            Evidence("could overlap", hidden_ns, "ns", "the smaller of both"),
            Evidence("streams with work", n_streams, "count", "distinct streams of the device's operations"),
        ],
        refute="Put the copies on a stream of their own, with an event for each true dependency: if nothing overlaps, "
        "the data itself demands the order.",
        next=[
            "Copy on a second stream (`torch.cuda.Stream()`, `cudaStreamCreateWithFlags(..., cudaStreamNonBlocking)`) "
            "and double-buffer; order what depends with `wait_event`."
        ],
        extent=exposed,
    )  # fmt: skip


@device_rule("streams.default", needs=("api",))
def default_stream(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """The legacy default stream stops other streams.

    Asks      Do operations wait only because the legacy default stream and blocking streams exclude each other?
    Decides   An operation on the default stream and one on a blocking stream of the same context never overlap
              (checked). One waits for the other where it was launched, and its own stream and events had let it go,
              before the other ended, and it started after that. Waiting = union of those times, in which the other ran;
              fires at `share` of the window. Inferred: the rule of the legacy default stream explains it, no row states
              it. Where streams wait for events whose records were not captured, nothing is said.
    Matters   The legacy default stream waits for all blocking streams of its context, and they wait for it (CUDA
              Programming Guide, Default Stream): streams made for concurrency run in turn.
    Do        Create streams with `cudaStreamNonBlocking`, compile with `--default-stream per-thread`, or move the work
              of the default stream to a stream of its own.
    Refute    Make the streams non-blocking: if the operations still run in turn, something else orders them.
    """
    if len(device.ops) and (device.ops.stream == device.ops.stream[0]).all():
        yield Clear(subject_of(device))
        return
    depends = trace.dependencies_of(device)
    side = _sides(trace, device)
    if side is None:
        because = "the trace does not tell which streams the default one stops"
        yield CannotTell(subject_of(device), because)
        return
    on_null, on_blocking = side == _NULL, side == _BLOCKING
    waits = Intervals.empty()
    times = [device.time_of(_in_window(device, which)) for which in (on_null, on_blocking)]
    if times[0] and times[1] and not times[0] & times[1]:
        waits = _default_waits(device, depends, side, trace.contexts_of(device)) & device.window
    if device.share(waits) < limits["share"]:
        yield Clear(subject_of(device))
        return
    if not trace.source.has("cuda_event") and trace.case.value(_HAS_STREAM_WAITS, (device.process_id,)):
        because = f"streams wait for events, and which, is not known: {FACTS['cuda_event'].why_not(trace)}"
        yield CannotTell(subject_of(device), because)
        return
    yield _default(device, waits, times)


def _default(device: DeviceTimeline, waits: Intervals, times: Sequence[Intervals]) -> Finding:
    """`times`: with work on the default stream, and on blocking streams."""
    share = device.share(waits)
    return Finding(
        title="The legacy default stream and other streams stop each other",
        claim=f"For {units.time(waits.measure_ns)} ({units.share(share)} of the window) operations were launched and "
        "free to run, but started only when one on the other side of the legacy default stream had ended. "
        f"The default stream ({units.time(times[0].measure_ns)}) and blocking streams "
        f"({units.time(times[1].measure_ns)}) never overlap.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=min(waits.measure_ns, *(time.measure_ns for time in times)),
        confidence="medium",
        counterfactual=f"Without that order at most {units.time(waits.measure_ns)} could run side by side, as far as "
        "the SMs have room.",
        evidence=[
            Evidence(
                "waiting", waits.measure_ns, "ns", "from ready (launched, own stream and events done) to the other's "
                "end",
                queries.operations(device, OPERATION_COLUMNS),
            ),
            Evidence("default stream", times[0].measure_ns, "ns", "union of its operations"),
            Evidence("blocking streams", times[1].measure_ns, "ns", "union of their operations"),
        ],
        refute="Make the streams non-blocking: if the operations still run in turn, something else orders them.",
        next=[
            "Create streams with `cudaStreamNonBlocking` (PyTorch's are), or compile with `nvcc --default-stream "
            "per-thread`; in PyTorch do not mix `torch.cuda.default_stream()` with blocking streams of other libraries."
        ],
        extent=waits,
    )  # fmt: skip


def _in_window(device: DeviceTimeline, of_all: NDArray[Any]) -> NDArray[Any]:
    """What is in parallel with all of a device's operations, for those that touch the window."""
    if len(device.ops) == len(device.all_ops):
        return of_all
    return of_all[np.isin(device.all_ops.id, device.ops.id)]


_HAS_STREAM_WAITS = "SELECT EXISTS (SELECT 1 FROM sync WHERE process_id = ? AND kind = 'stream wait')"
_OTHER, _NULL, _BLOCKING = range(3)


def _sides(trace: Trace, device: DeviceTimeline) -> NDArray[np.int8] | None:
    """For each operation whether the legacy default stream or a blocking one ran it; None: the trace cannot say."""
    known = trace.streams_of(device.process_id)
    side = np.zeros(len(device.all_ops), np.int8)
    for key, members in by_stream(trace, device).items():
        stream = known.get(key)
        if stream is None or not (stream.is_null or stream.is_blocking is not None):
            return None
        side[members] = _NULL if stream.is_null else _BLOCKING if stream.is_blocking else _OTHER
    return side


def by_stream(trace: Trace, device: DeviceTimeline) -> Mapping[Key, Mask]:
    """Which operations ran on each (context, stream)."""
    lane = trace.dependencies_of(device).lane
    context = trace.contexts_of(device)
    firsts = np.unique(lane, return_index=True)[1].tolist()
    return {(int(context[first]), int(device.all_ops.stream[first])): lane == lane[first] for first in firsts}


def _default_waits(device: DeviceTimeline, depends: Dependencies, side: NDArray[np.int8], context: Column) -> Intervals:
    """Times in which an operation was ready, but one of the other side, of the same context, ran."""
    ops = device.all_ops
    other_end = np.full(len(ops), NEVER_NS, np.int64)
    for one in np.unique(context[side == _NULL]).tolist():
        for mine, other in ((_NULL, _BLOCKING), (_BLOCKING, _NULL)):
            is_mine, is_other = (context == one) & (side == mine), (context == one) & (side == other)
            other_end[is_mine] = np.maximum.accumulate(np.where(is_other, ops.end_ns, NEVER_NS))[is_mine]
    ready = depends.ready_ns
    # What follows at once: it waited for the other's end longer than for anything after it.
    waited = (depends.launched_ns > NEVER_NS) & (ready < other_end) & (other_end <= ops.start_ns)
    waited &= ops.start_ns - other_end <= other_end - ready
    return Intervals.union_of(ready[waited], other_end[waited])
