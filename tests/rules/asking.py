"""What tests of rules speak of: asking a rule, its three cases, the figures of a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diag.launches.benchmarks import load_benchmarks
from diag.launches.kernel import profiled_kernels
from diag.launches.live_runs import live_runs
from diag.launches.probe_results import probe_results
from diag.ranks.job import Job
from diag.rules import engine, running, thresholds
from diag.rules.finding import Answer, Evidence, Finding
from diag.rules.report import Report
from diag.serving.run import serving_runs
from diag.timeline.intervals import Intervals
from diag.timeline.joined import traces_of
from diag.timeline.trace import Trace
from tests.builders.imported import Recorded, imported
from tests.builders.nsys_export import NsysExport

Ask = Callable[[str, Recorded], list[Answer]]
AskWithin = Callable[[str, NsysExport, Intervals], list[Answer]]
"""Asks about a part of the trace only."""
Analyse = Callable[..., Report]
Query = Callable[[Recorded, Evidence], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class ThreeCases:
    """What every rule ships with: it fires, its healthy twin is clear, and where evidence is missing it cannot tell."""

    fires: Callable[[], Recorded]
    clear: Callable[[], Recorded]
    untold: Callable[[], Recorded]


def answers_of(rule_id: str, export: Recorded, folder: Path, scope: Intervals | None = None) -> list[Answer]:
    """What one rule says of a synthetic export or report, or of a part of it."""
    rule, limits = engine.rules()[rule_id], thresholds.load().get(rule_id, {})
    with imported(export, folder) as case:
        if isinstance(rule, engine.JobRule):
            return list(running.run_on_job(rule, Job(case, traces_of(case), watched=live_runs(case)), limits))
        if isinstance(rule, engine.ServingRule):
            return list(running.run_on_serving(rule, serving_runs(case), limits))
        (source,) = case.sources
        if isinstance(rule, engine.KernelRule):
            kernels = profiled_kernels(case, source.id)
            return [answer for kernel in kernels for answer in running.run_on_kernel(rule, kernel, limits)]
        if isinstance(rule, engine.BenchmarkRule):
            return [
                answer
                for each in probe_results(case, load_benchmarks(case))
                for answer in running.run_on_results(rule, each, limits)
            ]
        if isinstance(rule, engine.LiveRule):
            return [answer for run in live_runs(case) for answer in running.run_live(rule, run, limits)]
        assert isinstance(rule, engine.TraceRule)
        return list(running.run(rule, Trace(case, source, scope), limits))


def only_finding(answers: Sequence[Answer]) -> Finding:
    (finding,) = (answer for answer in answers if isinstance(answer, Finding))
    return finding


def figures(finding: Finding) -> dict[str, float | int | str]:
    """The evidence of a finding by its label."""
    return {evidence.label: evidence.value for evidence in finding.evidence}
