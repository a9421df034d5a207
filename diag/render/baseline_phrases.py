"""How a report stands to the one before it, in words."""

from __future__ import annotations

from collections import Counter

from diag.model import units
from diag.render import phrases
from diag.rules.baseline_report import Comparison, Gone, WindowChange
from diag.rules.finding import Finding
from diag.rules.report import Report


def summary(report: Report, comparison: Comparison) -> str:
    """How many findings are new, worse, known and gone, and what worse means."""
    numbers = Counter(comparison.standing[finding.id] for finding in report.findings)
    judged = sum(gone.is_judged for gone in comparison.gone)
    counts = [f"{numbers[standing]} {standing}" for standing in ("new", "worse", "better", "known")]
    counts.append(f"{judged} gone")
    if unjudged := len(comparison.gone) - judged:
        counts.append(f"{unjudged} not looked for again")
    margin = units.share(comparison.margin)
    return f"{', '.join(counts)}. Worse: the share of the window rose by more than {margin}, and so did the time."


def window_changes(report: Report, comparison: Comparison) -> list[str]:
    """How long the window of each device was then and is now."""
    return [_window_change(report, change, is_alone=len(report.devices) == 1) for change in comparison.windows]


def _window_change(report: Report, change: WindowChange, *, is_alone: bool) -> str:
    row = report.device_rows[change.source, change.process, change.device]
    lengths = f"{units.time(change.before_ns)} → {units.time(change.window_ns)}"
    ratio = f" ({change.window_ns / change.before_ns - 1:+.0%})" if change.before_ns else ""
    where = "" if is_alone else f" of {phrases.device(report, row)}"
    return f"Window{where} {lengths}{ratio.replace('-', '−').replace('%', ' %')}"


def changes(report: Report, comparison: Comparison) -> list[str]:
    """A line for each finding that is new, changed or has another cause, and for each that the baseline alone has."""
    changed = [finding for finding in report.findings if _has_changed(comparison, finding)]
    return [*(_changed(report, comparison, finding) for finding in changed), *map(_gone, comparison.gone)]


def _has_changed(comparison: Comparison, finding: Finding) -> bool:
    before = comparison.before.get(finding.id)
    return comparison.standing[finding.id] != "known" or (before is not None and before.is_other_cause)


def _changed(report: Report, comparison: Comparison, finding: Finding) -> str:
    standing, before = comparison.standing[finding.id], comparison.before.get(finding.id)
    where = phrases.about(report, finding)
    shares = cause = ""
    if before and standing in ("worse", "better"):
        of = phrases.whole(finding.share_of)
        shares = f": {units.share(before.share or 0.0)} of {of} then, {units.share(finding.share or 0.0)} now"
    if before and before.is_other_cause:
        cause = f"; cause changed: was {before.title!r}"
    return f"{standing}: {finding.title}{f', {where}' if where else ''}{shares}{cause} [{finding.id}]"


def _gone(gone: Gone) -> str:
    about = "" if gone.device is None else f", GPU {gone.device}"
    share = "" if gone.share is None else f", {units.share(gone.share)} of {phrases.whole(gone.share_of)} then"
    standing = "gone" if gone.is_judged else "not looked for again, as something was not captured"
    return f"{standing}: {gone.title}{about}{share} (rule {gone.rule})"
