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
from typing import Literal

import msgspec

from diag.errors import InputError
from diag.rules.finding import WARNING_SHARE, Answer, Finding, Severity, Subject
from diag.rules.report import Before, Comparison, DeviceRow, Gone, Report, Standing, WindowChange
from diag.store.names import pattern_of

DEFAULT_MARGIN = WARNING_SHARE
"""A rise of less would be no warning by itself, and is within what two runs of one program differ by."""

MOST_BYTES = 256 << 20
"""Of a JSON report; the largest of real traces has 5 MB."""

Key = tuple[str, int | None, str]
"""Rule, device ordinal, and pattern of the kernel or range."""

Place = tuple[int | None, int, bool]
"""Rank, device ordinal, and whether its window is only the part that the user asked for."""

_FIGURE = re.compile(r"(?<!\w)\d")
"""A number that stands for itself, not one in a name like conv2d."""


@dataclass(frozen=True)
class Remembered:
    """What a baseline knows of one finding."""

    key: Key
    title: str
    severity: Severity
    share: float | None
    window_ns: int | None  # that the share is of; None where nothing tells

    @property
    def time_ns(self) -> float | None:
        return None if self.window_ns is None else (self.share or 0.0) * self.window_ns


@dataclass(frozen=True)
class Baseline:
    """What is known of an earlier run."""

    findings: Mapping[Key, Remembered]
    windows_ns: Mapping[Place, int]


# ---- where a baseline comes from -----------------------------------------------------------------------------------


class _Subject(msgspec.Struct):
    source: int | None = None
    process: int | None = None
    device: int | None = None
    kernel: str | None = None
    range: str | None = None
    window: tuple[int, int] | None = None


class _Finding(msgspec.Struct):
    rule: str
    title: str
    severity: Severity
    subject: _Subject
    share: float | None


class _Source(msgspec.Struct):
    id: int
    rank: int | None = None


class _Device(msgspec.Struct):
    source: int
    process: int
    device: int
    window_ns: int
    is_scoped: bool


class _Report(msgspec.Struct):
    """Of the contract `diag.report/1` what a comparison needs, named as in `Report`; other keys are passed over."""

    schema: Literal["diag.report/1"]
    findings: list[_Finding]
    sources: list[_Source] = []
    devices: list[_Device] = []


def of_json(data: bytes, name: str) -> Baseline:
    """The findings of a report that was written with `--format json`. Raises InputError when it is no such report."""
    try:
        report = msgspec.json.decode(data, type=_Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(
            f"{name} is no report of diag ({said}). Write one with: diag report INPUT --format json"
        ) from error
    return of_report(report)


def of_report(report: Report | _Report) -> Baseline:
    windows = {place: row.window_ns for place, row in _places(report).items()}
    return Baseline(_worst_of(_remembered(report)), windows)


def _remembered(report: Report | _Report) -> list[Remembered]:
    """One for each finding, in their order."""
    windows = {(row.source, row.process, row.device): row.window_ns for row in report.devices}
    return [
        Remembered(_key(each), each.title, each.severity, each.share, _window_ns(each.subject, windows))
        for each in report.findings
    ]


def _key(finding: Finding | _Finding) -> Key:
    about = finding.subject
    return finding.rule, about.device, pattern_of(about.kernel or about.range or "")


def _window_ns(about: Subject | _Subject, windows: Mapping[tuple[int, int, int], int]) -> int | None:
    """Length of the window that shares of this subject are of: its device's, which may have holes, or its own."""
    if about.source is not None and about.process is not None and about.device is not None:
        length_ns = windows.get((about.source, about.process, about.device))
        if length_ns is not None:
            return length_ns
    return about.window[1] - about.window[0] if about.window else None


def _places(report: Report | _Report) -> Mapping[Place, DeviceRow | _Device]:
    """Devices by what is the same in another run, without those that cannot be told apart, as of two processes."""
    ranks = {source.id: source.rank for source in report.sources}
    placed = [((ranks.get(row.source), row.device, row.is_scoped), row) for row in report.devices]
    numbers = Counter(place for place, _ in placed)
    return {place: row for place, row in placed if numbers[place] == 1}


def _worst_of(found: Iterable[Remembered]) -> Mapping[Key, Remembered]:
    worst: dict[Key, Remembered] = {}
    for each in found:
        known = worst.get(each.key)
        if known is None or (each.share or 0.0) > (known.share or 0.0):
            worst[each.key] = each
    return worst


# ---- comparison ----------------------------------------------------------------------------------------------------


def compare(report: Report, baseline: Baseline, path: str, margin: float = DEFAULT_MARGIN) -> Comparison:
    """How each finding of the report stands to the baseline; a share has changed when it did by more than `margin`."""
    here = list(zip(report.findings, _remembered(report), strict=True))
    worst = _worst_of(now for _, now in here)
    known = {finding.id: baseline.findings.get(now.key) for finding, now in here}
    gone = [then for key, then in sorted(baseline.findings.items(), key=_by_key) if key not in worst]
    return Comparison(
        path,
        margin,
        standing={
            finding.id: _standing(finding, now, worst[now.key], known[finding.id], margin) for finding, now in here
        },
        before={
            finding.id: Before(then.title, then.share, _is_other_cause(then.title, finding.title))
            for finding, _ in here
            if (then := known[finding.id])
        },
        gone=[_gone(then, report) for then in gone],
        windows=_changes(report, baseline),
    )


def _standing(finding: Finding, now: Remembered, worst: Remembered, then: Remembered | None, margin: float) -> Standing:
    """`worst` is the one of its key in this report: nothing is better on one rank while another is as bad as ever."""
    if then is None:
        return "new"
    # A fact that is no fault gets neither worse nor better: a hot kernel's share rises when all else gets faster.
    if finding.level == "info" or finding.share is None:
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


def _is_other_cause(before: str, now: str) -> bool:
    """Whether two titles of one rule differ in more than their figures, which differ from run to run."""
    return before != now and not _FIGURE.search(before) and not _FIGURE.search(now)


def _changes(report: Report, baseline: Baseline) -> list[WindowChange]:
    return [
        WindowChange(row.source, row.process, row.device, before_ns, row.window_ns)
        for place, row in _places(report).items()
        if (before_ns := baseline.windows_ns.get(place)) is not None
    ]


def _gone(known: Remembered, report: Report) -> Gone:
    """A rule that no longer looked at the device, as something was not captured, does not say that a fault is gone."""
    rule, device, name = known.key
    answers: list[Answer] = [*report.clear, *report.findings]
    looked = any(answer.rule == rule and answer.subject.device in (device, None) for answer in answers)
    could_not = any(answer.rule == rule for answer in report.cannot_tell)
    return Gone(rule, known.title, known.severity, device, name or None, known.share, is_judged=looked or not could_not)


def _by_key(item: tuple[Key, Remembered]) -> tuple[str, int, str]:
    (rule, device, name), _ = item
    return rule, -1 if device is None else device, name


def failures(report: Report, severities: Sequence[Severity]) -> list[Finding]:
    """Findings of these severities; with a baseline, those of them that are new or worse."""
    counted = (finding for finding in report.findings if finding.severity in severities)
    if report.baseline is None:
        return list(counted)
    return [finding for finding in counted if report.baseline.standing[finding.id] in ("new", "worse")]
