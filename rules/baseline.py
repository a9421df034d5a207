"""Findings against those of an earlier run, for continuous integration: which are new, worse, better, known or gone.

Two runs share no process id, no window and no id of a finding. A finding is recognised by its rule, the ordinal of its
device and the pattern of the kernel or range that it is about; where several of one report agree in these, as on many
ranks, the one with the largest share stands for all.

A share alone would blame a faster run: when everything else takes less time, the same idle time is a larger part of the
window. So worse is what takes a larger share and more time, better what takes less of both. Time has changed when it
did by more than the margin of the earlier window: two runs of one program differ by less.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from diag.rules import document
from diag.rules.baseline_report import Before, Comparison, Gone, Standing, WindowChange
from diag.rules.document import AnswerOf, DeviceOf, Document, FindingOf, SubjectOf, devices_by_key
from diag.rules.finding import WARNING_SHARE, Finding, Severity, ShareOf
from diag.rules.report import Report
from diag.store.names import pattern_of

DEFAULT_MARGIN = WARNING_SHARE
"""A rise of less would be no warning by itself, and is within what two runs of one program differ by."""

Key = tuple[str, int | None, str]
"""Rule, device ordinal, and pattern of the kernel or range, or the load."""

Place = tuple[int | None, int, bool]
"""Rank, device ordinal, and whether its window is only the part that the user asked for."""

_FIGURE = re.compile(r"(?<!\w)\d")
"""A number that stands for itself, not one in a name like conv2d."""


@dataclass(frozen=True)
class Remembered:
    """What is known of one finding of any run."""

    key: Key
    title: str
    severity: Severity
    share: float | None
    share_of: ShareOf
    window_ns: int | None  # that the share is of; None where nothing tells
    recoverable_ns: int | None
    is_fact: bool  # information by its rule, whatever its share

    @property
    def recoverable_share(self) -> float:
        """Of the window; 0 where either is not known."""
        return (self.recoverable_ns or 0) / self.window_ns if self.window_ns else 0.0

    @property
    def time_ns(self) -> float | None:
        return None if self.window_ns is None else (self.share or 0.0) * self.window_ns


@dataclass(frozen=True)
class Baseline:
    """What is known of an earlier run."""

    findings: Mapping[Key, Remembered]
    windows_ns: Mapping[Place, int]


# ---- where a baseline comes from -----------------------------------------------------------------------------------


def of_json(data: bytes, name: str) -> Baseline:
    """The findings of a report that was written with `--format json`. Raises InputError when it is no such report."""
    return of_document(document.of_json(data, name))


def of_report(report: Report) -> Baseline:
    return of_document(document.of_report(report))


def of_document(report: Document) -> Baseline:
    windows = {place: row.window_ns for place, row in _places(report).items()}
    return Baseline(worst_of(remembered(report)), windows)


def remembered(report: Document) -> list[Remembered]:
    """One for each finding, in their order."""
    windows = {key: row.window_ns for key, row in devices_by_key(report.devices).items()}
    return [
        Remembered(
            key=_key(each, are_loads=len(report.serving) > 1),
            title=each.title,
            severity=each.severity,
            share=each.share,
            share_of=each.share_of,
            window_ns=_window_ns(each.subject, windows) or each.whole_ns,
            recoverable_ns=each.recoverable_ns,
            is_fact=each.is_fact,
        )
        for each in report.findings
    ]


def _key(finding: FindingOf, *, are_loads: bool) -> Key:
    """`are_loads`: there are several, which names tell apart. The only load of a report is the same by any name."""
    about = finding.subject
    load = about.load if are_loads else None
    return finding.rule, about.device, load or pattern_of(about.kernel or about.range or "")


def _window_ns(about: SubjectOf, windows: Mapping[tuple[int, int, int], int]) -> int | None:
    """Length of the window that shares of this subject are of: its device's, which may have holes, or its own."""
    if about.source is not None and about.process is not None and about.device is not None:
        length_ns = windows.get((about.source, about.process, about.device))
        if length_ns is not None:
            return length_ns
    return about.window[1] - about.window[0] if about.window else None


def _places(report: Document) -> Mapping[Place, DeviceOf]:
    """Devices by what is the same in another run, without those that cannot be told apart, as of two processes."""
    ranks = {source.id: source.rank for source in report.sources}
    placed = [((ranks.get(row.source), row.device, row.is_scoped), row) for row in report.devices]
    numbers = Counter(place for place, _ in placed)
    return {place: row for place, row in placed if numbers[place] == 1}


def worst_of(found: Iterable[Remembered]) -> Mapping[Key, Remembered]:
    """Of those that are recognised as the same, the one with the largest share."""
    worst: dict[Key, Remembered] = {}
    for each in found:
        known = worst.get(each.key)
        if known is None or (each.share or 0.0) > (known.share or 0.0):
            worst[each.key] = each
    return worst


# ---- comparison ----------------------------------------------------------------------------------------------------


def compare(report: Report, baseline: Baseline, path: str, margin: float = DEFAULT_MARGIN) -> Comparison:
    """How each finding of the report stands to the baseline; a share has changed when it did by more than `margin`."""
    now_known = document.of_report(report)
    here = list(zip(report.findings, remembered(now_known), strict=True))
    worst = worst_of(now for _, now in here)
    known = {finding.id: baseline.findings.get(now.key) for finding, now in here}
    return Comparison(
        path,
        margin,
        standing={finding.id: standing(now, worst[now.key], known[finding.id], margin) for finding, now in here},
        before={
            finding.id: Before(then.title, then.share, is_other_cause(then.title, finding.title))
            for finding, _ in here
            if (then := known[finding.id])
        },
        gone=gone(now_known, worst, baseline),
        windows=_changes(now_known, baseline),
    )


def standing(now: Remembered, worst: Remembered, then: Remembered | None, margin: float) -> Standing:
    """`worst` is the one of its key in this report: nothing is better on one rank while another is as bad as ever."""
    if then is None:
        return "new"
    # A fact that is no fault gets neither worse nor better: a hot kernel's share rises when all else gets faster.
    if now.is_fact or now.share is None:
        return "known"
    # Nor does what one report sees as a share of the run, and another of the kernels that were profiled.
    if then.share is None or then.share_of != now.share_of:
        return "known"
    if min(_rises(then, now)) > margin:
        return "worse"
    return "better" if max(_rises(then, worst)) < -margin else "known"


def _rises(then: Remembered, now: Remembered) -> tuple[float, float]:
    """By how much the share rose, and the time as a share of the earlier window: the same where none is known."""
    rise = (now.share or 0.0) - (then.share or 0.0)
    if now.time_ns is None or then.time_ns is None or not then.window_ns:
        return rise, rise
    return rise, (now.time_ns - then.time_ns) / then.window_ns


def is_other_cause(before: str, now: str) -> bool:
    """Whether two titles of one rule differ in more than their figures, which differ from run to run."""
    return before != now and not _FIGURE.search(before) and not _FIGURE.search(now)


def _changes(report: Document, baseline: Baseline) -> list[WindowChange]:
    return [
        WindowChange(row.source, row.process, row.device, before_ns, row.window_ns)
        for place, row in _places(report).items()
        if (before_ns := baseline.windows_ns.get(place)) is not None
    ]


def gone(report: Document, worst: Mapping[Key, Remembered], baseline: Baseline) -> list[Gone]:
    """The findings of the baseline that the report, of which the `worst` are given, does not have."""
    return [_gone(then, report) for key, then in sorted(baseline.findings.items(), key=_by_key) if key not in worst]


def _gone(known: Remembered, report: Document) -> Gone:
    """A rule that no longer looked at the device, as something was not captured, does not say that a fault is gone."""
    rule, device, name = known.key
    answers: list[AnswerOf | FindingOf] = [*report.clear, *report.findings]
    looked = any(answer.rule == rule and answer.subject.device in (device, None) for answer in answers)
    could_not = any(answer.rule == rule for answer in report.cannot_tell)
    return Gone(
        rule=rule,
        title=known.title,
        severity=known.severity,
        device=device,
        name=name or None,
        share=known.share,
        share_of=known.share_of,
        is_judged=looked or not could_not,
    )


def _by_key(item: tuple[Key, Remembered]) -> tuple[str, int, str]:
    (rule, device, name), _ = item
    return rule, -1 if device is None else device, name


def failures(report: Report, severities: Sequence[Severity]) -> list[Finding]:
    """Findings of these severities; with a baseline, those of them that are new or worse."""
    counted = (finding for finding in report.findings if finding.severity in severities)
    if report.baseline is None:
        return list(counted)
    return [finding for finding in counted if report.baseline.standing[finding.id] in ("new", "worse")]
