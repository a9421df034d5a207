"""Idle time of a device and what caused it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.rules import activities
from diag.rules.activities import SampleShare
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline.device import DeviceTimeline
from diag.timeline.explain import RangeCover, cover_by_ranges
from diag.timeline.host import HostThread, ThreadStates, states_within
from diag.timeline.idle import IdleAccount
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace

LEAST_SAMPLE_SHARE = 0.2
"""An activity is named by samples only if every fifth of them tells it; the rest may be unresolved."""


@device_rule("idle.gpu")
def gpu_idle(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """The GPU idles, and why.

    Asks      What share of the window has no work on the device, and what was the host doing meanwhile?
    Decides   idle = window - union(kernels, copies, memsets, graph launches). Each idle nanosecond gets one cause: for
              a gap [e, s) ended by an operation whose launching call L began at L.start, [e, min(L.start, s)) is *host
              late*; the rest is *launch latency* if L.start >= e, else *device side*; without L *not captured*.
              Host-late time is divided by the launching thread's own state (off the CPU, in a CUDA call, in an OS call,
              running) and laid over its ranges and samples. Fires at `share`.
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
    host = _explain_host(trace, account, limits)
    main_cause, main_time = _main_cause(account)
    yield Finding(
        title=_title(main_cause, host),
        claim=" ".join(_claim(device, account, host)),
        subject=subject_of(device),
        share=share,
        recoverable_ns=main_time.measure_ns,
        confidence="high" if account.not_captured.measure_ns < 0.1 * account.idle.measure_ns else "medium",
        counterfactual=f"Without the {main_cause} part the window would be at most {units.time(main_time.measure_ns)} "
        f"({units.share(device.share(main_time))}) shorter.",
        evidence=list(_evidence(trace, device, account, host)),
        refute=_refute(host),
        next=list(_next_steps(main_cause, host)),
        extent=main_time,
    )


@dataclass(frozen=True)
class Bystander:
    """Another thread whose OS call covers most of the idle time without being its cause."""

    tid: int
    call: str
    share_of_idle: float


@dataclass(frozen=True, eq=False)
class _HostStory:
    """What the launching thread did during the host-late time."""

    thread: HostThread
    late: Intervals
    idle: Intervals
    long_gaps: Intervals
    states: ThreadStates
    covers: Sequence[RangeCover]
    cover_of_long_gaps: float
    sampled: Sequence[SampleShare]
    os_calls: Sequence[tuple[str, int]]
    cuda_calls: Sequence[tuple[str, int]]
    synchronising_ns: int
    bystander: Bystander | None
    function: tuple[str, float] | None  # most sampled while running, and its share of the samples

    @property
    def activity(self) -> activities.Activity | None:
        """What the thread was busy with, by its samples or else by the name of a range that fits."""
        named = (activities.activity_of_range(cover.pattern) for cover in self.covers)
        return self.sampled_activity or next((activity for activity in named if activity), None)

    @property
    def sampled_activity(self) -> activities.Activity | None:
        tells = self.sampled and self.sampled[0].share >= LEAST_SAMPLE_SHARE
        return self.sampled[0].activity if tells else None

    @property
    def where(self) -> str | None:
        """The range pattern that covers at least half of the host-late time."""
        most = max(self.covers, key=lambda cover: cover.covered_ns, default=None)
        return most.pattern if most and 2 * most.covered_ns >= self.late.measure_ns else None

    @property
    def mostly_running(self) -> bool:
        return 2 * self.states.running.measure_ns >= self.late.measure_ns


def _explain_host(trace: Trace, account: IdleAccount, limits: Limits) -> _HostStory | None:
    if account.latest_thread is None or not account.host_late:
        return None
    thread = trace.threads[account.latest_thread]
    late = account.host_late_of[thread.thread_id]
    states = states_within(thread, late)
    covers = cover_by_ranges(thread, late, least_share=limits["named_share"])
    long_gaps = longest_gaps(account.idle)
    covered = sum((cover.ranges & long_gaps).measure_ns for cover in covers[:1])
    return _HostStory(
        thread=thread,
        late=late,
        idle=account.idle,
        long_gaps=long_gaps,
        states=states,
        covers=covers,
        cover_of_long_gaps=covered / long_gaps.measure_ns if long_gaps else 0.0,
        sampled=activities.sampled_activities(trace.case, thread, states.running),
        os_calls=activities.longest_os_calls(trace.case, thread, late),
        cuda_calls=activities.longest_cuda_calls(trace.case, thread, states.cuda_call),
        synchronising_ns=(late & trace.synchronising(thread)).measure_ns,
        bystander=_bystander(trace, thread, account),
        function=activities.most_sampled_function(trace.case, thread, states.running),
    )


def _bystander(trace: Trace, launching: HostThread, account: IdleAccount) -> Bystander | None:
    """A background thread that sits in an OS call meanwhile: tempting to blame, but nobody waits for it."""
    found = []
    for thread in trace.threads.values():
        if thread.process_id == launching.process_id and thread is not launching:
            for call, ns in activities.longest_os_calls(trace.case, thread, account.idle, most=1):
                found.append(Bystander(thread.tid, call, ns / account.idle.measure_ns))
    most = max(found, key=lambda bystander: bystander.share_of_idle, default=None)
    return most if most and most.share_of_idle >= 0.5 else None


def longest_gaps(idle: Intervals) -> Intervals:
    """The gaps no shorter than the largest power of ten (in ns) that still leaves nine tenths of the idle time."""
    lengths = idle.lengths_ns
    for exponent in range(10, 0, -1):
        long = lengths >= 10**exponent
        if lengths[long].sum() >= 0.9 * lengths.sum():
            return Intervals(idle.starts_ns[long], idle.ends_ns[long])
    return idle


def _main_cause(account: IdleAccount) -> tuple[str, Intervals]:
    causes = {
        "host-late": account.host_late,
        "launch-latency": account.launch_latency,
        "device-side": account.device_side,
        "uncaptured": account.not_captured,
        "other process'": account.other_process,
    }
    return max(causes.items(), key=lambda item: item[1].measure_ns)


def _title(cause: str, host: _HostStory | None) -> str:
    if cause == "host-late" and host:
        where = host.where
        if host.sampled_activity:
            return f"GPU starved by the host, {host.sampled_activity.label}" + (f" in '{where}'" if where else "")
        if where is None:
            return "GPU starved: the host launches too late"
        named = activities.activity_of_range(where)
        return f"GPU starved by {named.label}" if named else f"GPU starved by the host inside '{where}'"
    return {
        "launch-latency": "GPU idle between launch and start",
        "device-side": "GPU idle though work was launched: it waits for events, other streams or dispatch",
        "other process'": "GPU used by another process in between",
    }.get(cause, "GPU idle, cause not captured")


def _claim(device: DeviceTimeline, account: IdleAccount, host: _HostStory | None) -> Iterator[str]:
    main_cause, main_time = _main_cause(account)
    main_ns = main_time.measure_ns
    yield (
        f"The GPU idles {units.share(device.share(account.idle))} of the window "
        f"({units.time(account.idle.measure_ns)} of {units.time(device.window_ns)})."
    )
    if main_cause != "host-late":
        yield f"Its largest part, {units.time(main_ns)}, is {_IN_WORDS[main_cause]}."
    if host is None:
        return
    gaps = host.long_gaps
    yield (
        f"For {units.time(account.host_late.measure_ns)} of it the host had not yet launched the next operation; "
        f"{units.count(len(gaps), 'gap')} of {units.time(int(gaps.lengths_ns.min()))} or longer "
        f"{'makes' if len(gaps) == 1 else 'make'} {units.time(gaps.measure_ns)}"
        + (f", {units.share(host.cover_of_long_gaps)} of it inside '{host.covers[0].pattern}'." if host.covers else ".")
    )
    for cover in host.covers:
        if (activity := activities.activity_of_range(cover.pattern)) is not None:
            label = activity.label[:1].upper() + activity.label[1:]
            covered = units.time((cover.ranges & host.idle).measure_ns)
            yield f"{label} ('{cover.pattern}') covers {covered} of the {units.time(host.idle.measure_ns)}."
    if host.sampled_activity:
        top = host.sampled[0]
        yield (
            f"The launching thread {host.thread.tid} was {top.activity.label} there "
            f"({top.count} of {top.of} samples: {', '.join(top.symbols)})."
        )
    elif host.function and host.function[1] >= LEAST_SAMPLE_SHARE:
        name, share = host.function
        yield f"{units.share(share)} of the launching thread's samples there are in {name}."
    yield " ".join(_not_the_cause(host))


def _not_the_cause(host: _HostStory) -> Iterator[str]:
    waits = [f"synchronisation {units.time(host.synchronising_ns)}"] if host.synchronising_ns else []
    waits += [f"{name}() {units.time(ns)}" for name, ns in host.os_calls[:1]]
    listed = f": {', '.join(waits)}." if waits else "."
    if host.mostly_running:
        yield f"It was hardly waiting{listed}" if waits else "It was not waiting for the device."
    elif waits:
        yield f"Of it{listed}"
    if host.bystander:
        yield (
            f"{host.bystander.call}() of thread {host.bystander.tid} covers "
            f"{units.share(host.bystander.share_of_idle)} of the idle time too, "
            "but nothing shows the launching thread waiting for it."
        )


def _evidence(
    trace: Trace, device: DeviceTimeline, account: IdleAccount, host: _HostStory | None
) -> Iterator[Evidence]:
    rows = _OPERATIONS.format(source=device.source_id, process=device.process_id, device=device.device)
    yield Evidence("idle", account.idle.measure_ns, "ns", "window - union of all GPU operations", rows)
    if trace.tick_ns > 1:
        below = account.idle.lengths_ns[account.idle.lengths_ns < 2 * trace.tick_ns].sum()
        ticks = f"gaps shorter than two ticks of the trace ({units.time(2 * trace.tick_ns)}): may be rounding"
        yield Evidence("idle below two ticks", int(below), "ns", ticks)
    for label, time, formula in (
        ("host late", account.host_late, "gap start to the launching call's start"),
        ("launch latency", account.launch_latency, "launching call's start to gap end, when it began in the gap"),
        ("device side", account.device_side, "gaps whose next operation was launched before they began"),
        ("used by another process", account.other_process, "idle and another process' work on the same hardware"),
        ("not captured", account.not_captured, "gaps whose next operation has no launching call in the trace"),
    ):
        if time:
            yield Evidence(label, time.measure_ns, "ns", formula)
    if host is None:
        return
    for label, time in (
        ("host late: off the CPU", host.states.off_cpu),
        ("host late: in CUDA calls", host.states.cuda_call),
        ("host late: in OS calls", host.states.os_call),
        ("host late: running", host.states.running),
    ):
        known = time or (label.endswith("off the CPU") and host.thread.off_cpu is not None)
        if known:
            yield Evidence(label, time.measure_ns, "ns", f"host-late time of thread {host.thread.tid} by its state")
    yield Evidence(
        "host late: synchronising", host.synchronising_ns, "ns", "host-late time inside synchronising CUDA calls"
    )
    for cover in host.covers:
        yield Evidence(
            f"idle inside '{cover.pattern}'",
            (cover.ranges & account.idle).measure_ns,
            "ns",
            f"idle time covered by {cover.count} ranges of the launching thread",
        )
    for name, ns in host.os_calls:
        yield Evidence(f"in {name}()", ns, "ns", f"host-late time of thread {host.thread.tid} inside this OS call")
    for sampled in host.sampled[:3]:
        yield Evidence(
            f"samples {sampled.activity.label}", sampled.share, "share", f"{sampled.count} of {sampled.of} samples"
        )


def _refute(host: _HostStory | None) -> str:
    if host and host.covers:
        return f"Take the work out of '{host.covers[0].pattern}' for one run: if the gaps stay, it was not the cause."
    return "Launch the same work ahead of time, or replay it as a CUDA graph: if the gaps stay, it was not the host."


def _next_steps(cause: str, host: _HostStory | None) -> Iterator[str]:
    if cause != "host-late" or host is None:
        yield _NEXT_BY_CAUSE.get(cause, _CAPTURE_AGAIN)
        return
    if host.activity:
        yield host.activity.do
    if host.covers:
        yield (
            f"Overlap '{host.covers[0].pattern}' with the device: launch the next step first, "
            "or do this work in another thread or process."
        )
    else:
        yield "Put NVTX ranges around the phases of the host loop, so that the gaps get names."
    if not host.sampled and not host.function:
        yield "See which code it is: nsys profile --sample=process-tree (or py-spy for Python)."


_IN_WORDS = {
    "launch-latency": "launch latency: the launching call had begun, the operation had not",
    "device-side": "device side: the operation had been launched, but waited for an event, another stream or dispatch",
    "uncaptured": "not explained: the launching call is not in the trace",
    "other process'": "used by another process",
}
_CAPTURE_AGAIN = (
    "Capture from before the first launch, with: nsys profile --trace=cuda,nvtx,osrt --sample=process-tree "
    "--cpuctxsw=process-tree"
)
_NEXT_BY_CAUSE = {
    "launch-latency": "Launch earlier (several operations ahead), or as a CUDA graph: the device waits for each launch "
    "to arrive.",
    "device-side": "Look for what the operations after the long gaps waited for: events of other streams "
    "(cudaStreamWaitEvent), or other ranks in a collective.",
    "other process'": "Give each process a device of its own, or share it deliberately (MPS, MIG).",
}

_OPERATIONS = (
    "SELECT kind, start_ns, end_ns, stream, name_id FROM gpu_op "
    "WHERE source_id = {source} AND process_id = {process} AND device = {device} ORDER BY start_ns"
)
