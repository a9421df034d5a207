"""Idle time of a device and what caused it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules import host_story
from diag.rules.engine import device_rule, subject_of
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Clear, Confidence, Evidence, Finding
from diag.rules.host_story import HostStory
from diag.rules.thresholds import Limits
from diag.timeline.device import DeviceTimeline
from diag.timeline.idle import IdleAccount
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace


@device_rule("idle.gpu")
def gpu_idle(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """The GPU idles, and why.

    Asks      What share of the window has no work on the device, and what was the host doing meanwhile?
    Decides   idle = window - union(kernels, copies, memsets, graph launches), less the time in which another process
              used the same hardware. Each idle nanosecond gets one cause: for a gap [e, s) ended by an operation whose
              launching call L began at L.start, [e, min(L.start, s)) is *host late*; the rest is *launch latency* if
              L.start >= e, else *device side*; without L *not captured*. Host-late time is divided by the launching
              thread's own state (off the CPU, in a CUDA call, in an OS call, running) and laid over its ranges and
              samples. Fires at `share`.
    Matters   An idle device does nothing for its price; host-late time is work that could overlap with the device.
    Do        Do what the named range or function says: prefetch, move input and output to another thread, launch ahead,
              use CUDA graphs when the gaps are many and short.
    Refute    Remove or overlap the named host work and capture again: if the gaps stay as long, it was not the cause.
    """
    account = trace.idle_of(device)
    share = device.share(account.idle)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    story = host_story.tell(trace, account, named_share=limits["named_share"])
    ranked = sorted(CAUSES, key=lambda cause: -cause.time_in(account).measure_ns)
    cause, time = ranked[0], ranked[0].time_in(account)
    told = story if cause is HOST_LATE else None
    n_unseen = len(trace.unrecorded_graph_launches(device))
    yield Finding(
        title=told.title if told else cause.title,
        claim=" ".join(_claim(device, account, cause, story, n_unseen)),
        subject=subject_of(device),
        share=share,
        recoverable_ns=time.measure_ns if cause.can_be_won else None,
        confidence="low" if n_unseen else _confidence(account, [each.time_in(account).measure_ns for each in ranked]),
        counterfactual=f"Without this part ({cause.name}) the window would be at most {units.time(time.measure_ns)} "
        f"({units.share(device.share(time))}) shorter.",
        evidence=[*_evidence(trace, device, account), *(story.evidence() if story else ())],
        refute=told.refute if told else cause.refute,
        next=list(told.next_steps()) if told else list(_next_steps(trace, cause)),
        extent=time,
    )


@device_rule("idle.shared")
def shared_hardware(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Other processes use the same hardware.

    Asks      For how much of the window do other processes work on this process' GPU, beside its own work or in
              between?
    Decides   Work of other processes on hardware with the same UUID (of a MIG slice: the same slice), cut to the
              window; fires at `share`. What falls between this process' own work is no idle time; what falls beside it
              shares SMs and bandwidth under MPS, and without MPS the GPU switches between the processes, so that each
              one's operations seem to last longer. Whether an MPS server ran is known by its process' name alone. Of
              processes outside the trace nothing is known: without others in it there is no telling.
    Matters   Each process waits longer while another one runs, and its kernels' durations are not those of a GPU alone.
    Do        Give each process a device or MIG slice of its own, or share it deliberately (MPS).
    Refute    Run this process alone: if its window stays as long, the others did not matter.
    """
    if device.uuid is None:
        yield CannotTell(subject_of(device), "which hardware the device is: the trace has no UUID for it")
        return
    if not device.other_pids:
        yield CannotTell(subject_of(device), _NOT_PROFILED)
        return
    others = device.others & device.window
    share = device.share(others)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    between, beside = trace.idle_of(device).other_process, others & device.busy
    processes = units.count(len(device.other_pids), "other process")
    rows = _SHARED_OPERATIONS.format(source=device.source_id, process=device.process_id, device=device.device)
    yield Finding(
        title="Another process uses the same GPU in between" if not beside else f"The GPU is shared with {processes}",
        claim=f"For {units.time(others.measure_ns)} ({units.share(share)} of the window) {processes} "
        f"({_pids(device.other_pids)}) used this {'MIG slice' if device.mig_instance else 'GPU'}: "
        f"{units.time(between.measure_ns)} while this one left it alone, which is no idle time, and "
        f"{units.time(beside.measure_ns)} beside its own work{_how_shared(trace) if beside else ''}.",
        subject=subject_of(device),
        share=share,
        level="info",
        counterfactual="What each process would win alone, a shared timeline cannot tell.",
        evidence=[
            Evidence("used by another process", between.measure_ns, "ns", "others' work - own work", rows),
            Evidence("both at once", beside.measure_ns, "ns", "others' work and own work"),
            Evidence("other processes", len(device.other_pids), "count", "processes with work on the same UUID"),
        ],
        refute="Run this process alone: if its window stays as long, the others did not matter.",
        next=["Give each process a device or MIG slice of its own, or share it deliberately (MPS)."],
        extent=others,
    )


def _pids(pids: Sequence[int]) -> str:
    shown = ", ".join(map(str, pids[:5]))
    return f"pid {shown}" if len(pids) == 1 else f"pids {shown}{', ...' if len(pids) > 5 else ''}"


def _how_shared(trace: Trace) -> str:
    if trace.source.has("mps_server"):
        return ", where both share its SMs and bandwidth (an MPS server is among the trace's processes)"
    return (
        ", where each may slow the other down (whether an MPS server lets their kernels overlap or the GPU switches "
        "between them is not known: no such server is among the trace's processes)"
    )


def _confidence(account: IdleAccount, ranked_ns: Sequence[int]) -> Confidence:
    """High only when nearly all gaps have a cause and the largest one stands out."""
    stands_out = ranked_ns[0] >= 1.5 * ranked_ns[1]
    explained = account.not_captured.measure_ns < 0.1 * account.idle.measure_ns
    return "high" if stands_out and explained else "medium"


@dataclass(frozen=True)
class Cause:
    """One part of an idle account, in words."""

    name: str
    attribute: str  # of IdleAccount
    formula: str
    title: str
    in_words: str
    next: str
    refute: str
    can_be_won: bool = True

    def time_in(self, account: IdleAccount) -> Intervals:
        time: Intervals = getattr(account, self.attribute)
        return time


HOST_LATE = Cause(
    name="host late",
    attribute="host_late",
    formula="gap start to the launching call's start",
    title="GPU starved: the host launches too late",
    in_words="host late: the next operation had not been launched yet",
    next="Put NVTX ranges around the phases of the host loop, so that the gaps get names.",
    refute="Launch the same work ahead of time: if the gaps stay, it was not the host.",
)
LAUNCH_LATENCY = Cause(
    name="launch latency",
    attribute="launch_latency",
    formula="launching call's start to gap end, when it began in the gap",
    title="GPU idle between launch and start",
    in_words="launch latency: the launching call had begun, the operation had not",
    next="Launch earlier (several operations ahead), or as a CUDA graph: the device waits for each launch to arrive.",
    refute="Replay the same kernels as one CUDA graph: if the gaps stay, it was not the launches.",
)
DEVICE_SIDE = Cause(
    name="device side",
    attribute="device_side",
    formula="gaps whose next operation was launched before they began",
    title="GPU idle though work was launched: it waits for events, other streams or dispatch",
    in_words="device side: the operation had been launched, but waited for an event, another stream or dispatch",
    next="Look for what the operations after the long gaps waited for: events of other streams "
    "(cudaStreamWaitEvent), or a queue that another stream filled.",
    refute="Run the same work on one stream: if the gaps stay, nothing waited for the others.",
)
NOT_CAPTURED = Cause(
    name="not captured",
    attribute="not_captured",
    formula="gaps whose next operation has no launching call in the trace",
    title="GPU idle, cause not captured",
    in_words="not explained: the launching call is not in the trace",
    next="Capture from before the first launch, with: nsys profile --trace=cuda,nvtx,osrt --sample=process-tree "
    "--cpuctxsw=process-tree",
    refute="Capture the launches too: the gaps then have a cause.",
    can_be_won=False,
)
CAUSES = (HOST_LATE, LAUNCH_LATENCY, DEVICE_SIDE, NOT_CAPTURED)


def _next_steps(trace: Trace, cause: Cause) -> Iterator[str]:
    yield cause.next
    events = FACTS["cuda_event"]
    if cause is DEVICE_SIDE and not events.is_captured(trace):
        yield f"Record the events, which this trace does not hold: {events.how_in(trace)}."


def _claim(
    device: DeviceTimeline, account: IdleAccount, cause: Cause, story: HostStory | None, n_unseen: int
) -> Iterator[str]:
    yield (
        f"The GPU idles {units.share(device.share(account.idle))} of the window "
        f"({units.time(account.idle.measure_ns)} of {units.time(device.window_ns)})."
    )
    if n_unseen:
        yield (
            f"That is an upper bound: {units.count(n_unseen, 'launch')} of CUDA graphs left no row, and what they ran "
            "looks like idle time."
        )
    if cause is not HOST_LATE:
        yield f"Its largest part, {units.time(cause.time_in(account).measure_ns)}, is {cause.in_words}."
    if story is not None:
        late = units.time(account.host_late.measure_ns)
        part = f"{late} of it" if cause is HOST_LATE else f"another {late}"
        yield f"For {part} the host had not yet launched the next operation."
        yield from story.sentences()


def _evidence(trace: Trace, device: DeviceTimeline, account: IdleAccount) -> Iterator[Evidence]:
    rows = _OPERATIONS.format(source=device.source_id, process=device.process_id, device=device.device)
    yield Evidence("idle", account.idle.measure_ns, "ns", "window - union of all GPU operations - others' work", rows)
    if trace.tick_ns > 1:
        below_ns = account.idle.lengths_ns[account.idle.lengths_ns < 2 * trace.tick_ns].sum()
        ticks = f"gaps shorter than two ticks of the trace ({units.time(2 * trace.tick_ns)}): may be rounding"
        yield Evidence("idle below two ticks", int(below_ns), "ns", ticks)
    if gaps := _longest_gaps(trace, account.idle):
        yield Evidence("longest gaps", gaps, "text", "length, and start from the first event as --window counts it")
    for cause in CAUSES:
        if time := cause.time_in(account):
            yield Evidence(cause.name, time.measure_ns, "ns", cause.formula)
    if trace.clock_error_ns:
        joined = "ranges of the joined inputs may be shifted by this; gaps shorter than twice as long name none"
        yield Evidence("clock error between the inputs", trace.clock_error_ns, "ns", joined)


def _longest_gaps(trace: Trace, idle: Intervals, most: int = 3) -> str:
    """Where to look first."""
    longest = np.argsort(-idle.lengths_ns, kind="stable")[:most]
    first_ns, _ = trace.event_span
    return ", ".join(
        f"{units.time(int(idle.lengths_ns[i]))} at {units.time(int(idle.starts_ns[i]) - first_ns)}" for i in longest
    )


_NOT_PROFILED = (
    "processes that were not profiled: none but this one has work on the device in the trace; nvidia-smi lists those "
    "that use it"
)
_SHARED_OPERATIONS = (
    "SELECT process_id, device, kind, start_ns, end_ns FROM gpu_op JOIN process_device p USING (process_id) "
    "WHERE gpu_op.source_id = {source:d} AND p.ordinal = gpu_op.device AND p.device_id = "
    "(SELECT device_id FROM process_device WHERE process_id = {process:d} AND ordinal = {device:d}) ORDER BY start_ns"
)
_OPERATIONS = (
    "SELECT kind, start_ns, end_ns, stream, name_id FROM gpu_op "
    "WHERE source_id = {source} AND process_id = {process} AND device = {device} ORDER BY start_ns"
)
