"""The verdict: one sentence that says what the run is limited by, and what it is not limited by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.rules.finding import Clear, Finding, Subject
from diag.rules.report import Verdict
from diag.timeline.device import DeviceTimeline


def verdict(findings: Sequence[Finding], clear: Sequence[Clear], devices: Sequence[DeviceTimeline]) -> Verdict:
    """Takes the first of the ranked findings that time can be won from, or that is at least a warning.

    Findings about a device come first: what slows the host matters when the device feels it.
    """
    serious = [finding for finding in findings if finding.recoverable_ns or finding.severity != "info"]
    of_devices = [f for f in serious if f.subject.device is not None and f.severity != "info"]
    top = next(iter(of_devices or serious), None)
    if top is None:
        return _healthy(findings, clear, devices)
    excluded = list(_excluded(top.subject, findings, clear)) if top.rule != "idle.gpu" else []
    title = "; ".join((top.title, ", ".join(excluded))) if excluded else top.title
    agreement = _agreement(top, findings, devices)
    return Verdict(title, " ".join(filter(None, (top.claim, agreement))), top.id)


def _excluded(subject: Subject, findings: Sequence[Finding], clear: Sequence[Clear]) -> Iterator[str]:
    """What the same subject is shown not to suffer from."""
    if any(answer.rule == "idle.gpu" and answer.subject.same_device(subject) for answer in clear):
        yield "not idle"
    if any(finding.rule == "launch.back_pressure" and finding.subject.same_device(subject) for finding in findings):
        yield "not CPU-bound"


def _agreement(top: Finding, findings: Sequence[Finding], devices: Sequence[DeviceTimeline]) -> str:
    """Whether the other devices show the same."""
    if top.subject.device is None or len(devices) < 2:
        return ""
    same = [f for f in findings if f.rule == top.rule and f.subject.device is not None]
    if len(same) == len(devices):
        shares = sorted(f.share or 0.0 for f in same)
        low, high = units.share(shares[0]), units.share(shares[-1])
        spread = low if low == high else f"{low} to {high}"
        holds = "both devices" if len(devices) == 2 else f"all {len(devices)} devices"
        return f"The same holds for {holds} ({spread} of their windows)."
    return (
        f"This speaks for GPU {top.subject.device} of process {top.subject.process}; "
        f"{len(devices) - len(same)} of {len(devices)} devices differ."
    )


def _healthy(findings: Sequence[Finding], clear: Sequence[Clear], devices: Sequence[DeviceTimeline]) -> Verdict:
    if devices and any(device.has_shares for device in devices):
        busiest = max(devices, key=lambda device: device.window_ns)
        summary = (
            f"The device is busy {units.share(busiest.share(busiest.busy))} of its window of "
            f"{units.time(busiest.window_ns)}, and no rule found time to win on the timeline. "
            "Look into the kernels next."
        )
        hot = next((f for f in findings if f.rule == "kernels.hot"), None)
        return Verdict("No fault found on the timeline", summary, hot.id if hot else None)
    if any(not answer.rule.startswith("capture.") for answer in clear):
        return Verdict("No fault found in what was captured", "See below for what could not be told, and why.", None)
    return Verdict("Cannot tell", "Too little was captured for any rule to decide; see below what is missing.", None)
