"""Findings against those of an earlier run, for continuous integration: which are new, worse, known or gone.

Two runs share no process id, no window and no id of a finding. A finding is recognised by its rule, the ordinal of its
device and the pattern of the kernel or range that it is about; where several of one report agree in these, as on many
ranks, the one with the largest share stands for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from diag.errors import InputError
from diag.rules.finding import WARNING_SHARE, Answer, Finding, Severity
from diag.rules.report import Comparison, Gone, Report, Standing
from diag.store.names import pattern_of

DEFAULT_MARGIN = WARNING_SHARE
"""A rise of less would be no warning by itself, and is within what two runs of one program differ by."""

MOST_BYTES = 256 << 20
"""Of a JSON report; the largest of real traces has 5 MB."""

Key = tuple[str, int | None, str]
"""Rule, device ordinal, and pattern of the kernel or range."""


@dataclass(frozen=True)
class Remembered:
    """What a baseline knows of one finding."""

    key: Key
    title: str
    severity: Severity
    share: float | None


Baseline = Mapping[Key, Remembered]


# ---- where a baseline comes from -----------------------------------------------------------------------------------


def of_report(report: Report) -> Baseline:
    return _worst_of(
        Remembered(_key(finding), finding.title, finding.severity, finding.share) for finding in report.findings
    )


def of_json(data: bytes, name: str) -> Baseline:
    """The findings of a report that was written with `--format json`. Raises InputError when it is no such report."""
    try:
        report = msgspec.json.decode(data, type=_Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(
            f"{name} is no report of diag ({said}). Write one with: diag report INPUT --format json"
        ) from error
    return _worst_of(finding.remembered() for finding in report.findings)


class _Subject(msgspec.Struct):
    device: int | None = None
    kernel: str | None = None
    range: str | None = None


class _Finding(msgspec.Struct):
    rule: str
    title: str
    severity: Severity
    subject: _Subject
    share: float | None

    def remembered(self) -> Remembered:
        about = self.subject
        key = (self.rule, about.device, pattern_of(about.kernel or about.range or ""))
        return Remembered(key, self.title, self.severity, self.share)


class _Report(msgspec.Struct):
    """Of the contract `diag.report/1` only what a comparison needs; other keys are passed over."""

    schema: Literal["diag.report/1"]
    findings: list[_Finding]


def _key(finding: Finding) -> Key:
    about = finding.subject
    return finding.rule, about.device, pattern_of(about.kernel or about.range or "")


def _worst_of(found: Iterable[Remembered]) -> Baseline:
    worst: dict[Key, Remembered] = {}
    for each in found:
        known = worst.get(each.key)
        if known is None or (each.share or 0.0) > (known.share or 0.0):
            worst[each.key] = each
    return worst


# ---- comparison ----------------------------------------------------------------------------------------------------


def compare(report: Report, baseline: Baseline, path: str, margin: float = DEFAULT_MARGIN) -> Comparison:
    """How each finding of the report stands to the baseline; a share is worse when it rose by more than `margin`."""
    standing = {finding.id: _standing(finding, baseline.get(_key(finding)), margin) for finding in report.findings}
    before = {
        finding.id: known.share for finding in report.findings if (known := baseline.get(_key(finding))) is not None
    }
    here = {_key(finding) for finding in report.findings}
    gone = [_gone(known, report) for key, known in sorted(baseline.items(), key=_by_key) if key not in here]
    return Comparison(path, margin, standing, before, gone)


def _standing(finding: Finding, known: Remembered | None, margin: float) -> Standing:
    if known is None:
        return "new"
    # A fact that is no fault cannot get worse: a hot kernel's share rises when everything else gets faster.
    is_fact = finding.level == "info"
    rise = (finding.share or 0.0) - (known.share or 0.0)
    return "worse" if not is_fact and finding.share is not None and rise > margin else "known"


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
    return [finding for finding in counted if report.baseline.standing[finding.id] != "known"]
