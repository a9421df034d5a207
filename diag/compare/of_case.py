"""A recording from a case: what its report tells, and everything that repeats behind its sums."""

from __future__ import annotations

from diag.compare.case_facts import with_case
from diag.compare.loads import loads_of, with_requests
from diag.compare.of_report import launches_of, tick_ns_of
from diag.compare.places import device_places, input_places
from diag.compare.recording import Kernel, Key, RangeTimes, Recording
from diag.compare.report_facts import facts_of
from diag.compare.series import Series
from diag.compare.trace_ranges import ranges_of
from diag.compare.trace_times import Periods, figures_of, kernels_of, periods_of
from diag.ranks.job import Job
from diag.rules import document
from diag.rules.analysis import AnalysisOptions
from diag.rules.scope import traces_in_scope
from diag.rules.stored import report_of
from diag.serving.run import serving_runs
from diag.store.case import Case
from diag.timeline.trace import Trace


def recording_of(case: Case, options: AnalysisOptions, path: str) -> Recording:
    """Raises UsageError when the window or range names nothing in the case."""
    report = document.of_report(report_of(case, options))
    traces = traces_in_scope(case, options)
    device_of, input_of = device_places(report), input_places(report)
    periods = [periods_of(trace) for trace in traces]
    devices: dict[Key, Series] = {}
    kernels: dict[Key, Kernel] = {}
    ranges: dict[Key, RangeTimes] = {}
    for trace, of_trace in zip(traces, periods, strict=True):
        for device in trace.devices:
            place = device_of[device.source_id, device.pid, device.device]
            devices |= {(place, figure): series for figure, series in figures_of(device, of_trace)}
            kernels |= {(place, name): kernel for name, kernel in kernels_of(trace, device, of_trace).items()}
        place = input_of[trace.source.id]
        ranges |= {(place, pattern): times for pattern, times in ranges_of(trace, of_trace).items()}
    slowest, launches = _slowest(periods), launches_of(report)
    return Recording(
        path=path,
        report=report,
        facts=with_case(facts_of(report, kernels or launches), case, traces, kernels, ranges),
        tick_ns=tick_ns_of(report),
        span_ns=max(map(_span_ns, traces), default=0),
        steps=None if slowest is None else slowest.steps,
        devices=devices,
        kernels=kernels,
        launches=launches,
        ranges=ranges,
        has_all_ranges=True,
        loads=with_requests(loads_of(report.serving), serving_runs(case)),
        nccl=Job(case).nccl if any(source.has("log_event") for source in case.sources) else None,
    )


def _slowest(periods: list[Periods | None]) -> Periods | None:
    """Of several inputs, the one whose steps take longest: a job goes on when its last rank does."""
    known = [each for each in periods if each is not None]
    return max(known, key=lambda each: each.steps.periods.median_ns or 0.0, default=None)


def _span_ns(trace: Trace) -> int:
    if trace.scope is not None:
        return trace.scope.measure_ns
    first_ns, last_ns = trace.event_span
    return last_ns - first_ns
