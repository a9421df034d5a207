"""How far the capture itself can be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.model import units
from diag.rules import queries
from diag.rules.engine import device_rule, source_rule, subject_of
from diag.rules.finding import Answer, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits
from diag.timeline.device import DeviceTimeline
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

    Asks      What share of a device's window did the profiler spend on its own work in that process?
    Decides   |union of buffer flushes, instrumentation and resource handling| inside the window / window; fires at
              `share`. Driver work that the profiler merely reports (command buffer full, module loading, JIT) is the
              program's own and does not count.
    Matters   Time that only exists while profiling must not be optimised.
    Do        Profile fewer kinds of events, or a shorter stretch after warming up.
    Refute    Time the program without the profiler: if it takes as long, this cost was hidden.
    """
    cost = trace.overhead_of(device.process_id, "profiler") & device.window
    share = device.share(cost)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    sql = queries.profiler_overheads(device)
    formula = "union of its overhead rows, cut to the window"
    yield Finding(
        title="The profiler takes a visible part of the window",
        claim=f"{units.time(cost.measure_ns)} ({units.share(share)}) of the window the profiler flushed buffers or "
        "instrumented code in this process.",
        subject=subject_of(device),
        share=share,
        level="info",
        counterfactual="Without the profiler the run would be up to this much shorter: no gain for the program.",
        evidence=[Evidence("profiler's own work", cost.measure_ns, "ns", formula, sql)],
        refute="Time the program without the profiler: if it takes as long, this cost was hidden.",
        next=["Capture fewer kinds of events, or a shorter stretch after warming up."],
        extent=cost,
    )


_MESSAGES = "SELECT text FROM diagnostic WHERE source_id = ? AND severity IN ('warning', 'error') ORDER BY rowid"
_MESSAGES_SQL = "SELECT severity, text FROM diagnostic WHERE severity IN ('warning', 'error')"
