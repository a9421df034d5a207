"""Traces without GPU work: where the host itself spends its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules import activities
from diag.rules.engine import source_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits
from diag.timeline import nesting
from diag.timeline.host import HostThread
from diag.timeline.intervals import Intervals
from diag.timeline.ranges import OPEN_NS
from diag.timeline.trace import Trace


@source_rule("host.data_loader", needs=("range",), host_only=True)
def data_loader(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """The program waits for its data loader (traces without GPU work).

    Asks      How much of the main thread's time is inside the data loader?
    Decides   |union of the thread's data-loader ranges| / window of the thread's ranges; fires at `share`. Names that
              mean a data loader are in `rules/activities.toml`.
    Matters   Time in the loader is time in which the training step cannot run; workers hide it completely.
    Do        Give the loader workers (num_workers > 0, persistent_workers=True) and prefetch; make a sample cheaper.
    Refute    Feed the same batch again and again: if a step takes as long, the loader was not the limit.
    """
    main = _main(trace)
    if main is None:
        yield CannotTell(Subject(trace.source.id), "no thread has ranges that span any time")
        return
    loader = activities.data_loader()
    ids = np.unique(main.thread.ranges.name_id).tolist()
    named = [i for i in ids if loader.in_ranges is not None and loader.in_ranges.search(trace.patterns[i])]
    of = np.isin(main.thread.ranges.name_id, named)
    time = Intervals.union_of(main.thread.ranges.start_ns[of], main.thread.ranges.end_ns[of]) & main.window
    share = time.measure_ns / main.window_ns
    if share < limits["share"]:
        yield Clear(main.subject)
        return
    outermost = np.flatnonzero(of & nesting.outermost_of_label(of.astype(np.int64), main.thread.parents))
    name = _most_common(main.thread.ranges.name_id[outermost], trace.patterns)
    inside = _self_times(main, within=time)[:3]
    yield Finding(
        title="The data loader holds up the program",
        claim=f"The main thread {main.thread.tid} spends {units.share(share)} of its time "
        f"({units.time(time.measure_ns)} of {units.time(main.window_ns)}) in the data loader ('{name}', "
        f"{units.count(len(outermost), 'time')}).",
        subject=main.subject,
        share=share,
        recoverable_ns=time.measure_ns,
        counterfactual=f"With every batch ready the run would be at most {units.time(time.measure_ns)} shorter.",
        evidence=[
            Evidence("in the data loader", time.measure_ns, "ns", "union of its ranges on the main thread", main.sql),
            Evidence("window", main.window_ns, "ns", "first start to last end of the main thread's ranges"),
            Evidence("calls", len(outermost), "count", "outermost data-loader ranges"),
            *(_self_evidence(name, ns, main) for name, ns in inside),
        ],
        refute="Feed the same batch again and again: if a step takes as long, the loader was not the limit.",
        next=[
            loader.do,
            f"See what makes a sample expensive: {units.time(inside[0][1])} of it is '{inside[0][0]}' itself.",
        ],
        extent=time,
    )


@source_rule("host.hot", needs=("range",), host_only=True)
def hot_host_code(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """Operators and functions by self time (traces without GPU work).

    Asks      Which operator, range or function does the main thread spend its own time in?
    Decides   Self time of a range = its duration - that of the ranges inside it, summed per name pattern; fires for the
              largest at `share` of the window of the thread's ranges.
    Matters   Self time is what would be saved if only this code were free; inclusive time counts its callees too.
    Do        Make this code cheaper, call it less often, or move it off the main thread.
    Refute    Replace it by a stub: if the run takes as long, the time was spent waiting in it, not by it.
    """
    main = _main(trace)
    if main is None:
        yield CannotTell(Subject(trace.source.id), "no thread has ranges that span any time")
        return
    ranked = _self_times(main)[:5]
    share = ranked[0][1] / main.window_ns
    if share < limits["share"]:
        yield Clear(main.subject)
        return
    name, top_ns = ranked[0]
    yield Finding(
        title=f"Hot on the host: {name}",
        claim=f"{units.share(share)} of the main thread's time ({units.time(top_ns)} of "
        f"{units.time(main.window_ns)}) is spent in '{name}' itself, not in what it calls.",
        subject=main.subject,
        share=share,
        recoverable_ns=top_ns,
        confidence="medium",
        counterfactual=f"Were '{name}' free, the run would be at most {units.time(top_ns)} shorter.",
        evidence=[_self_evidence(text, ns, main) for text, ns in ranked if ns > 0],
        refute="Replace it by a stub: if the run takes as long, the time was spent waiting in it, not by it.",
        next=[f"Look into it: diag report INPUT --range '{name}'", "Sample its code with py-spy or nsys --sample."],
        extent=_time_in(main, name),
    )


@source_rule("host.os_calls", needs=("os_call",), host_only=True)
def os_calls(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """OS calls that hold up the main thread (traces without GPU work).

    Asks      What share of the main thread's time is inside OS calls, and which?
    Decides   |union of the thread's OS runtime calls| / window; fires at `share`. Only the main thread counts: a
              background thread that sits in `poll` holds up nobody.
    Matters   Input, output, locks and sleeps are waiting that can be overlapped or avoided.
    Do        Read ahead, write behind, use fewer and larger calls, find the holder of the lock.
    Refute    Serve the same data from memory: if the run takes as long, the calls were not the limit.
    """
    thread_id = trace.main_thread
    thread = None if thread_id is None else trace.threads[thread_id]
    if thread is None or not len(thread.os_calls.start_ns):
        yield CannotTell(Subject(trace.source.id), "the main thread has no OS runtime calls in the trace")
        return
    window = _window_of(trace, thread)
    if not window:
        yield CannotTell(Subject(trace.source.id), "the main thread's events span no time")
        return
    time = thread.in_os & window
    subject = Subject(trace.source.id, process=trace.process_of(thread.thread_id)[0], window=window.span)
    share = time.measure_ns / window.measure_ns
    if share < limits["share"]:
        yield Clear(subject)
        return
    longest = activities.longest_os_calls(trace.case, thread, time, most=5)
    yield Finding(
        title=f"The main thread waits in {longest[0][0]}()",
        claim=f"{units.share(share)} of the main thread's time ({units.time(time.measure_ns)}) is inside OS calls: "
        + ", ".join(f"{name} {units.time(ns)}" for name, ns in longest)
        + ".",
        subject=subject,
        share=share,
        recoverable_ns=time.measure_ns,
        confidence="medium",
        counterfactual=f"Were they free, the run would be at most {units.time(time.measure_ns)} shorter.",
        evidence=[
            Evidence(f"in {name}()", ns, "ns", "union of these calls on the main thread") for name, ns in longest
        ],
        refute="Serve the same data from memory: if the run takes as long, the calls were not the limit.",
        next=["See who calls it: the sampled stacks of these calls, or py-spy dump --native while it runs."],
        extent=time,
    )


@dataclass(frozen=True, eq=False)
class _Main:
    """The main thread of a trace without GPU work, and the time its ranges span."""

    thread: HostThread
    window: Intervals
    subject: Subject
    sql: str

    @property
    def window_ns(self) -> int:
        return self.window.measure_ns


def _main(trace: Trace) -> _Main | None:
    if trace.main_thread is None:
        return None
    thread = trace.threads[trace.main_thread]
    window = _window_of(trace, thread)
    if not len(thread.ranges) or not window:
        return None
    pid, _ = trace.process_of(thread.thread_id)
    return _Main(
        thread,
        window,
        Subject(trace.source.id, process=pid, window=window.span),
        _RANGES.format(source=trace.source.id, thread=thread.thread_id),
    )


def _window_of(trace: Trace, thread: HostThread) -> Intervals:
    """First start to last end of what the thread did, cut to the scope; open ranges end with the last closed event."""
    starts = np.concatenate((thread.ranges.start_ns, thread.os_calls.start_ns))
    closed = thread.ranges.end_ns[thread.ranges.end_ns != OPEN_NS]
    ends = np.concatenate((closed, thread.os_calls.end_ns, starts))
    window = Intervals.single(int(starts.min()), int(ends.max())) if len(starts) else Intervals.empty()
    return window if trace.scope is None else window & trace.scope


def _self_times(main: _Main, within: Intervals | None = None) -> list[tuple[str, int]]:
    """Name patterns of the main thread's ranges by their self time, longest first; only ranges that start `within`."""
    ranges = main.thread.ranges
    durations_ns = main.window.measure_within(ranges.start_ns, ranges.end_ns)
    self_ns = nesting.self_times_ns(durations_ns, main.thread.parents)
    if within is not None:
        self_ns = np.where(within.contains(ranges.start_ns), self_ns, 0)
    texts = main.thread.range_patterns
    totals_ns = np.bincount(main.thread.range_labels, self_ns, len(texts)).astype(np.int64).tolist()
    return sorted(zip(texts, totals_ns, strict=True), key=lambda pair: (-pair[1], pair[0]))


def _self_evidence(name: str, ns: int, main: _Main) -> Evidence:
    return Evidence(f"self time of '{name}'", ns, "ns", "sum of duration - that of the ranges inside it", main.sql)


def _time_in(main: _Main, pattern: str) -> Intervals:
    ranges = main.thread.ranges
    of = main.thread.range_labels == main.thread.range_patterns.index(pattern)
    return Intervals.union_of(ranges.start_ns[of], ranges.end_ns[of]) & main.window


def _most_common(name_ids: np.ndarray[tuple[int, ...], np.dtype[np.int32]], patterns: Mapping[int, str]) -> str:
    ids, counts = np.unique(name_ids, return_counts=True)
    return patterns[int(ids[np.argmax(counts)])]


_RANGES = (
    "SELECT n.text, r.start_ns, r.end_ns FROM cpu_range r JOIN name n ON n.id = r.name_id "
    "WHERE r.source_id = {source} AND r.thread_id = {thread} ORDER BY r.start_ns"
)
