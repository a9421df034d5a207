"""What the launching threads did while the device waited for them, told from all that was captured of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from diag.model import units
from diag.rules import activities
from diag.rules.activities import Activity, SampledFunction, SampleShare
from diag.rules.finding import Evidence
from diag.timeline.explain import RangeCover, cover_by_ranges
from diag.timeline.host import HostThread, ThreadStates, states_within
from diag.timeline.idle import IdleAccount
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace

LEAST_SAMPLE_SHARE = 0.2
"""An activity or function is named by samples only if every fifth of them tells it; others may be unresolved."""

_PUT_RANGES = "Put ranges (NVTX, record_function) around the phases of the host loop: then the gaps get names."
_NAME_THE_GAPS = (
    "No range of the launching thread covers half of it: see what the thread does between its ranges (it may wait for "
    "another thread), or put ranges around that."
)
_SAMPLING = {
    "nsys-sqlite": "sample its stacks (nsys --sample=process-tree, or py-spy for Python)",
    "kineto": "record Python functions (torch.profiler with `with_stack=True`), or sample the process with py-spy",
}

FEWEST_SAMPLES = 10
"""Fewer samples than this name nothing."""

LEAST_TOLD_SHARE = 0.1
"""Host-late time of other launching threads is told, and not only listed, from this share of the first one's on."""

LEAST_SHOWN_SHARE = 0.05
"""Activities of fewer samples than this are not even listed."""


@dataclass(frozen=True)
class Bystander:
    """Another thread whose OS call covers most of the idle time: tempting to blame, but nothing waits for it."""

    tid: int
    call: str
    share_of_idle: float


@dataclass(frozen=True, eq=False)
class HostStory:
    """The host-late time, told of the thread that most of it belongs to."""

    thread: HostThread
    tick_ns: int
    how_to_sample: str | None  # None where the trace holds the code's functions
    idle: Intervals  # of the device
    late: Intervals  # the thread's part of it
    late_ns_of_others: Mapping[int, int]  # host-late time of the other launching threads, by tid
    states: ThreadStates  # partition of `late`
    covers: Sequence[RangeCover]  # ranges that explain `late`, those that cover most of it first
    sampled: Sequence[SampleShare]  # activities while running
    function: SampledFunction | None  # most sampled leaf while running
    os_calls: Sequence[tuple[str, int]]
    synchronising_ns: int | None  # None where nobody knows which calls do, because their names are lost
    bystander: Bystander | None

    @property
    def where(self) -> str | None:
        """The range pattern that covers at least half of the host-late time."""
        is_half = self.covers and 2 * self.covers[0].covered_ns >= self.late.measure_ns
        return self.covers[0].pattern if is_half else None

    @property
    def is_launching_code(self) -> bool:
        """Whether what covers most launches the work itself: most of its late time ends with a call inside it."""
        if not self.covers:
            return False
        ends_inside = self.covers[0].ranges.contains(self.late.ends_ns)
        awaited = Intervals(self.late.starts_ns[ends_inside], self.late.ends_ns[ends_inside])
        return 2 * (self.covers[0].covered & awaited).measure_ns >= self.covers[0].covered_ns

    @property
    def sampled_activity(self) -> Activity | None:
        tells = self.sampled and self.sampled[0].of >= FEWEST_SAMPLES and self.sampled[0].share >= LEAST_SAMPLE_SHARE
        return self.sampled[0].activity if tells else None

    @property
    def activity(self) -> Activity | None:
        """What the thread was busy with, by its samples or else by the name of a range that fits."""
        named = (activities.activity_of_range(cover.pattern) for cover in self.covers)
        return self.sampled_activity or next((activity for activity in named if activity), None)

    @property
    def title(self) -> str:
        if self.sampled_activity:
            place = f" in '{self.where}'" if self.where else ""
            return f"GPU starved by the host, {self.sampled_activity.label}{place}"
        if self.where is None:
            return "GPU starved: the host launches too late"
        named = activities.activity_of_range(self.where)
        return f"GPU starved by {named.label}" if named else f"GPU starved by the host inside '{self.where}'"

    def sentences(self) -> Iterator[str]:
        if sum(self.late_ns_of_others.values()) >= LEAST_TOLD_SHARE * self.late.measure_ns:
            yield (
                f"{units.time(self.late.measure_ns)} of that is on thread {self.thread.tid}, which the rest is about; "
                + ", ".join(f"{units.time(ns)} on thread {tid}" for tid, ns in self.late_ns_of_others.items())
                + "."
            )
        yield self._long_gaps()
        for cover in self.covers:
            if (activity := activities.activity_of_range(cover.pattern)) is not None:
                label = activity.label[:1].upper() + activity.label[1:]
                covered = units.time((cover.ranges & self.idle).measure_ns)
                yield f"{label} ('{cover.pattern}') covers {covered} of the {units.time(self.idle.measure_ns)}."
        if self.sampled_activity:
            top = self.sampled[0]
            yield (
                f"The launching thread {self.thread.tid} was {top.activity.label} there "
                f"({top.count} of {top.of} samples: {', '.join(top.symbols)})."
            )
        elif self.sampled_function:
            function = self.sampled_function
            yield f"{units.share(function.share)} of the launching thread's samples there are in {function.name}."
        yield from self._waits()

    def _long_gaps(self) -> str:
        gaps = longest_gaps(self.idle, tick_ns=self.tick_ns)
        if not gaps:
            return f"All gaps are shorter than two ticks of the trace ({units.time(2 * self.tick_ns)})."
        inside = ""
        if self.covers and not activities.activity_of_range(self.covers[0].pattern):
            share = (self.covers[0].ranges & gaps).measure_ns / gaps.measure_ns
            inside = f", {units.share(share)} of it inside '{self.covers[0].pattern}'"
        return (
            f"{units.count(len(gaps), 'gap')} of {units.time(int(gaps.lengths_ns.min()))} or longer "
            f"{'makes' if len(gaps) == 1 else 'make'} {units.time(gaps.measure_ns)}{inside}."
        )

    def _waits(self) -> Iterator[str]:
        synchronising_ns = self.synchronising_ns
        waits = []
        if synchronising_ns is not None and (100 * synchronising_ns >= self.late.measure_ns or self.os_calls):
            waits.append(f"synchronisation takes {units.time(synchronising_ns)}")
        waits += [f"{name}() takes {units.time(ns)}" for name, ns in self.os_calls[:1]]
        if waits:
            yield f"Of thread {self.thread.tid}'s part, {', '.join(waits)}."
        if self.bystander:
            yield (
                f"{self.bystander.call}() of thread {self.bystander.tid} covers "
                f"{units.share(self.bystander.share_of_idle)} of the idle time too, "
                "but nothing shows the launching thread waiting for it."
            )

    @property
    def sampled_function(self) -> SampledFunction | None:
        function = self.function
        tells = function and function.of >= FEWEST_SAMPLES and function.share >= LEAST_SAMPLE_SHARE
        return function if tells else None

    def evidence(self) -> Iterator[Evidence]:
        for tid, ns in self.late_ns_of_others.items():
            yield Evidence(f"host late: thread {tid}", ns, "ns", "host-late time of this launching thread")
        by_state = f"host-late time of thread {self.thread.tid} by its state"
        if self.thread.off_cpu is None:
            by_state += "; context switches were not captured"
        if self.thread.off_cpu is not None:
            yield Evidence("host late: off the CPU", self.states.off_cpu.measure_ns, "ns", by_state)
        rest = "running" if self.thread.off_cpu is not None else "running or waiting"
        for label, time in (
            ("host late: in CUDA calls", self.states.cuda_call),
            ("host late: in OS calls", self.states.os_call),
            (f"host late: {rest}", self.states.running),
        ):
            if time:
                yield Evidence(label, time.measure_ns, "ns", by_state)
        if self.synchronising_ns is not None:
            formula = "host-late time inside synchronising CUDA calls"
            yield Evidence("host late: in CUDA calls: synchronising", self.synchronising_ns, "ns", formula)
        for cover in self.covers:
            inside_ns = (cover.ranges & self.idle).measure_ns
            formula = f"idle time covered by {cover.count} ranges of the launching thread"
            yield Evidence(f"idle inside '{cover.pattern}'", inside_ns, "ns", formula)
        for name, ns in self.os_calls:
            yield Evidence(f"in {name}()", ns, "ns", f"host-late time of thread {self.thread.tid} inside this OS call")
        for sampled in self.sampled:
            if sampled.share >= LEAST_SHOWN_SHARE:
                samples = f"{sampled.count} of {sampled.of} samples"
                yield Evidence(f"samples {sampled.activity.label}", sampled.share, "share", samples)
        if self.function:
            leaf = f"samples with this leaf, of {self.function.of}"
            yield Evidence(f"samples in {self.function.name}", self.function.share, "share", leaf)

    def next_steps(self) -> Iterator[str]:
        function = self.sampled_function
        if self.where is None and function and not self.sampled_activity:
            yield (
                f"Find what {function.name} does there ({units.share(function.share)} of the samples): "
                "make it cheaper, or hand it to another thread."
            )
        if self.activity:
            yield self.activity.do
        if self.where is None:
            if function is None:
                yield _NAME_THE_GAPS if len(self.thread.ranges) else _PUT_RANGES
        elif self.is_launching_code:
            yield (
                f"'{self.where}' is the code that launches: look inside it, launch less often (compile, fuse, CUDA "
                "graphs), or let it run ahead of the device."
            )
        else:
            yield (
                f"Overlap '{self.where}' with the device: launch the next step first, "
                "or do this work in another thread or process."
            )
        if not self.sampled and not self.function and self.how_to_sample:
            yield f"See which code it is: {self.how_to_sample}."

    @property
    def refute(self) -> str:
        if self.where is not None and not self.is_launching_code:
            return f"Take the work out of '{self.where}' for one run: if the gaps stay, it was not the cause."
        return (
            "Launch the same work ahead of time, or replay it as a CUDA graph: if the gaps stay, it was not the host."
        )


def tell(trace: Trace, account: IdleAccount, *, named_share: float) -> HostStory | None:
    """The story of an idle account's host-late time; None when it has none."""
    if account.latest_thread is None or not account.host_late:
        return None
    thread = trace.threads[account.latest_thread]
    late = account.host_late_of[thread.thread_id]
    states = states_within(thread, late)
    nameable = late.no_shorter_than(2 * trace.clock_error_ns)
    covers = sorted(cover_by_ranges(thread, nameable, least_share=named_share), key=lambda cover: -cover.covered_ns)
    others = {
        trace.threads[i].tid: part.measure_ns for i, part in account.host_late_of.items() if i != thread.thread_id
    }
    return HostStory(
        thread=thread,
        tick_ns=trace.tick_ns,
        how_to_sample=None if trace.source.captured("python") else _SAMPLING.get(trace.source.kind),
        idle=account.idle,
        late=late,
        late_ns_of_others=dict(sorted(others.items(), key=lambda item: -item[1])),
        states=states,
        covers=covers,
        sampled=activities.sampled_activities(trace.case, thread, states.running),
        function=activities.most_sampled_function(trace.case, thread, states.running),
        os_calls=activities.longest_os_calls(trace.case, thread, late),
        synchronising_ns=None if trace.source.are_names_lost else (late & thread.synchronising).measure_ns,
        bystander=_bystander(trace, thread, account.idle),
    )


def _bystander(trace: Trace, launching: HostThread, idle: Intervals) -> Bystander | None:
    found = []
    for thread in trace.threads.values():
        if thread.process_id == launching.process_id and thread is not launching:
            for call, ns in activities.longest_os_calls(trace.case, thread, idle, most=1):
                found.append(Bystander(thread.tid, call, ns / idle.measure_ns))
    most = max(found, key=lambda bystander: bystander.share_of_idle, default=None)
    return most if most and most.share_of_idle >= 0.5 else None


def longest_gaps(idle: Intervals, *, tick_ns: int) -> Intervals:
    """The gaps no shorter than the largest power of ten (in ns) that still leaves nine tenths of the idle time.

    Gaps below two ticks of a coarse trace may be rounding and are never among them.
    """
    lengths = idle.lengths_ns
    long = lengths >= (2 * tick_ns if tick_ns > 1 else 1)
    for exponent in range(10, 0, -1):
        longer = long & (lengths >= 10**exponent)
        if lengths[longer].sum() >= 0.9 * lengths.sum():
            long = longer
            break
    return Intervals(idle.starts_ns[long], idle.ends_ns[long])
