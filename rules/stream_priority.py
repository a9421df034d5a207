"""Priorities of streams: urgent work that queues behind kernels of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.streams import OPERATION_COLUMNS, Mask, by_stream
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.dependencies import NEVER_NS, Dependencies
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals
from diag.timeline.streams import Key, Stream
from diag.timeline.trace import Trace


@device_rule("streams.priority", needs=("api",))
def stream_priority(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Urgent work queues behind other streams' kernels.

    Asks      Does communication, or work on streams of higher priority, wait while kernels of other streams run?
    Decides   An operation is ready when it is launched, the operation before it on its stream has ended, and the events
              that its stream waited for are done. Waiting = union over urgent operations of [ready + dispatch, start),
              cut to the time in which kernels of other streams run; dispatch is the median wait of all other
              operations. Fires at `share` of the window. Urgent are communication kernels and what runs on streams of
              the highest of several priorities. Events must have been captured.
    Matters   Blocks of a running kernel are not stopped for others; of waiting blocks those of higher priority go
              first. Late communication makes other ranks wait, too.
    Do        Give the stream of communication a higher priority (`TORCH_NCCL_HIGH_PRIORITY=1`,
              `ProcessGroupNCCL.Options(is_high_priority_stream=True)`, `cudaStreamCreateWithPriority`), or leave it
              SMs.
    Refute    Raise the priority: if the operations start as late, they waited for data that no captured event shows.
    """
    ops = device.all_ops
    one_stream = bool(len(ops)) and bool((ops.stream == ops.stream[0]).all())
    known = {} if one_stream else trace.streams_of(device.process_id)
    urgent = _urgent(trace, device, known) if not one_stream else np.zeros(len(ops), bool)
    if not urgent.any():
        yield Clear(subject_of(device))
        return
    if not trace.source.has("cuda_event"):
        because = f"what urgent operations waited for is not known: {FACTS['cuda_event'].why_not(trace)}"
        yield CannotTell(subject_of(device), because)
        return
    depends = trace.dependencies_of(device)
    waits = _waits_behind_kernels(device, depends, urgent)
    if device.share(waits) < limits["share"]:
        yield Clear(subject_of(device))
        return
    yield _late(device, waits, _priorities(trace, device, known, urgent))


def _late(device: DeviceTimeline, waits: Intervals, told: _Priorities) -> Finding:
    share = device.share(waits)
    return Finding(
        title="Urgent work waits behind kernels of other streams",
        claim=f"For {units.time(waits.measure_ns)} ({units.share(share)} of the window) communication or work of "
        f"higher priority was ready, but kernels of other streams ran. {told.sentence}",
        subject=subject_of(device),
        share=share,
        recoverable_ns=waits.measure_ns,
        confidence="medium",
        counterfactual=f"Started when ready, these operations would end up to {units.time(waits.measure_ns)} earlier "
        "in all; the kernels beside them would take longer.",
        evidence=[
            Evidence(
                "waiting", waits.measure_ns, "ns", "union of [ready + dispatch, start) of urgent operations, while "
                "others' kernels run",
                queries.operations(device, OPERATION_COLUMNS),
            ),
            Evidence("priorities", told.text, "text", "stream priorities; a smaller number is more urgent"),
        ],
        refute="Raise the priority: if the operations start as late, they waited for data that no captured event "
        "shows.",
        next=[told.next],
        extent=waits,
    )  # fmt: skip


def _urgent(trace: Trace, device: DeviceTimeline, known: Mapping[Key, Stream]) -> Mask:
    """Communication kernels, and operations on streams of the highest priority where there are several."""
    urgent = np.zeros(len(device.all_ops), bool)
    urgent[np.isin(device.all_ops.id, device.ops.id[device.is_communication])] = True
    used = {key: members for key, members in by_stream(trace, device).items() if key in known}
    levels = {known[key].priority for key in used} - {None}
    if len(levels) > 1:
        highest = min(level for level in levels if level is not None)
        for key, members in used.items():
            urgent |= members & (known[key].priority == highest)
    return urgent


def _waits_behind_kernels(device: DeviceTimeline, depends: Dependencies, urgent: Mask) -> Intervals:
    """Of the waiting as much counts as exceeds what dispatch takes on this device anyway: others' median wait."""
    ops = device.all_ops
    waited_ns = ops.start_ns - depends.ready_ns
    is_launched = depends.launched_ns > NEVER_NS
    others_ns = waited_ns[is_launched & ~urgent]
    dispatch_ns = max(0, int(np.median(others_ns))) if len(others_ns) else 0
    counts = urgent & is_launched & (waited_ns > dispatch_ns)
    waits = Intervals.union_of(depends.ready_ns[counts] + dispatch_ns, ops.start_ns[counts])
    others = (ops.kind == gpu_work.KERNEL) & ~urgent
    return waits & Intervals.union_of(ops.start_ns[others], ops.end_ns[others]) & device.window


@dataclass(frozen=True)
class _Priorities:
    """Priorities of the streams with urgent work and of the others; None is not known."""

    urgent: frozenset[int | None]
    others: frozenset[int | None]

    @property
    def text(self) -> str:
        return f"urgent {_levels(self.urgent)}, others {_levels(self.others)}"

    @property
    def sentence(self) -> str:
        if not self._known:
            return "The trace does not tell all priorities."
        if self._is_higher:
            return "Its streams have the higher priority already: running blocks are not stopped for it."
        return "Its streams have no higher priority."

    @property
    def next(self) -> str:
        if self._is_higher:
            return "Leave SMs free for it (smaller grids, fewer persistent blocks, green contexts)."
        return (
            "Give the stream of communication a higher priority (`TORCH_NCCL_HIGH_PRIORITY=1` in PyTorch, "
            "`cudaStreamCreateWithPriority` in CUDA)."
        )

    @property
    def _known(self) -> bool:
        return bool(self.urgent and self.others) and None not in self.urgent | self.others

    @property
    def _is_higher(self) -> bool:
        urgent, others = ([level for level in levels if level is not None] for levels in (self.urgent, self.others))
        return self._known and max(urgent) < min(others)


def _priorities(trace: Trace, device: DeviceTimeline, known: Mapping[Key, Stream], urgent: Mask) -> _Priorities:
    used = by_stream(trace, device)

    def levels(which: Mask) -> frozenset[int | None]:
        of = (key for key, members in used.items() if (members & which).any())
        return frozenset(known[key].priority if key in known else None for key in of)

    return _Priorities(levels(urgent), levels(~urgent))


def _levels(levels: frozenset[int | None]) -> str:
    return ", ".join(sorted("unknown" if level is None else str(level) for level in levels)) or "unknown"
