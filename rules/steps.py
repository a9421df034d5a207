"""Steps that take longer than others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diag.model import units
from diag.rules.engine import source_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals
from diag.timeline.steps import FEWEST_STEPS, find_steps
from diag.timeline.trace import Trace


@source_rule("steps.variance", needs=("range",))
def step_variance(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """Some steps take much longer than the others.

    Asks      Do all steps (iterations) take about the same time?
    Decides   Steps are ProfilerStep ranges, or the range that repeats at least five times without overlap and covers
              most of the time of the thread that launches the work. A step is slow above `slow_ratio` x the median.
              Fires when what slow steps take beyond the median is `share` of all steps' time.
    Matters   A slow step delays everything behind it; in a distributed job, every rank.
    Do        See what differs in the slow steps: logging, checkpoints, validation, a slow sample, garbage collection.
    Refute    The slow steps keep their place when the data order changes: then it is the program, not the data.
    """
    thread_id = trace.main_thread
    steps = None
    if thread_id is not None:
        steps = find_steps(trace.threads[thread_id], trace.names)
    if thread_id is None or steps is None:
        yield CannotTell(Subject(trace.source.id), f"no range repeats {FEWEST_STEPS} times and fills most of the time")
        return
    pid, _ = trace.process_of(thread_id)
    window = (int(steps.start_ns[0]), int(steps.end_ns[-1]))
    subject = Subject(trace.source.id, process=pid, range=steps.pattern, window=window)
    median_ns = float(np.median(steps.duration_ns))
    slow = steps.duration_ns > max(limits["slow_ratio"] * median_ns, median_ns + 2 * trace.tick_ns)
    excess_ns = int((steps.duration_ns[slow] - median_ns).sum())
    share = excess_ns / int(steps.duration_ns.sum())
    if share < limits["share"]:
        yield Clear(subject)
        return
    slowest = int(np.argmax(steps.duration_ns))
    yield Finding(
        title=f"{units.count(int(slow.sum()), 'slow step')} of {len(steps)}",
        claim=f"{units.count(int(slow.sum()), 'step')} of {len(steps)} ('{steps.pattern}') took more than "
        f"{limits['slow_ratio']:g} times the median of {units.time(median_ns)}; together {units.time(excess_ns)} "
        f"more than the median. The slowest, '{steps.names[slowest]}', took "
        f"{units.time(int(steps.duration_ns[slowest]))}.",
        subject=subject,
        share=share,
        recoverable_ns=excess_ns,
        confidence="medium",
        counterfactual=f"With all steps at the median the steps would take {units.time(excess_ns)} less at most.",
        evidence=[
            Evidence("steps", len(steps), "count", f"ranges '{steps.pattern}' on the launching thread"),
            Evidence("median step", int(median_ns), "ns", "median duration"),
            Evidence("slow steps", int(slow.sum()), "count", f"duration > {limits['slow_ratio']:g} x median"),
            Evidence("beyond the median", excess_ns, "ns", "sum over slow steps of duration - median"),
        ],
        refute="Change the order of the data: if the same steps are slow again, it is the program, not the data.",
        next=[
            f"Compare a slow step with a usual one: diag report INPUT --range '{steps.names[slowest]}'",
        ],
        extent=Intervals.union_of(steps.start_ns[slow], steps.end_ns[slow]),
    )
