"""The time of a host thread that rules about host threads speak of, and how much of it a cause takes.

With GPU work it is the host-late time of the thread that keeps the device waiting longest; without, the window of the
main thread. Whatever such a rule names is that thread's own state, never what another thread does meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules import activities
from diag.rules.activities import Activity
from diag.rules.engine import TOO_FEW, SourceDecision, source_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Confidence, Evidence, Finding, Severity, Subject
from diag.rules.main_thread import main_thread
from diag.rules.thresholds import Limits
from diag.timeline.device import DeviceTimeline
from diag.timeline.host import HostThread
from diag.timeline.intervals import Intervals, Times
from diag.timeline.trace import Trace

FEWEST_SAMPLES = 100
"""With a hundred samples a share is known to a tenth of the whole (1 / sqrt(n)); fewer decide nothing."""


@dataclass(frozen=True, eq=False)
class HostTime:
    """A set of time of one thread, in the window of a subject."""

    trace: Trace
    thread: HostThread
    when: Intervals
    window_ns: int
    subject: Subject

    @property
    def of_device(self) -> bool:
        return self.subject.device is not None

    @property
    def whose(self) -> str:
        return f"{'launching' if self.of_device else 'main'} thread {self.thread.tid}"

    @property
    def in_words(self) -> str:
        """What `when` is, to follow "of"."""
        return f"the host-late time of thread {self.thread.tid}" if self.of_device else "the main thread's window"

    @property
    def on_cpu(self) -> Intervals:
        """`when` without the time that the thread is known to be off its core."""
        return self.when if self.thread.off_cpu is None else self.when - self.thread.off_cpu

    def sampled(self, activity: Activity) -> SampledTime:
        """The samples with a frame of the activity anywhere in their stack."""
        samples = self.thread.samples
        inside = self.when.contains(samples.time_ns)
        stacks, counts = np.unique(samples.stack_id[inside], return_counts=True)
        told = activities.frames_that_tell(self.trace.case, stacks.tolist(), activity)
        symbols: Counter[str] = Counter()
        for stack_id, count in zip(stacks.tolist(), counts.tolist(), strict=True):
            if stack_id in told:
                symbols[told[stack_id]] += count
        hits = inside & np.isin(samples.stack_id, list(told))
        most_frequent = [symbol for symbol, _ in symbols.most_common(3)]
        return SampledTime(self, activity, int(inside.sum()), samples.time_ns[hits], most_frequent)


@dataclass(frozen=True, eq=False)
class SampledTime:
    """What samples tell of an activity in a host time. Nsight Systems samples threads that run, not those that wait."""

    time: HostTime
    activity: Activity
    n_samples: int  # all of them
    times_ns: Times  # of those that tell the activity
    symbols: Sequence[str]  # the functions that told, most frequent first

    @property
    def decides(self) -> bool:
        return self.n_samples >= FEWEST_SAMPLES

    @property
    def extent(self) -> Intervals:
        """Around each sample the thread's usual distance between samples, as far as it was on a core."""
        distances_ns = np.diff(self.time.thread.samples.time_ns)
        period_ns = int(np.median(distances_ns)) if len(distances_ns) else 0
        starts_ns = self.times_ns - period_ns // 2
        return Intervals.union_of(starts_ns, starts_ns + period_ns) & self.time.on_cpu

    @property
    def in_words(self) -> str:
        return f"{len(self.times_ns)} of its {self.n_samples} samples there"

    def evidence(self) -> Iterator[Evidence]:
        formula = f"samples within {self.time.in_words}, by functions in their stack ({', '.join(self.symbols)})"
        yield Evidence(f"samples {self.activity.label}", len(self.times_ns), "count", formula)
        yield Evidence("samples", self.n_samples, "count", f"of {self.time.whose} within {self.time.in_words}")

    @property
    def too_few(self) -> CannotTell:
        because = f"only {self.n_samples} samples of {self.time.whose} there; a share needs {FEWEST_SAMPLES}"
        return CannotTell(self.time.subject, because)


@dataclass(frozen=True, eq=False)
class Spent:
    """Part of a host time that a cause takes."""

    time: HostTime
    extent: Intervals
    is_estimate: bool = False

    @classmethod
    def within(cls, time: HostTime, part: Intervals) -> Spent:
        return cls(time, part & time.when)

    @classmethod
    def as_sampled(cls, sampled: SampledTime) -> Spent:
        return cls(sampled.time, sampled.extent, is_estimate=True)

    @property
    def ns(self) -> int:
        return self.extent.measure_ns

    @property
    def share(self) -> float:
        return self.ns / self.time.window_ns


def finding(
    spent: Spent,
    *,
    doing: str,
    claim: str,
    evidence: Sequence[Evidence],
    refute: str,
    do: Sequence[str],
    confidence: Confidence | None = None,
    level: Severity | None = None,
) -> Finding:
    """The finding that a thread spends time so: what it is `doing`, and a claim that goes on from the figures."""
    time = spent.time
    of_late = f", {units.share(spent.ns / time.when.measure_ns)} of {time.in_words}" if time.of_device else ""
    waits = " while the device waits for its next launch" if time.of_device else ""
    return Finding(
        title=f"GPU starved: the launching thread is {doing}" if time.of_device else f"The main thread is {doing}",
        claim=f"For {'about ' if spent.is_estimate else ''}{units.time(spent.ns)} ({units.share(spent.share)} of the "
        f"window{of_late}) {time.whose} is {doing}{waits}. {claim}",
        subject=time.subject,
        share=spent.share,
        recoverable_ns=spent.ns,
        confidence=confidence or ("medium" if spent.is_estimate else "high"),
        counterfactual=f"Without it the window would be at most {units.time(spent.ns)} shorter.",
        evidence=evidence,
        refute=refute,
        next=do,
        level=level,
        extent=spent.extent,
    )


HostTimeRule = Callable[[HostTime, Limits], Iterator[Answer]]


def host_time_rule(rule_id: str, *, needs: tuple[str, ...] = ()) -> Callable[[HostTimeRule], HostTimeRule]:
    """Registers a rule that answers for the thread that keeps each device waiting, or else for the main thread.

    Where all of that time is less than the rule's `share` of the window, the rule is clear without a look.
    """

    def register(decide: HostTimeRule) -> HostTimeRule:
        def decide_all(trace: Trace, limits: Limits) -> Iterator[Answer]:
            for time in _host_times(trace):
                if not isinstance(time, HostTime):
                    yield time
                elif time.when.measure_ns < limits["share"] * time.window_ns:
                    yield Clear(time.subject)
                else:
                    yield from decide(time, limits)

        rule: SourceDecision = decide_all
        rule.__doc__ = decide.__doc__
        source_rule(rule_id, needs=needs)(rule)
        return decide

    return register


def _host_times(trace: Trace) -> Iterator[HostTime | Clear | CannotTell]:
    for device in trace.devices:
        yield _host_late_time(trace, device)
    if not trace.devices:
        main = main_thread(trace)
        if main is None:
            yield CannotTell(Subject(trace.source.id), "nothing that a thread did spans any time")
        else:
            yield HostTime(trace, main.thread, main.window, main.window_ns, main.subject)


def _host_late_time(trace: Trace, device: DeviceTimeline) -> HostTime | Clear | CannotTell:
    subject = subject_of(device)
    if not device.has_shares:
        return CannotTell(subject, TOO_FEW.format(n=len(device.ops)))
    account = trace.idle_of(device)
    if account.latest_thread is not None and account.host_late:
        thread = trace.threads[account.latest_thread]
        return HostTime(trace, thread, account.host_late_of[thread.thread_id], device.window_ns, subject)
    if account.not_captured:
        return CannotTell(subject, "which thread kept the device waiting: the launching calls are not in the trace")
    return Clear(subject)
