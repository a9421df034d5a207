"""From a case to a report: every rule on every source, ranked."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from diag.launches.benchmarks import load_benchmarks
from diag.launches.kernel import ProfiledKernel, profiled_kernels
from diag.launches.live_runs import live_runs
from diag.launches.placement import place_all
from diag.launches.probe_results import ProbeResults, probe_results
from diag.model.benchmark import Benchmark
from diag.model.live_run import LiveRun
from diag.model.measured import Known
from diag.model.roofline import Ladder
from diag.ranks.job import Job
from diag.rules import hang_rows, rooflines, running, thresholds
from diag.rules.ceiling_rows import ceiling_rows
from diag.rules.finding import Answer, CannotTell, Clear, Finding
from diag.rules.hang_words import RECORDERS
from diag.rules.launch_rows import launch_rows
from diag.rules.live_rows import live_device_rows, live_process_rows
from diag.rules.measured_collective_rows import measured_collective_rows
from diag.rules.measurement_rows import measurement_rows
from diag.rules.operator_rows import longest_first
from diag.rules.rank_rows import collective_rows, rank_rows
from diag.rules.report import ChangedThreshold, Part, Report
from diag.rules.scope import PartAsked, part_of, traces_in_scope
from diag.rules.serving_rows import serving_run_rows
from diag.rules.shard_result import ShardResult, shard_results
from diag.rules.thresholds import Limits
from diag.rules.timeline_report import KernelRow, RangeRow
from diag.rules.trace_result import TraceResult, trace_result
from diag.rules.verdict import explained_by, verdict
from diag.serving.run import ServingRun, serving_runs
from diag.store.case import Case
from diag.timeline.trace import Trace

Value = TypeVar("Value")


@dataclass(frozen=True)
class AnalysisOptions(PartAsked):
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
    material = _material(case, options, limits)
    return _report(material, _answers(material, limits), limits)


@dataclass(frozen=True)
class _Material:
    """What rules judge and tables list."""

    case: Case
    ladder: Ladder
    benchmarks: Sequence[Benchmark]
    kernels: Sequence[ProfiledKernel]
    shards: Sequence[ShardResult]  # judged where their reports lie
    parts: Sequence[TraceResult]  # of the traces here, then of those of the shards
    asked: Sequence[Part | None]  # of the same traces
    probes: Sequence[ProbeResults]
    watched: Sequence[LiveRun]
    job: Job
    serving: Sequence[ServingRun]


def _material(case: Case, options: AnalysisOptions, limits: Mapping[str, Limits]) -> _Material:
    traces = traces_in_scope(case, options)
    benchmarks = load_benchmarks(case)
    known, ladder = Known(benchmarks, options.ceilings), rooflines.ladder(limits["ncu.roofline"])
    kernels = _profiled(case, traces, known)
    shards = shard_results(case, options.asked_of_traces)
    parts = [trace_result(trace, limits, ladder, known) for trace in traces]
    parts += [result for shard in shards for result in shard.results]
    watched = live_runs(case)
    summaries = [summary for shard in shards for summary in shard.summaries]
    return _Material(
        case=case,
        ladder=ladder,
        benchmarks=benchmarks,
        kernels=kernels,
        shards=shards,
        parts=parts,
        asked=[*(part_of(trace, options) for trace in traces), *(shard.part for shard in shards)],
        probes=probe_results(case, benchmarks, options.ceilings),
        watched=watched,
        job=Job(case, traces, gathered=summaries, watched=watched),
        serving=serving_runs(case),
    )


def _answers(of: _Material, limits: Mapping[str, Limits]) -> list[Answer]:
    return [
        *(answer for part in of.parts for answer in part.answers),
        *(answer for kernel in of.kernels for answer in running.about_kernel(kernel, limits)),
        *(answer for results in of.probes for answer in running.about_results(results, limits)),
        *(answer for run in of.watched for answer in running.about_live(run, limits)),
        *running.about_job(of.job, limits),
        *running.about_serving(of.serving, limits),
        *(answer for first in of.case.sources[:1] for answer in running.about_lost_rules(first.id)),
    ]


def _report(of: _Material, answers: Sequence[Answer], limits: Mapping[str, Limits]) -> Report:
    findings = sorted((a for a in answers if isinstance(a, Finding)), key=lambda finding: finding.rank)
    clear = [a for a in answers if isinstance(a, Clear)]
    devices = [row for part in of.parts for row in part.devices]
    explained = _together(explained_by(findings), [shard.explained for shard in of.shards])
    is_cut = any(source.is_cut for source in of.case.sources)
    launches = launch_rows(of.case, of.kernels, of.ladder)
    serving = serving_run_rows(of.serving, limits.get("serving.goodput", {}))
    has_recorders = of.job.has_any(RECORDERS)
    return Report(
        sources=of.case.sources,
        notes={source.id: of.case.notes(source.id) for source in of.case.sources},
        verdict=verdict(findings, clear, devices, of.kernels, serving, explained=explained, is_cut=is_cut),
        devices=devices,
        hardware=[row for part in of.parts for row in part.hardware],
        kernels=rooflines.with_rooflines(_kernels(of.parts), of.kernels, launches),
        operators=sorted((row for part in of.parts for row in part.operators), key=longest_first),
        launches=launches,
        rooflines=rooflines.kernel_rooflines(of.kernels, launches),
        ceilings=ceiling_rows(of.benchmarks),
        measurements=measurement_rows(of.probes),
        timeline_ranks=rank_rows(of.job),
        collectives=collective_rows(of.job),
        measured_collectives=measured_collective_rows(of.job.comm_series),
        serving=serving,
        live_devices=live_device_rows(of.watched),
        live_processes=live_process_rows(of.watched),
        ranges=_ranges(of.parts),
        ranks=hang_rows.rank_rows(of.job) if has_recorders else (),
        groups=hang_rows.group_rows(of.job) if has_recorders else (),
        findings=findings,
        overlaps=_together(overlaps_of(findings), [shard.overlaps for shard in of.shards]),
        clear=clear,
        cannot_tell=[a for a in answers if isinstance(a, CannotTell)],
        part=_longest(of.asked),
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


def _longest(parts: Sequence[Part | None]) -> Part | None:
    """That of the longest trace."""
    return max((part for part in parts if part is not None), key=lambda part: part.trace_ns, default=None)


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


def _device_of(finding: Finding) -> tuple[int, int | None, int | None, str | None]:
    """Each load on a server has a clock of its own."""
    return finding.subject.source, finding.subject.process, finding.subject.device, finding.subject.load
