"""Steps that take longer than others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules import queries
from diag.rules.engine import source_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.step_differences import Contrast, Difference, Differences, differences, launches_per_step
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals
from diag.timeline.steps import Steps, find_steps
from diag.timeline.trace import Trace

LEAST_UNEXPLAINED = 0.1
"""What no difference covers is said from this share of the excess on."""

LEAST_OTHER_WORK = 0.05
"""Steps whose operations differ in number by less than this do the same work."""


@source_rule("steps.variance", needs=("range",))
def step_variance(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """Some steps take much longer than the others.

    Asks      Do all steps (iterations) take about the same time?
    Decides   Steps are ProfilerStep ranges, or the range that repeats at least `fewest_steps` times without overlap and
              covers most of the time of the thread that launches the work, at least `least_cover` of it. The first and
              the last step of the trace are left out, as the capture may have cut or slowed them; in a part of a trace
              only steps that lie wholly in it count. Of the others, `fewest_judged` at least, a step is slow above
              `slow_ratio` x the median. Fires when what slow steps take beyond the median is `share` of all their time.
              What differs: for each kind of time (device idle, kernels, copies, ranges, CUDA and OS calls, off the CPU)
              what slow steps have beyond as many usual ones; up to three are named, each at least `named_share` of what
              the slow steps take beyond usual ones. They speak of the same time and do not add up.
    Matters   A slow step delays everything behind it; in a distributed job, every rank.
    Do        See what differs in the slow steps: logging, checkpoints, validation, a slow sample, garbage collection.
    Refute    The slow steps keep their place when the data order changes: then it is the program, not the data.
    """
    steps = None
    if trace.main_thread is not None:
        thread = trace.threads[trace.main_thread]
        steps = find_steps(thread, fewest=limits["fewest_steps"], least_cover=limits["least_cover"])
    if steps is None:
        needed = f"no range repeats {limits['fewest_steps']:g} times and fills most of the time"
        yield CannotTell(Subject(trace.source.id), needed)
        return
    judged = _inner(steps, trace.scope)
    if len(judged) < limits["fewest_judged"]:
        why = f"too few whole steps ('{steps.pattern}') without the first and the last of the trace: {len(judged)}"
        yield CannotTell(Subject(trace.source.id), why)
        return
    yield _judge(trace, judged, limits)


def _inner(steps: Steps, scope: Intervals | None) -> Steps:
    inner = steps.select(slice(1, -1))
    if scope is None:
        return inner
    return inner.select(scope.measure_within(inner.start_ns, inner.end_ns) == inner.duration_ns)


def _judge(trace: Trace, steps: Steps, limits: Limits) -> Answer:
    pid = trace.process_of(steps.thread_id).pid
    window = (int(steps.start_ns[0]), int(steps.end_ns[-1]))
    subject = Subject(trace.source.id, process=pid, range=steps.pattern, window=window)
    median_ns = float(np.median(steps.duration_ns))
    slow = steps.duration_ns > max(limits["slow_ratio"] * median_ns, median_ns + 2 * trace.tick_ns)
    excess_ns = int((steps.duration_ns[slow] - median_ns).sum())
    share = excess_ns / max(int(steps.duration_ns.sum()), 1)
    if share < limits["share"]:
        return Clear(subject)
    slowest = int(np.argmax(steps.duration_ns))
    name = trace.names[int(steps.name_id[slowest])]
    contrast = Contrast(steps, slow)
    found = differences(trace, contrast)
    named = found.largest(least_share=limits["named_share"], most=3)
    mostly = next((f": {each.what}" for each in found.explaining(named) if 2 * each.excess_ns >= found.beyond_ns), "")
    return Finding(
        title=f"{units.count(int(slow.sum()), 'slow step')} of {len(steps)}{mostly}",
        claim=f"{units.count(int(slow.sum()), 'step')} of {len(steps)} ('{steps.pattern}', without the first and the "
        f"last) took more than {limits['slow_ratio']:g} times the median of {units.time(median_ns)}; together "
        f"{units.time(excess_ns)} more than the median. The slowest, '{name}', took "
        f"{units.time(int(steps.duration_ns[slowest]))}. " + " ".join(_what_differs(trace, contrast, found, named)),
        subject=subject,
        share=share,
        recoverable_ns=excess_ns,
        confidence="medium",
        counterfactual=f"With all steps at the median the steps would take {units.time(excess_ns)} less at most.",
        evidence=[
            *_evidence(trace, steps, slow, median_ns, excess_ns, limits),
            *_difference_evidence(contrast, found, named),
        ],
        refute="Change the order of the data: if the same steps are slow again, it is the program, not the data.",
        next=[f"Compare a slow step with a usual one: {queries.report_on_range(trace, name)}"],
        extent=Intervals.union_of(steps.start_ns[slow], steps.end_ns[slow]),
    )


def _what_differs(trace: Trace, contrast: Contrast, found: Differences, named: Sequence[Difference]) -> Iterator[str]:
    if named:
        listed = ", ".join(f"{each.what} (+{units.time(each.excess_ns)})" for each in named)
        beyond = f"They take {units.time(found.beyond_ns)} more than as many usual steps"
        yield f"{beyond}; seen from device and host: {listed}."
    unexplained_ns = found.unexplained_ns(named)
    if unexplained_ns >= LEAST_UNEXPLAINED * found.beyond_ns:
        yield f"Up to {units.time(unexplained_ns)} of that is not explained by what was captured."
    slow, usual = launches_per_step(trace, contrast)
    if abs(slow - usual) > max(LEAST_OTHER_WORK * usual, 1):
        yield f"A slow step launches {slow:,.0f} GPU operations, a usual one {usual:,.0f}: it does other work."


def _difference_evidence(contrast: Contrast, found: Differences, named: Sequence[Difference]) -> Iterator[Evidence]:
    n_slow, n_usual = int(contrast.slow.sum()), int((~contrast.slow).sum())
    formula = f"sum over {n_slow} slow steps - {n_slow} x mean of the {n_usual} others"
    yield Evidence("beyond usual steps", found.beyond_ns, "ns", formula)
    for each in named:
        yield Evidence(f"beyond usual steps: {each.what}", each.excess_ns, "ns", formula)
    yield Evidence(
        "not explained", found.unexplained_ns(named), "ns", "at most: beyond usual steps - what these account for"
    )


def _evidence(
    trace: Trace, steps: Steps, slow: NDArray[np.bool_], median_ns: float, excess_ns: int, limits: Limits
) -> Iterator[Evidence]:
    sql = queries.ranges(trace, steps.thread_id, like_name=int(steps.name_id[0]))
    judged = f"ranges '{steps.pattern}' on the launching thread, without the first and the last"
    yield Evidence("steps", len(steps), "count", judged, sql)
    yield Evidence("median step", int(median_ns), "ns", "median duration", sql)
    yield Evidence("slow steps", int(slow.sum()), "count", f"duration > {limits['slow_ratio']:g} x median", sql)
    yield Evidence("beyond the median", excess_ns, "ns", "sum over slow steps of duration - median", sql)
