"""From a case to a report: every rule on every source, ranked."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import numpy as np

from diag.errors import UsageError
from diag.launches.benchmarks import load_benchmarks
from diag.launches.kernel import ProfiledKernel, profiled_kernels
from diag.launches.live_runs import live_runs
from diag.launches.placement import place_all
from diag.launches.probe_results import ProbeResults, probe_results
from diag.model import units
from diag.model.benchmark import Benchmark
from diag.model.measured import Known
from diag.model.near import did_you_mean, near
from diag.ranks.job import Job
from diag.rules import engine, hang_rows, rooflines, thresholds
from diag.rules.ceiling_rows import ceiling_rows
from diag.rules.finding import Answer, CannotTell, Clear, Finding
from diag.rules.hang_words import RECORDERS
from diag.rules.launch_rows import launch_rows
from diag.rules.live import judge
from diag.rules.live_rows import live_device_rows, live_process_rows
from diag.rules.measured_collective_rows import measured_collective_rows
from diag.rules.measurement_rows import measurement_rows
from diag.rules.operator_rows import longest_first
from diag.rules.rank_rows import collective_rows, rank_rows
from diag.rules.report import ChangedThreshold, KernelRow, Part, RangeRow, Report
from diag.rules.shard_result import shard_results
from diag.rules.thresholds import Limits
from diag.rules.trace_result import TraceResult, trace_result
from diag.rules.verdict import explained_by, verdict
from diag.store.case import Case, Source
from diag.timeline.intervals import Intervals
from diag.timeline.joined import traces_of
from diag.timeline.ranges import OPEN_NS
from diag.timeline.trace import Trace

Value = TypeVar("Value")


@dataclass(frozen=True)
class AnalysisOptions:
    window: str | None = None
    """Part of the trace, as in '100ms:2.5s', counted from its first event; either side may be left out."""
    range_name: str | None = None
    """Only the time inside ranges of this name or name pattern."""
    thresholds: Path | None = None
    ceilings: Sequence[Benchmark] = ()
    """Of earlier calibrations; those in the case go before them."""

    @property
    def asked(self) -> str:
        """Digest of what the answers depend on besides the case and the rules."""
        return digest_of(self.asked_of_traces, list(self.ceilings))

    @property
    def asked_of_traces(self) -> str:
        """The same without ceilings, which belong to the machine that a trace is judged on and not to the question."""
        return digest_of(self.window, self.range_name, thresholds.load(self.thresholds))


def digest_of(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def analyse(case: Case, options: AnalysisOptions | None = None) -> Report:
    """Runs all rules. Raises UsageError when the window or range names nothing in the case."""
    options = options or AnalysisOptions()
    limits = thresholds.load(options.thresholds)
    traces = traces_in_scope(case, options)
    benchmarks = load_benchmarks(case)
    known = Known(benchmarks, options.ceilings)
    kernels, ladder = _profiled(case, traces, known), rooflines.ladder(limits["ncu.roofline"])
    shards = shard_results(case, options.asked_of_traces)
    parts = [trace_result(trace, limits, ladder, known) for trace in traces]
    parts += [result for shard in shards for result in shard.results]
    results = probe_results(case, benchmarks, options.ceilings)
    watched = live_runs(case)
    job = Job(
        case,
        traces,
        gathered=[summary for shard in shards for summary in shard.summaries],
        watched=watched,
    )
    has_recorders = job.has_any(RECORDERS)
    answers = [
        *(answer for part in parts for answer in part.answers),
        *_about_kernels(kernels, limits),
        *_about_probes(results, limits),
        *(answer for run in watched for answer in judge(run, limits)),
        *_about_job(job, limits),
    ]
    launches = launch_rows(case, kernels, ladder)
    devices = [row for part in parts for row in part.devices]
    findings = sorted((a for a in answers if isinstance(a, Finding)), key=lambda finding: finding.rank)
    clear = [a for a in answers if isinstance(a, Clear)]
    return Report(
        sources=case.sources,
        notes={source.id: case.notes(source.id) for source in case.sources},
        verdict=verdict(
            findings,
            clear,
            devices,
            kernels,
            explained=_together(explained_by(findings), [shard.explained for shard in shards]),
            is_cut=any(source.is_cut for source in case.sources),
        ),
        devices=devices,
        hardware=[row for part in parts for row in part.hardware],
        kernels=rooflines.with_rooflines(_kernels(parts), kernels, launches),
        operators=sorted((row for part in parts for row in part.operators), key=longest_first),
        launches=launches,
        rooflines=rooflines.kernel_rooflines(kernels, launches),
        ceilings=ceiling_rows(benchmarks),
        measurements=measurement_rows(results),
        timeline_ranks=rank_rows(job),
        collectives=collective_rows(job),
        measured_collectives=measured_collective_rows(job.comm_series),
        live_devices=live_device_rows(watched),
        live_processes=live_process_rows(watched),
        ranges=_ranges(parts),
        ranks=hang_rows.rank_rows(job) if has_recorders else (),
        groups=hang_rows.group_rows(job) if has_recorders else (),
        findings=findings,
        overlaps=_together(overlaps_of(findings), [shard.overlaps for shard in shards]),
        clear=clear,
        cannot_tell=[a for a in answers if isinstance(a, CannotTell)],
        part=_longest([part_of(trace, options) for trace in traces] + [shard.part for shard in shards]),
        changed_thresholds=_changed(limits),
    )


def _together(here: Mapping[str, Value], elsewhere: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """What is told of findings by their ids; what a shard tells of its own goes before what is told without extents."""
    return {finding: told for each in (here, *elsewhere) for finding, told in each.items()}


def _profiled(case: Case, traces: Sequence[Trace], known: Known) -> list[ProfiledKernel]:
    """The kernels of all profiles, each with its place in the timelines and the measured ceilings of its device."""
    profiles = [profiled_kernels(case, source.id) for source in case.sources if not source.has_timeline]
    for kernels in profiles:
        place_all(kernels, traces)
        for kernel in kernels:
            kernel.measured = known.of(kernel.launch.gpu)
    return [kernel for kernels in profiles for kernel in kernels]


def _about_kernels(kernels: Sequence[ProfiledKernel], limits: Mapping[str, Limits]) -> Iterator[Answer]:
    rules = [rule for rule in engine.rules().values() if isinstance(rule, engine.KernelRule)]
    for kernel in kernels:
        for rule in rules:
            yield from engine.run_on_kernel(rule, kernel, limits.get(rule.id, {}))


def _about_probes(results: Sequence[ProbeResults], limits: Mapping[str, Limits]) -> Iterator[Answer]:
    rules = [rule for rule in engine.rules().values() if isinstance(rule, engine.BenchmarkRule)]
    for each in results:
        for rule in rules:
            yield from engine.run_on_results(rule, each, limits.get(rule.id, {}))


def _about_job(job: Job, limits: Mapping[str, Limits]) -> Iterator[Answer]:
    for rule in engine.rules().values():
        if isinstance(rule, engine.JobRule):
            yield from engine.run_on_job(rule, job, limits.get(rule.id, {}))


def _changed(limits: Mapping[str, Limits]) -> list[ChangedThreshold]:
    return [
        ChangedThreshold(rule, name, value, limits[rule][name])
        for rule, shipped in thresholds.load().items()
        for name, value in shipped.items()
        if limits[rule][name] != value
    ]


def _kernels(parts: Sequence[TraceResult]) -> list[KernelRow]:
    rows = (row for part in parts for row in part.kernels)
    return sorted(rows, key=lambda row: (-row.total_ns, row.source, row.process, row.device, row.name))


def _ranges(parts: Sequence[TraceResult]) -> list[RangeRow]:
    rows = (row for part in parts for row in part.ranges)
    return sorted(rows, key=lambda row: (-row.gpu_ns, row.source, row.process, row.device, row.name))


def overlaps_of(findings: Sequence[Finding]) -> dict[str, list[str]]:
    """For each finding those others that speak of the same time of the same device; their gains do not add.

    Without a timeline, those on the same profiled kernel do, of which a report may have thousands.
    """
    with_time, on_kernel = defaultdict(list), defaultdict(list)
    for finding in findings:
        if finding.extent:
            with_time[_device_of(finding)].append(finding)
        if finding.subject.launch is not None:
            on_kernel[finding.subject.launch].append(finding)
    order = {finding.id: at for at, finding in enumerate(findings)}
    overlaps = {}
    for a in findings:
        same_time = [b.id for b in with_time[_device_of(a)] if a.extent & b.extent] if a.extent else []
        same_kernel = [b.id for b in on_kernel[a.subject.launch]] if a.subject.launch is not None else []
        overlaps[a.id] = sorted({*same_time, *same_kernel} - {a.id}, key=order.__getitem__)
    return overlaps


def _device_of(finding: Finding) -> tuple[int, int | None, int | None]:
    return finding.subject.source, finding.subject.process, finding.subject.device


# ---- scope ---------------------------------------------------------------------------------------------------------


def scoped_traces(case: Case, options: AnalysisOptions) -> list[Trace]:
    """The sources of the case, narrowed to what was asked for; those without any of it are judged empty."""
    traces = traces_of(case)
    for trace in traces:
        trace.scope, trace.range_name = _scope(trace, options), options.range_name
    return traces


def traces_in_scope(case: Case, options: AnalysisOptions) -> list[Trace]:
    """The same. Raises UsageError where none of them has anything of it."""
    traces = scoped_traces(case, options)
    if not traces and any(source.shard is not None for source in case.sources):
        return []
    if not traces and (options.window or options.range_name):
        option = "--window" if options.window else "--range"
        holds = "moments of a watch" if any(map(_is_watch, case.sources)) else "launches measured one by one"
        raise UsageError(
            f"{option} takes a part of a timeline; these inputs have none, for they hold {holds}. "
            "Leave it out, or add the report of Nsight Systems on the same program."
        )
    if traces and all(trace.scope is not None and not trace.scope for trace in traces):
        raise UsageError(_matches_nothing(traces, options))
    return traces


def _is_watch(source: Source) -> bool:
    return source.captured("live_snapshot")


def part_of(trace: Trace, options: AnalysisOptions) -> Part | None:
    """What was asked for of a trace that has any of it; None for the whole."""
    if not trace.scope:
        return None
    (first_ns, last_ns), window = trace.event_span, _window(trace, options)
    return Part(
        window=(window[0] - first_ns, window[1] - first_ns) if window else None,
        range_name=options.range_name,
        measure_ns=trace.scope.measure_ns,
        trace_ns=last_ns - first_ns,
    )


def _longest(parts: Sequence[Part | None]) -> Part | None:
    """That of the longest trace."""
    return max((part for part in parts if part is not None), key=lambda part: part.trace_ns, default=None)


def _matches_nothing(traces: Sequence[Trace], options: AnalysisOptions) -> str:
    path = traces[0].source.path
    if options.range_name and not any(ranges_named(trace, options.range_name) for trace in traces):
        names = (name for trace in traces for name in range_names(trace))
        hint = did_you_mean(map(repr, near(options.range_name, names)))
        return (
            f"No range is called {options.range_name!r}.{hint} In a name # stands for any number, as in 'step #'; "
            f'list them with: diag query {shlex.quote(path)} "{_LIST_RANGES}"'
        )
    longest_ns = max(end_ns - start_ns for start_ns, end_ns in (trace.event_span for trace in traces))
    where = f" of the ranges {options.range_name!r}" if options.range_name else ""
    return f"--window {options.window} holds nothing{where}: the trace is {units.time(longest_ns)} long."


def _scope(trace: Trace, options: AnalysisOptions) -> Intervals | None:
    window = _window(trace, options)
    scope = Intervals.single(*window) if window else None
    if options.range_name:
        inside = ranges_named(trace, options.range_name)
        scope = inside if scope is None else scope & inside
    return scope


def range_names(trace: Trace) -> set[str]:
    """Names and name patterns of all ranges."""
    ids = np.unique(trace.ranges.name_id).tolist()
    return {text for i in ids for text in (trace.names[i], trace.patterns[i])}


def _window(trace: Trace, options: AnalysisOptions) -> tuple[int, int] | None:
    """The window that was asked for, in ns on the trace's clock."""
    if not options.window:
        return None
    start_ns, end_ns = parse_window(options.window)
    first_ns, last_ns = trace.event_span
    return first_ns + start_ns, min(first_ns + end_ns, last_ns)


def ranges_named(trace: Trace, name: str) -> Intervals:
    """Union of the closed ranges whose name or name pattern is `name`."""
    ids = [i for i in np.unique(trace.ranges.name_id).tolist() if name in (trace.names[i], trace.patterns[i])]
    chosen = np.isin(trace.ranges.name_id, ids) & (trace.ranges.end_ns != OPEN_NS)
    return Intervals.union_of(trace.ranges.start_ns[chosen], trace.ranges.end_ns[chosen])


_UNITS_NS: Mapping[str, int] = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)")


LATEST_NS = 1 << 61
"""No trace lasts seventy years; sums of two such times still fit 63 bits."""


def parse_window(text: str) -> tuple[int, int]:
    """Start and end in ns of a window like '100ms:2.5s', ':1s' or '3s:'. Raises UsageError.

    >>> parse_window("100ms:2.5s")
    (100000000, 2500000000)
    """
    parts = text.split(":")
    if len(parts) == 2:
        start, end = (_TIME.fullmatch(part.strip()) if part.strip() else None for part in parts)
        if (start or not parts[0].strip()) and (end or not parts[1].strip()):
            start_ns = _nanoseconds(start) if start else 0
            end_ns = _nanoseconds(end) if end else LATEST_NS
            if end_ns <= start_ns < LATEST_NS:
                how = "ends where it starts" if end_ns == start_ns else "ends before it starts"
                raise UsageError(f"--window {text!r} {how}. Write START:END, for example 100ms:2.5s or 3s:")
            if start_ns < end_ns <= LATEST_NS:
                return start_ns, end_ns
    raise UsageError(f"--window {text!r} is not a window. Write START:END with units, for example 100ms:2.5s or 3s:")


def _nanoseconds(match: re.Match[str]) -> int:
    return round(Decimal(match.group(1)) * _UNITS_NS[match.group(2)])


_LIST_RANGES = "SELECT pattern, COUNT(*) FROM cpu_range JOIN name ON name.id = name_id GROUP BY 1"
