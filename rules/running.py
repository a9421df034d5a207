"""Rules are run: the answers of each about what it judges, stamped with its id.

Where something that a rule needs was not captured, *cannot tell* is answered for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from diag.launches.kernel import ProfiledKernel
from diag.launches.probe_results import ProbeResults
from diag.model.live_run import LiveRun
from diag.model.quantities import Missing, together
from diag.ranks.job import Job
from diag.rules.engine import (
    BenchmarkRule,
    JobRule,
    KernelRule,
    LiveRule,
    LostRules,
    Rule,
    ServingRule,
    TraceRule,
    kernel_subject,
    rules,
)
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Clear, Finding, Subject
from diag.rules.foreign import asked
from diag.rules.phase import told_apart
from diag.rules.thresholds import Limits
from diag.serving.run import ServingRun
from diag.store.case import Source
from diag.timeline.trace import Trace

Kind = TypeVar("Kind", bound=Rule)
EachLimits = Mapping[str, Limits]
"""By the id of a rule, as `thresholds.load` gives them."""


def about_trace(trace: Trace, limits: EachLimits) -> list[Answer]:
    return [answer for rule in _rules_of(TraceRule) for answer in run(rule, trace, limits.get(rule.id, {}))]


def about_kernel(kernel: ProfiledKernel, limits: EachLimits) -> list[Answer]:
    return [answer for rule in _rules_of(KernelRule) for answer in run_on_kernel(rule, kernel, limits.get(rule.id, {}))]


def about_results(results: ProbeResults, limits: EachLimits) -> list[Answer]:
    return [
        answer for rule in _rules_of(BenchmarkRule) for answer in run_on_results(rule, results, limits.get(rule.id, {}))
    ]


def about_live(run: LiveRun, limits: EachLimits) -> list[Answer]:
    """Needs no case.

    Windows slide while a workload is watched, and with them the ids of findings: `live.key_of` recognises one again.
    """
    return [answer for rule in _rules_of(LiveRule) for answer in run_live(rule, run, limits.get(rule.id, {}))]


def about_job(job: Job, limits: EachLimits) -> list[Answer]:
    return [answer for rule in _rules_of(JobRule) for answer in run_on_job(rule, job, limits.get(rule.id, {}))]


def about_serving(runs: Sequence[ServingRun], limits: EachLimits) -> list[Answer]:
    return [answer for rule in _rules_of(ServingRule) for answer in run_on_serving(rule, runs, limits.get(rule.id, {}))]


def about_lost_rules(source: int) -> list[Answer]:
    """What of plug-ins cannot be asked, told of one source for all."""
    return [CannotTell(Subject(source), rule.because, rule.id) for rule in _rules_of(LostRules)]


def _rules_of(kind: type[Kind]) -> list[Kind]:
    return [rule for rule in rules().values() if isinstance(rule, kind)]


NAMES_LOST = "the names of kernels, calls and ranges are lost: the file is damaged"


def run(rule: TraceRule, trace: Trace, limits: Limits) -> Iterator[Answer]:
    """The answers of one rule about one source, stamped with the rule's id."""
    if rule.host_only and trace.devices:
        return
    for need in rule.needs:
        if not FACTS[need].is_captured(trace):
            fact = FACTS[need]
            beyond = trace.source.kind not in fact.formats
            yield CannotTell(Subject(trace.source.id), fact.why_not(trace), rule.id, beyond_format=beyond)
            return
    for answer in asked(rule, Subject(trace.source.id), lambda: rule.decide(trace, limits), _ids(trace.sources)):
        answer = replace(told_apart(answer, trace), rule=rule.id)
        if isinstance(answer, Finding) and (trace.source.is_cut or trace.source.are_names_lost):
            answer = replace(answer, confidence="low")
        # Most rules know what they look for by its name, be it a call, a lock or a library.
        if isinstance(answer, Clear) and trace.source.are_names_lost:
            answer = CannotTell(answer.subject, NAMES_LOST, rule.id)
        yield answer


def run_on_kernel(rule: KernelRule, kernel: ProfiledKernel, limits: Limits) -> Iterator[Answer]:
    """The answers of one rule about one profiled kernel, stamped with the rule's id."""
    if because := _unmeasured(rule, kernel):
        yield CannotTell(kernel_subject(kernel), because, rule.id)
        return
    for answer in asked(rule, kernel_subject(kernel), lambda: rule.decide(kernel, limits)):
        yield replace(answer, rule=rule.id)


def run_on_results(rule: BenchmarkRule, results: ProbeResults, limits: Limits) -> Iterator[Answer]:
    """The answers of one rule about one benchmark, stamped with the rule's id."""
    for answer in asked(rule, Subject(results.source_id), lambda: rule.decide(results, limits)):
        yield replace(answer, rule=rule.id)


def run_live(rule: LiveRule, run: LiveRun, limits: Limits) -> Iterator[Answer]:
    """The answers of one rule about one watched workload, stamped with the rule's id."""
    about = Subject(run.source, run.pid, window=run.window)
    if len(run.snapshots) < rule.fewest:
        seen = len(run.snapshots)
        yield CannotTell(about, FEW.format(n=seen, m=rule.fewest), rule.id)
        return
    for answer in asked(rule, about, lambda: rule.decide(run, limits)):
        if isinstance(answer, CannotTell):  # it may quote what a record says, which may be of any length
            answer = replace(answer, because=answer.because[:LONGEST_REASON])
        yield replace(answer, rule=rule.id)


def run_on_job(rule: JobRule, job: Job, limits: Limits) -> Iterator[Answer]:
    """The answers of one rule about one job, stamped with the rule's id."""
    if job.has_any(rule.needs):
        for answer in asked(rule, Subject(job.sources[0].id), lambda: rule.decide(job, limits), _ids(job.sources)):
            yield replace(answer, rule=rule.id)


def run_on_serving(rule: ServingRule, runs: Sequence[ServingRun], limits: Limits) -> Iterator[Answer]:
    """The answers of one rule about the serving runs of a case, stamped with the rule's id."""
    if runs:
        for answer in asked(
            rule, Subject(runs[0].source_id), lambda: rule.decide(runs, limits), {each.source_id for each in runs}
        ):
            yield replace(answer, rule=rule.id)


def _ids(sources: Sequence[Source]) -> set[int]:
    return {source.id for source in sources}


LONGEST_REASON = 500
FEW = "too few snapshots ({n}; {m} are needed): watch for longer"


def _unmeasured(rule: KernelRule, kernel: ProfiledKernel) -> str | None:
    """Why what the rule needs is not there, all of it in one sentence; None when it is."""
    missing = [found for need in rule.needs if isinstance(found := kernel.quantity(need), Missing)]
    return together(missing) if missing else None
