"""How far the capture itself can be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.rules import pacing, queries
from diag.rules.engine import device_rule, source_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.overhead import Overhead
from diag.timeline.trace import Trace

_LOST = re.compile(
    r"not all (.+?) events might have been collected|^(.*(?:dropped|lost).*)", re.IGNORECASE | re.MULTILINE
)


@source_rule("capture.lost", needs=("diagnostic",))
def lost_events(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """The profiler says that it lost events.

    Asks      Did the profiler itself report events that it produced but did not collect?
    Decides   Fires for messages of severity warning or error that say so ("Not all CUDA events might have been
              collected", dropped, lost).
    Matters   What was lost looks like idle time, a missing launch or a step that never happened.
    Do        Capture a shorter stretch, fewer kinds of events, or flush more often (nsys --cuda-flush-interval).
    Refute    Capture again with a shorter duration: if the message is gone and the figures stay, nothing was lost here.
    """
    rows = trace.case.rows(_MESSAGES, (trace.source.id,))
    kinds = [match.group(1) or match.group(2).strip() for row in rows if (match := _LOST.search(row["text"]))]
    subject = Subject(trace.source.id)
    if not kinds:
        yield Clear(subject)
        return
    listed = ", ".join(dict.fromkeys(kinds))
    yield Finding(
        title="The profiler may have lost events",
        claim=f"The profiler warns that not all events may have been collected: {listed}. "
        "Idle time is then an upper bound, and counts are lower bounds.",
        subject=subject,
        level="info",
        confidence="low",
        counterfactual="Nothing would be won; the figures would be surer.",
        evidence=[Evidence("messages", len(kinds), "count", "diagnostics that speak of lost events", _MESSAGES_SQL)],
        refute="Capture again with a shorter duration: if the message is gone and the figures stay, nothing was lost.",
        next=["Capture a shorter stretch or fewer kinds of events."],
    )


@source_rule("capture.unread")
def unread_events(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """What the report holds and diag could not read.

    Asks      Was every event that the report declares read, and every field of it understood?
    Decides   Declared events, less those read and those of a class that is not understood, are lost: fires for any.
              Classes and fields that are not understood cannot be told, and are counted. Exports do not say.
    Matters   An event that was not read looks as if it had not happened.
    Do        Copy the file again; or let nsys read it (--with-nsys-export), which understands more.
    Refute    The report of `--with-nsys-export` has the same figures: then nothing that matters was missing.
    """
    source = trace.source
    if source.events_declared is None or source.events_read is None:
        return
    rows = trace.case.rows(_UNREAD, (source.id,))
    n_of_unknown_classes = sum(row["count"] for row in rows if "." not in row["what"])
    n_lost = source.events_declared - source.events_read - n_of_unknown_classes
    subject = Subject(source.id)
    if n_lost > 0:
        yield _lost_in_file(subject, n_lost, source.events_declared)
    if rows:
        most = ", ".join(f"{row['what']} in {units.count(row['count'], 'event')}" for row in rows[:_MOST_UNREAD])
        more = f" and {len(rows) - _MOST_UNREAD} more (table unread)" if len(rows) > _MOST_UNREAD else ""
        yield CannotTell(subject, f"the report holds classes and fields that diag does not understand: {most}{more}")
    elif n_lost <= 0:
        yield Clear(subject)


def _lost_in_file(subject: Subject, n_lost: int, n_declared: int) -> Finding:
    return Finding(
        title="Events of the report are lost",
        claim=f"{n_lost:,} of the {n_declared:,} events that the report declares could not be read: the file is cut "
        "short or damaged. Counts and times are lower bounds, and idle time is an upper bound.",
        subject=subject,
        level="info",
        confidence="low",
        counterfactual="Nothing would be won; the figures would be whole.",
        evidence=[Evidence("lost events", n_lost, "count", "declared - read - of classes not understood", _EVENTS_SQL)],
        refute="Copy the file again from where it was made: if the figures stay, nothing that matters was lost.",
        next=["Copy the report again, and compare its size and checksum with the original's."],
    )


@device_rule("capture.coverage", needs=("api",))
def launch_coverage(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Operations whose launching call was not captured.

    Asks      For what share of the operations does the trace hold the call that launched them?
    Decides   Operations joined with the process' API calls by correlation id; fires below `launched_share`.
    Matters   Without the call, neither the range around an operation nor the cause of the gap before it is known.
    Do        Start the capture before the work is launched (warm up first), and keep the API trace on.
    Refute    The rest behaves alike: if a capture that starts earlier shows other causes, the missing part mattered.
    """
    missing = 1.0 - device.launched_share
    if device.launched_share >= limits["launched_share"]:
        yield Clear(subject_of(device))
        return
    n_missing = round(missing * len(device.ops))
    kernel_missing = device.unlaunched_share_of_kernels
    sql = queries.unlaunched_operations(device)
    yield Finding(
        title="Part of the work was launched out of sight",
        claim=f"{units.share(missing)} of the GPU operations ({n_missing:,} of {len(device.ops):,}; "
        f"{units.share(kernel_missing)} of the kernels) have no API row: they were launched before the capture began, "
        "or by calls that were not recorded. Causes of gaps and times of ranges speak for the others only.",
        subject=subject_of(device),
        level="info",
        counterfactual="Nothing would be won; the attribution would be complete.",
        evidence=[
            Evidence(
                "operations without a launching call", n_missing, "count", "no API row with their correlation id", sql
            ),
            Evidence("their share", missing, "share", "of all operations in the window", sql),
            Evidence("share of kernels", kernel_missing, "share", "of the kernels in the window", sql),
        ],
        refute="Capture from before the first launch: if the causes stay the same, the missing part did not matter.",
        next=["Start the capture earlier, or let the device run dry (synchronise) where the capture begins."],
    )


@device_rule("capture.profiler_cost", needs=("overhead",))
def profiler_cost(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """What the profiler itself cost.

    Asks      What share of a device's window did the profiler spend on its own work in that process, and how much of it
              could have kept the device waiting?
    Decides   |union of buffer flushes, instrumentation and resource handling| inside the window / window; fires at
              `share`, or when the part of it in which the device idles reaches `idle_share`. Driver work that the
              profiler merely reports (command buffer full, module loading, JIT) is the program's own and does not
              count. Only rows that the profiler recorded count: what it costs to record each call is in no trace.
    Matters   Time that only exists while profiling must not be optimised; idle time that coincides with it may be the
              profiler's, and on the launching thread in its host-late time it is.
    Do        Profile fewer kinds of events, or a shorter stretch after warming up.
    Refute    Time the program without the profiler: if it takes as long, this cost was hidden.
    """
    overhead = trace.overhead_of(device.process_id, "profiler")
    account = trace.idle_of(device)
    cost = overhead.union() & device.window
    in_idle = cost & account.idle
    if device.share(cost) < limits["share"] and device.share(in_idle) < limits["idle_share"]:
        yield Clear(subject_of(device))
        return
    starving_ns = sum(
        (late & overhead.union(overhead.thread_id == thread)).measure_ns
        for thread, late in account.host_late_of.items()
    )
    sql = queries.profiler_overheads(device)
    yield Finding(
        title="The profiler takes a visible part of the window",
        claim=f"For {units.time(cost.measure_ns)} ({units.share(device.share(cost))} of the window) the profiler "
        "flushed buffers or instrumented code in this process. Meanwhile the device idles for "
        f"{units.time(in_idle.measure_ns)}, which may be the profiler's doing; for {units.time(starving_ns)} of that "
        "the profiler held up the very thread that the device waited for.",
        subject=subject_of(device),
        share=device.share(cost),
        level="info",
        counterfactual="Without the profiler the run would be up to this much shorter: no gain for the program.",
        evidence=[
            Evidence(
                "profiler's own work", cost.measure_ns, "ns", "union of its overhead rows, cut to the window", sql
            ),
            Evidence(
                "while the device idles", in_idle.measure_ns, "ns", "that union within the device's idle time", sql
            ),
            Evidence(
                "on the thread waited for", starving_ns, "ns", "a launching thread's rows in its host-late time", sql
            ),
            *_by_kind(trace, device, overhead, sql),
        ],
        refute="Time the program without the profiler: if it takes as long, this cost was hidden.",
        next=["Capture fewer kinds of events, or a shorter stretch after warming up."],
        extent=cost,
    )


@device_rule("capture.graphs", needs=("api",))
def recorded_graphs(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Work of CUDA graphs that was not recorded, or only as a whole.

    Asks      Does the trace show what launches of CUDA graphs ran on the device?
    Decides   A graph launch left no row if it succeeded, was not captured into another graph, and no operation of its
              process has its correlation id; a launch may also be one row for all its nodes. Fires when
              `unrecorded_share` of the process' graph launches in the window left no row, or when launches that are one
              row take `share` of the window.
    Matters   Work without rows looks like idle time: busy is a lower bound then. One row for a launch hides the gaps
              between its nodes, so that busy is an upper bound, and no kernel inside has a name.
    Do        Capture with `--cuda-graph-trace=node`, which costs more time while profiling.
    Refute    Capture node by node: if busy and idle time stay, nothing was hidden.
    """
    n_unrecorded = len(trace.unrecorded_graph_launches(device))
    n_recorded = int(pacing.launches_of(device).is_graph.sum())
    missing = n_unrecorded / max(n_unrecorded + n_recorded, 1)
    as_a_whole = device.share(device.graph_time)
    if (not n_unrecorded or missing < limits["unrecorded_share"]) and as_a_whole < limits["share"]:
        yield Clear(subject_of(device))
        return
    rows = queries.operations(device, "graph, graph_exec, stream, start_ns, end_ns", "kind = 'graph'")
    n_whole = device.count(gpu_work.GRAPH)
    calls = queries.graph_launches(device)
    yield Finding(
        title="Work of CUDA graphs is not in the trace" if n_unrecorded else "CUDA graphs are recorded as a whole",
        claim=" ".join(_on_graphs(device, n_unrecorded, n_recorded, n_whole)),
        subject=subject_of(device),
        level="info",
        confidence="low" if n_unrecorded else "high",
        counterfactual="Nothing would be won; the figures would be surer.",
        evidence=[
            Evidence("graph launches with rows", n_recorded, "count", "calls that launched work in the window", calls),
            Evidence("graph launches without", n_unrecorded, "count", "no operation has their correlation id", calls),
            Evidence("graph launches as one row", n_whole, "count", "operations of kind 'graph'", rows),
            Evidence("their time", device.graph_time.measure_ns, "ns", "union of those rows, cut to the window", rows),
        ],
        refute="Capture node by node: if busy and idle time stay, nothing was hidden.",
        next=["Capture the nodes too: nsys profile --trace=cuda --cuda-graph-trace=node"],
    )


def _on_graphs(device: DeviceTimeline, n_unrecorded: int, n_recorded: int, n_whole: int) -> Iterator[str]:
    if n_unrecorded:
        yield (
            f"{units.count(n_unrecorded, 'launch')} of CUDA graphs in this process left no row on any device, beside "
            f"{n_recorded:,} on this one that did. What they ran looks like idle time: busy time is a lower bound, "
            f"idle time ({units.time(device.idle.measure_ns)}) an upper one."
        )
    if n_whole:
        whole = device.graph_time.measure_ns
        yield (
            f"{units.count(n_whole, 'launch')} of CUDA graphs, {units.share(device.share(whole))} of the window "
            f"({units.time(whole)}), are one row each: gaps between their nodes count as busy, and the tables of "
            "kernels lack what ran inside."
        )


def _by_kind(trace: Trace, device: DeviceTimeline, overhead: Overhead, sql: str) -> Iterator[Evidence]:
    """What the profiler did, as it names it, longest first."""
    times = {
        trace.names.get(name_id, "not named"): overhead.union(overhead.name_id == name_id) & device.window
        for name_id in np.unique(overhead.name_id).tolist()
    }
    for name, time in sorted(times.items(), key=lambda item: (-item[1].measure_ns, item[0])):
        if time:
            yield Evidence(f"profiler: {name}", time.measure_ns, "ns", "union of these rows, cut to the window", sql)


_MOST_UNREAD = 5
_UNREAD = "SELECT what, count FROM unread WHERE source_id = ? ORDER BY count DESC, what"
_EVENTS_SQL = "SELECT path, events_declared, events_read FROM source"
_MESSAGES = "SELECT text FROM diagnostic WHERE source_id = ? AND severity IN ('warning', 'error') ORDER BY rowid"
_MESSAGES_SQL = "SELECT severity, text FROM diagnostic WHERE severity IN ('warning', 'error')"
