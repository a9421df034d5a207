"""How a report puts things into words, whatever the format."""

from __future__ import annotations

import math
import ntpath
from collections import Counter
from collections.abc import Iterable, Sequence

from diag.model import units
from diag.rules.finding import Answer, Evidence, Finding, Subject
from diag.rules.report import Report
from diag.store.case import Source
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline

MOST_NAMED = 4
"""Of a longer list, so many are named and the rest is counted."""


def lead(report: Report) -> Finding | None:
    """The finding that the verdict rests on."""
    return next((finding for finding in report.findings if finding.id == report.verdict.finding_id), None)


def others(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.id != report.verdict.finding_id]


def alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings that differ in their subject only, as on each of many devices, told together."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.title), []).append(finding)
    return list(groups.values())


def value(evidence: Evidence) -> str:
    """
    >>> value(Evidence("Idle", 658_549_185, "ns", "window - busy"))
    '658.5 ms'
    """
    number = evidence.value
    if isinstance(number, str):
        return number
    if not math.isfinite(number):
        return "not known"
    match evidence.unit:
        case "ns":
            return units.time(number)
        case "bytes":
            return units.size(number)
        case "bytes/s":
            return units.rate(number, 1e9)
        case "share":
            return units.share(number)
        case "count":
            return f"{number:,}"
        case unit:
            return f"{number:,} {unit}"


def at_most(report: Report, finding: Finding) -> str | None:
    """The bound on what can be won, or None when none can be given."""
    if finding.recoverable_ns is None:
        return None
    timeline = device_of(report, finding.subject)
    bound = f"At most {units.time(finding.recoverable_ns)} could be won"
    if timeline is None or not timeline.has_shares:
        return f"{bound}."
    return f"{bound}, {units.share(timeline.share(finding.recoverable_ns))} of the window."


def won(report: Report, finding: Finding) -> str:
    """The bound and its assumption in full; many a counterfactual states the bound itself."""
    bound = at_most(report, finding)
    if finding.recoverable_ns is not None and units.time(finding.recoverable_ns) in finding.counterfactual:
        bound = None
    return " ".join(filter(None, (bound, finding.counterfactual, overlap(report, finding))))


def in_short(report: Report, alike: Sequence[Finding]) -> str:
    """For findings that are not the first: the claim, what could be won, where else, and the first step."""
    finding, *same = alike
    first_step = f"Next: {finding.next[0]}" if finding.next else None
    elsewhere = some(" ".join(filter(None, (subject(report, other.subject), f"[{other.id}]"))) for other in same)
    parts = (
        finding.claim,
        at_most(report, finding),
        overlap(report, finding),
        f"Likewise: {elsewhere}." if same else None,
        first_step,
    )
    return " ".join(filter(None, parts))


def overlap(report: Report, finding: Finding) -> str | None:
    ids = report.overlaps.get(finding.id)
    return f"Partly the same device time as {some(ids)}: do not add them up." if ids else None


def rest(groups: Iterable[Sequence[Finding]]) -> str:
    """Findings that are counted, not told."""
    by_rule = Counter(finding.rule for group in groups for finding in group)
    rules = [f"{rule} ({count})" for rule, count in sorted(by_rule.items())]
    return f"{units.count(by_rule.total(), 'more finding')}: {', '.join(rules)}."


def device(report: Report, timeline: DeviceTimeline, *, hardware: bool = False) -> str:
    """The device with as much of its identity as is needed: process and file only where there are several."""
    parts = [f"GPU {timeline.device}"]
    if hardware and timeline.hardware:
        parts.append(timeline.hardware)
    if hardware or len({other.pid for other in report.devices}) > 1:
        parts.append(f"pid {timeline.pid}")
    if len(report.sources) > 1:
        parts.append(source_name(report, timeline.source_id))
    return ", ".join(parts)


def subject(report: Report, about: Subject) -> str:
    """What an answer is about, or nothing when the report is about one thing only."""
    timeline = device_of(report, about)
    if timeline:
        return device(report, timeline) if len(report.devices) > 1 else ""
    parts = [f"pid {about.process}"] if about.process is not None and len(report.devices) > 1 else []
    return ", ".join([*parts, source_name(report, about.source)] if len(report.sources) > 1 else parts)


def device_of(report: Report, about: Subject) -> DeviceTimeline | None:
    key = (about.source, about.process, about.device)
    return next((device for device in report.devices if (device.source_id, device.pid, device.device) == key), None)


def focus(report: Report) -> DeviceTimeline | None:
    """The device that the verdict speaks of, else the one with the longest kernel, else the first."""
    finding = lead(report)
    subjects = [finding.subject] if finding else []
    subjects += [Subject(row.source, row.process, row.device) for row in report.kernels[:1]]
    found = filter(None, (device_of(report, about) for about in subjects))
    return next(found, report.devices[0] if report.devices else None)


def captured(report: Report, timeline: DeviceTimeline, fact: str) -> bool:
    """Whether the device's source recorded such a thing at all, be it that nothing happened."""
    return any(source.id == timeline.source_id and source.captured(fact) for source in report.sources)


def busy_is_upper_bound(timeline: DeviceTimeline) -> bool:
    """A graph launch is one row, from its first node to its last: the gaps between its nodes count as busy."""
    return timeline.count(gpu_work.GRAPH) > 0


def used_by_others_ns(timeline: DeviceTimeline) -> int:
    """Of the idle time, what other processes used the same hardware for."""
    return (timeline.idle & timeline.others).measure_ns


def cannot_tell(report: Report) -> list[tuple[str, list[str]]]:
    """Each reason once, with the rules that it kept from answering, in the order in which they came."""
    groups: dict[str, dict[str, list[str]]] = {}
    for answer in report.cannot_tell:
        groups.setdefault(answer.because, {}).setdefault(answer.rule, []).append(subject(report, answer.subject))
    return [
        (because, [_rule_on(rule, subjects, report) for rule, subjects in rules.items()])
        for because, rules in groups.items()
    ]


def clear(report: Report) -> list[str]:
    rules: dict[str, list[str]] = {}
    for answer in report.clear:
        rules.setdefault(answer.rule, []).append(subject(report, answer.subject))
    return [_rule_on(rule, subjects, report) for rule, subjects in sorted(rules.items())]


def _rule_on(rule: str, subjects: Sequence[str], report: Report) -> str:
    """The rule, and on what, unless it gave the same kind of answer on everything."""
    answers: list[Answer] = [*report.findings, *report.clear, *report.cannot_tell]
    named = list(dict.fromkeys(filter(None, subjects)))
    if not named or len(subjects) == sum(answer.rule == rule for answer in answers):
        return rule
    return f"{rule} ({some(named)})"


def some(texts: Iterable[str]) -> str:
    """
    >>> some(["a", "b"]), some("abcdef")
    ('a, b', 'a, b, c, d and 2 more')
    """
    every = list(texts)
    more = len(every) - MOST_NAMED
    return ", ".join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def source_name(report: Report, source_id: int) -> str:
    path = next((source.path for source in report.sources if source.id == source_id), f"source {source_id}")
    return ntpath.basename(path) or path


def source(of: Source) -> str:
    """What is known about one input: the tool that made it, and how fine its clock is."""
    parts = [of.tool or of.kind, of.tool_version or ""]
    made_by = " ".join(filter(None, parts))
    schema = f"schema {of.schema_version}" if of.schema_version else None
    machine = f"host {of.host}" if of.host else None
    rank = f"rank {of.rank}" if of.rank is not None else None
    return ", ".join(filter(None, (made_by, schema, machine, rank, f"tick {units.time(of.time_resolution_ns)}")))
