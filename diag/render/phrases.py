"""How a report puts things into words, whatever the format."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from diag.model import units
from diag.model.rank_lists import ranks
from diag.render import source_phrases
from diag.rules.baseline_report import Comparison
from diag.rules.finding import SEVERITIES, Evidence, Finding, ShareOf, Subject
from diag.rules.report import Part, Report
from diag.rules.timeline_report import DeviceRow, KernelRow, OperatorRow, RangeRow
from diag.store.names import pattern_of

MOST_NAMED = 4
"""Of a longer list, so many are named and the rest is counted."""

LONGEST_TERM = 24

FEW_ROWS = 8
"""So many devices or inputs are all shown, whatever `--top` says: a machine has eight GPUs."""


def lead(report: Report) -> Finding | None:
    """The finding that the verdict rests on."""
    return next((finding for finding in report.findings if finding.id == report.verdict.finding_id), None)


def others(report: Report) -> list[Finding]:
    """All but that one as they are ranked, except that of each severity those of low confidence come last."""
    found = [finding for finding in report.findings if finding.id != report.verdict.finding_id]
    return sorted(found, key=lambda finding: (-SEVERITIES.index(finding.severity), finding.confidence == "low"))


def likewise(report: Report) -> tuple[list[Finding], list[list[Finding]]]:
    """The findings that say elsewhere what the first one says, and all others in groups that are told together."""
    first = lead(report)
    if first is None:
        return [], alike(others(report), report.baseline)
    (_, *same), *groups = alike([first, *others(report)], report.baseline)
    return same, groups


def alike(findings: Sequence[Finding], baseline: Comparison | None = None) -> list[list[Finding]]:
    """Findings that differ in their subject only, as on each of many devices, told together.

    What the first one advises has to hold for all, so that their first steps may differ in numbers only.
    """
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        standing = baseline.standing[finding.id] if baseline else ""
        first_step = pattern_of(finding.next[0]) if finding.next else ""
        said = finding.title if finding.subject.launch is None else ""
        key = (finding.rule, said, finding.severity, standing, first_step)
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def conditions(report: Report) -> list[str]:
    """What the reader must know before the verdict: that it speaks of a part, or by other thresholds than usual."""
    said = [f"Part: {_part(report.part)}."] if report.part else []
    if changed := [f"{each.rule}.{each.name} {each.shipped:g} → {each.value:g}" for each in report.changed_thresholds]:
        said.append(f"Thresholds changed: {some(changed)}.")
    return said


def _part(part: Part) -> str:
    of = f"of {units.time(part.trace_ns)}"
    window = " to ".join(map(units.time, part.window)) if part.window else ""
    if part.range_name is None:
        return f"{window} {of}"
    within = f", {window}" if window else ""
    return f"inside '{part.range_name}'{within} ({units.time(part.measure_ns)} {of})"


def severity(report: Report | None, finding: Finding) -> str:
    """The severity, and how the finding stands to the baseline if there is one."""
    baseline = report.baseline if report else None
    return f"{finding.severity}, {baseline.standing[finding.id]}" if baseline else finding.severity


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
    return units.quantity(number, evidence.unit)


def outline(evidence: Sequence[Evidence]) -> list[tuple[int, str, Evidence]]:
    """Depth, label and number of each, with what is labelled "a: b" below "a", of which it is a part.

    >>> late, idle, waiting = (Evidence(label, 0, "ns", "") for label in ("late", "idle", "late: waiting"))
    >>> [(depth, label) for depth, label, _ in outline([late, idle, waiting])]
    [(0, 'late'), (1, 'waiting'), (0, 'idle')]
    """

    def within(label: str) -> int | None:
        """Which of them has the longest label that this one begins with."""
        around = [at for at, other in enumerate(evidence) if label.startswith(f"{other.label}: ")]
        return max(around, key=lambda at: len(evidence[at].label), default=None)

    wholes = [within(each.label) for each in evidence]

    def below(whole: int | None, depth: int) -> Iterator[tuple[int, str, Evidence]]:
        prefix = "" if whole is None else f"{evidence[whole].label}: "
        for at, each in enumerate(evidence):
            if wholes[at] == whole:
                yield depth, each.label.removeprefix(prefix), each
                yield from below(at, depth + 1)

    return list(below(None, 0))


def terms(finding: Finding, shown: Sequence[Evidence]) -> list[tuple[str, str]]:
    """Labels that are a term rather than a name, with the formulas that tell what they mean.

    Those of profiled kernels are long and over metrics of ncu: whoever knows them opens the finding.
    """
    if finding.subject.launch is not None:
        return []
    return [
        (label, each.formula)
        for depth, label, each in outline(shown)
        if depth == 0 and len(label) <= LONGEST_TERM and "'" not in label and each.formula and label not in each.formula
    ]


def whole(of: ShareOf) -> str:
    """What a share is of."""
    return "the window" if of == "window" else "the kernel time that was profiled"


def at_most(finding: Finding, report: Report | None = None) -> str | None:
    """The bound on what can be won, as a share too where the report knows the window; None where there is no bound."""
    if finding.recoverable_ns is None:
        return None
    bound = f"At most {units.time(finding.recoverable_ns)} could be won"
    row = device_of(report, finding.subject) if report else None
    if finding.whole_ns:
        return f"{bound}, {units.share(finding.recoverable_ns / finding.whole_ns)} of {whole(finding.share_of)}."
    if row is None or not row.has_shares:
        return f"{bound}."
    return f"{bound}, {units.share(finding.recoverable_ns / row.window_ns)} of the window."


def won(finding: Finding, report: Report | None = None) -> str:
    """The bound and its assumption in full, and which findings speak of the same time."""
    return " ".join(filter(None, (gain(finding, report), overlap(report, finding) if report else None)))


def gain(finding: Finding, report: Report | None = None) -> str:
    """The bound and its assumption; many a counterfactual states the bound itself."""
    bound = None if _states_bound(finding) else at_most(finding, report)
    return " ".join(filter(None, (bound, finding.counterfactual)))


def _states_bound(finding: Finding) -> bool:
    """Then it also says what is bounded: perfect overlap, say, where copying less can win more."""
    return finding.recoverable_ns is not None and units.time(finding.recoverable_ns) in finding.counterfactual


def in_short(report: Report, alike: Sequence[Finding]) -> str:
    """For findings that are not the first: the claim, what could be won, where else, and the first step."""
    finding, *same = alike
    parts = (
        finding.claim,
        finding.counterfactual if _states_bound(finding) else at_most(finding, report),
        overlap(report, finding),
        elsewhere(report, same),
        f"Next: {finding.next[0]}" if finding.next else None,
    )
    return " ".join(filter(None, parts))


def elsewhere(report: Report, same: Sequence[Finding]) -> str | None:
    about = some((f"{_elsewhere(report, other)} [{other.id}]".strip() for other in same), "; ")
    return f"Likewise: {about}." if same else None


def _elsewhere(report: Report, finding: Finding) -> str:
    """A kernel with what could be won of it: the figures of kernels differ, those of devices are alike."""
    won = finding.recoverable_ns if finding.subject.launch is not None else None
    return subject(report, finding.subject) + ("" if won is None else f", at most {units.time(won)}")


def overlap(report: Report, finding: Finding) -> str | None:
    """Others on the same time. That several speak of one kernel need not be said: each names it."""
    others = {other.id: other for other in report.findings}
    ids = [
        each
        for each in report.overlaps.get(finding.id, ())
        if each not in others or not others[each].subject.same_kernel(finding.subject)
    ]
    return f"Partly the same time as {some(ids)}: do not add them up." if ids else None


def rest(groups: Sequence[Sequence[Finding]], shown: int) -> str:
    """Findings that are counted, not told: the grave ones first, then by rule."""
    hidden = [finding for group in groups[shown:] for finding in group]
    severities, rules = (Counter(getattr(finding, key) for finding in hidden) for key in ("severity", "rule"))
    grave = [f"{severities[severity]} {severity}" for severity in reversed(SEVERITIES) if severities[severity]]
    by_rule = [f"{rule} ({count})" for rule, count in sorted(rules.items())]
    return (
        f"{units.count(len(hidden), 'more finding')} ({', '.join(grave)}): {', '.join(by_rule)}. "
        f"--top {len(groups)} shows them."
    )


def device(report: Report, row: DeviceRow, *, hardware: bool = False) -> str:
    """The device with as much of its identity as is needed: process and file only where there are several."""
    parts = [f"GPU {row.device}"]
    if hardware and row.name:
        parts.append(row.name.removeprefix("NVIDIA "))
    if row.source in report.shared_by_processes:
        parts.append(f"pid {row.process}")
    if len(report.sources) > 1:
        parts.append(source_phrases.short_name(report, row.source))
    return ", ".join(parts)


def subject(report: Report, about: Subject) -> str:
    """What an answer is about, or nothing when the report is about one thing only."""
    if about.launch is not None:
        return profiled_kernel(report, about)
    if about.ranks:
        return ranks(about.ranks)
    row = device_of(report, about)
    if row:
        return device(report, row) if len(report.devices) > 1 else ""
    parts = []
    if about.process is not None and about.source in report.shared_by_processes:
        parts.append(f"pid {about.process}")
    if about.load is not None and len(report.serving) > 1:
        parts.append(about.load)
    if len(report.sources) > 1:
        parts.append(source_phrases.short_name(report, about.source))
    return ", ".join(parts)


def profiled_kernel(report: Report, about: Subject) -> str:
    """A kernel that Nsight Compute measured, told apart from others of its name."""
    name = report.short_names.get(about.kernel or "", about.kernel or "")
    return " ".join(filter(None, (name, _which(report, about))))


def _which(report: Report, about: Subject) -> str:
    """Grid and block of a profiled kernel where it was measured with several, and in which of several profiles."""
    profiled = report.profiled.get(about.kernel or "")
    if profiled is None:
        return ""
    row = profiled.launches.get(about.launch or "")
    parts = (
        about.configuration if profiled.n_configurations > 1 else None,
        f"in {source_phrases.short_name(report, row.source)}" if row and profiled.n_sources > 1 else None,
    )
    return " ".join(filter(None, parts))


def about(report: Report, finding: Finding) -> str:
    """What a finding is about, as far as its title does not say it."""
    whole = subject(report, finding.subject)
    which = _which(report, finding.subject)
    name = whole.removesuffix(which).strip()
    return which if finding.subject.launch is not None and name in finding.title else whole


def device_of(report: Report, about: Subject | KernelRow | RangeRow | OperatorRow) -> DeviceRow | None:
    return report.device_rows.get((about.source, about.process, about.device))


def focus(report: Report) -> DeviceRow | None:
    """The device that the verdict speaks of, else the one with the longest kernel, else the first."""
    finding = lead(report)
    about: list[Subject | KernelRow] = [*([finding.subject] if finding else []), *report.kernels[:1]]
    found = filter(None, (device_of(report, each) for each in about))
    return next(found, report.devices[0] if report.devices else None)


def on_device(report: Report) -> str:
    """For the title of a table about the device that the verdict speaks of; empty where there is one only."""
    row = focus(report)
    return f" on {device(report, row)}" if row and len(report.devices) > 1 else ""


def of_window(row: DeviceRow, ns: int) -> str:
    """A share of the window where there is work enough for shares to mean something, else a time."""
    return units.share(ns / row.window_ns) if row.has_shares else units.time(ns)


def captured(report: Report, row: DeviceRow, fact: str) -> bool:
    """Whether the device's source recorded such a thing at all, be it that nothing happened."""
    return any(source.id == row.source and source.captured(fact) for source in report.sources)


def more(rows: int, shown: int) -> str:
    """
    >>> more(24, 8)
    '… and 16 more (--top 24).'
    """
    return f"… and {rows - shown:,} more (--top {rows})."


def hidden_sources(report: Report, shown: int) -> str:
    """The inputs that are counted, not told, with how much there is to say about them."""
    hidden = report.sources[shown:]
    if not hidden:
        return ""
    notes = sum(len(report.notes.get(source.id, ())) for source in hidden)
    about_them = f" {units.count(notes, 'note')} on them: --format json." if notes else ""
    return more(len(report.sources), shown) + about_them


def some(texts: Iterable[str], separator: str = ", ") -> str:
    """
    >>> some(["a", "b"]), some("abcdef")
    ('a, b', 'a, b, c, d and 2 more')
    """
    every = list(texts)
    more = len(every) - MOST_NAMED
    return separator.join(every[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
