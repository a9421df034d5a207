"""Traces without GPU work: where the host itself spends its time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules import activities, queries
from diag.rules.engine import source_rule
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.main_thread import MainThread, main_thread
from diag.rules.thresholds import Limits
from diag.timeline import nesting
from diag.timeline.intervals import Intervals, measure_by_label
from diag.timeline.trace import Trace


@source_rule("host.data_loader", needs=("range",), host_only=True)
def data_loader(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """The program waits for its data loader (traces without GPU work).

    Asks      How much of the main thread's time is inside the data loader?
    Decides   |union of the thread's data-loader ranges| / window of what the thread did; fires at `share`. Names that
              mean a data loader are in `rules/activities.toml`. Without any it is clear only if PyTorch's operators
              were recorded, among which its loader names itself.
    Matters   Time in the loader is time in which the training step cannot run; workers hide it completely.
    Do        Give the loader workers (num_workers > 0, persistent_workers=True) and prefetch; make a sample cheaper.
    Refute    Feed the same batch again and again: if a step takes as long, the loader was not the limit.
    """
    main = main_thread(trace)
    if main is None or not len(main.thread.ranges):
        yield CannotTell(Subject(trace.source.id), "no thread has ranges that span any time")
        return
    loader = activities.data_loader()
    ids = np.unique(main.thread.ranges.name_id).tolist()
    named = [i for i in ids if loader.in_ranges is not None and loader.in_ranges.search(trace.patterns[i])]
    if not named and not trace.source.captured("operator"):
        yield CannotTell(main.subject, "no range names a data loader (put an NVTX range around it)")
        return
    of = np.isin(main.thread.ranges.name_id, named) & _touches(main)
    time = Intervals.union_of(main.thread.ranges.start_ns[of], main.thread.ranges.end_ns[of]) & main.window
    share = time.measure_ns / main.window_ns
    if share < limits["share"]:
        yield Clear(main.subject)
        return
    outermost = np.flatnonzero(of & nesting.outermost_of_label(of.astype(np.int64), main.thread.parents))
    name = _most_common(main.thread.ranges.name_id[outermost], trace.patterns)
    inside = _self_times(main, within=time)[:3]
    sql = queries.ranges(trace, main.thread.thread_id)
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
            Evidence("in the data loader", time.measure_ns, "ns", "union of its ranges on the main thread", sql),
            Evidence("window", main.window_ns, "ns", "first start to last end of what the main thread did"),
            Evidence("calls", len(outermost), "count", "outermost data-loader ranges", sql),
            *(_self_evidence(name, ns, sql) for name, ns in inside),
        ],
        refute="Feed the same batch again and again: if a step takes as long, the loader was not the limit.",
        next=[loader.do, _inside_the_loader(*inside[0])],
        extent=time,
    )


def _inside_the_loader(name: str, ns: int) -> str:
    if activities.is_waiting(name):
        return f"It waits there for its workers ({units.time(ns)} in '{name}'): add workers, or make a sample cheaper."
    return f"See what makes a sample expensive: {units.time(ns)} of it is in '{name}' with nothing recorded inside."


@source_rule("host.hot", needs=("range",), host_only=True)
def hot_host_code(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """Operators and functions by self time (traces without GPU work).

    Asks      Which operator, range or function does the main thread spend its own time in?
    Decides   Self time of a range = its duration - that of the ranges inside it, summed per name pattern; fires for the
              largest at `share` of the window of what the thread did. Where nothing at all was recorded inside it, self
              time says only that the trace looks no deeper: then the confidence is low.
    Matters   Self time is what would be saved if only this code were free; inclusive time counts its callees too.
    Do        Make this code cheaper, call it less often, or move it off the main thread.
    Refute    Replace it by a stub: if the run takes as long, the time was spent waiting in it, not by it.
    """
    main = main_thread(trace)
    if main is None or not len(main.thread.ranges):
        yield CannotTell(Subject(trace.source.id), "no thread has ranges that span any time")
        return
    ranked = _self_times(main)[:5]
    share = ranked[0][1] / main.window_ns
    if share < limits["share"]:
        yield Clear(main.subject)
        return
    name, top_ns = ranked[0]
    looks_deeper = _has_ranges_inside(main, name)
    sql = queries.ranges(trace, main.thread.thread_id)
    yield Finding(
        title=f"The main thread waits in {name}" if activities.is_waiting(name) else f"Hot on the host: {name}",
        claim=f"{units.share(share)} of the main thread's time ({units.time(top_ns)} of "
        f"{units.time(main.window_ns)}) is spent in '{name}' with nothing recorded inside it."
        + (_AUTOGRAD if _BACKWARD.search(name) and trace.source.captured("operator") else ""),
        subject=main.subject,
        share=share,
        recoverable_ns=top_ns,
        confidence="medium" if looks_deeper else "low",
        counterfactual=f"Were '{name}' free, the run would be at most {units.time(top_ns)} shorter.",
        evidence=[_self_evidence(text, ns, sql) for text, ns in ranked if ns > 0],
        refute="Replace it by a stub: if the run takes as long, the time was spent waiting in it, not by it.",
        next=[
            f"If the program uses a GPU, capture it too ({FACTS['gpu'].how_in(trace)}): this may be a wait for it.",
            "Sample its code with py-spy or nsys --sample.",
        ],
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
    main = main_thread(trace)
    if main is None or not len(main.thread.os_calls.start_ns):
        yield CannotTell(Subject(trace.source.id), "the main thread has no OS runtime calls in the trace")
        return
    time = main.thread.in_os & main.window
    share = time.measure_ns / main.window_ns
    if share < limits["share"]:
        yield Clear(main.subject)
        return
    longest = activities.longest_os_calls(trace.case, main.thread, time, most=5)
    yield Finding(
        title=f"The main thread waits in {longest[0][0]}()",
        claim=f"{units.share(share)} of the main thread's time ({units.time(time.measure_ns)}) is inside OS calls: "
        + ", ".join(f"{name} {units.time(ns)}" for name, ns in longest)
        + ".",
        subject=main.subject,
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


_BACKWARD = re.compile(r"^(## )?backward\b|\bloss\.backward|run_backward", re.IGNORECASE)
_AUTOGRAD = (
    " PyTorch runs the backward pass of GPU work on threads of its own, for which this one waits: look for the time "
    "there."
)


def _self_times(main: MainThread, within: Intervals | None = None) -> list[tuple[str, int]]:
    """Name patterns of the main thread's ranges by their self time, longest first; only ranges that start `within`."""
    ranges = main.thread.ranges
    durations_ns = main.window.measure_within(ranges.start_ns, ranges.end_ns)
    self_ns = nesting.self_times_ns(durations_ns, main.thread.parents)
    if within is not None:
        self_ns = np.where(within.contains(ranges.start_ns), self_ns, 0)
    texts = main.thread.range_patterns
    totals_ns = np.bincount(main.thread.range_labels, self_ns, len(texts)).astype(np.int64).tolist()
    # Ranges that cross, in place of nesting, would count their common time twice.
    union_ns = measure_by_label(
        main.window.measure_within(main.window.span[0], ranges.start_ns),
        main.window.measure_within(main.window.span[0], ranges.end_ns),
        main.thread.range_labels,
    )
    at_most = [min(total_ns, union_ns.get(label, 0)) for label, total_ns in enumerate(totals_ns)]
    return sorted(zip(texts, at_most, strict=True), key=lambda pair: (-pair[1], pair[0]))


def _touches(main: MainThread) -> NDArray[np.bool_]:
    """For each range of the thread, whether it starts in the window or reaches into it."""
    ranges = main.thread.ranges
    inside_ns = main.window.measure_within(ranges.start_ns, ranges.end_ns)
    return (inside_ns > 0) | main.window.contains(ranges.start_ns)


def _self_evidence(name: str, ns: int, sql: str | None) -> Evidence:
    return Evidence(f"self time of '{name}'", ns, "ns", "sum of duration - that of the ranges inside it", sql)


def _has_ranges_inside(main: MainThread, pattern: str) -> bool:
    parents = main.thread.parents[main.thread.parents >= 0]
    return bool((main.thread.range_labels[parents] == main.thread.range_patterns.index(pattern)).any())


def _time_in(main: MainThread, pattern: str) -> Intervals:
    ranges = main.thread.ranges
    of = main.thread.range_labels == main.thread.range_patterns.index(pattern)
    return Intervals.union_of(ranges.start_ns[of], ranges.end_ns[of]) & main.window


def _most_common(name_ids: np.ndarray[tuple[int, ...], np.dtype[np.int32]], patterns: Mapping[int, str]) -> str:
    ids, counts = np.unique(name_ids, return_counts=True)
    return patterns[int(ids[np.argmax(counts)])]
