"""Findings of startup are told apart from those of steady state."""

from __future__ import annotations

from dataclasses import replace

from diag.model import units
from diag.rules.finding import SEVERITIES, Answer, Evidence, Finding, severity_of
from diag.timeline.startup import Startup
from diag.timeline.trace import Trace


def told_apart(answer: Answer, trace: Trace) -> Answer:
    """The answer, saying what of a finding about a device lies in startup.

    A finding that lies mostly there weighs no more than what it takes of steady state.
    """
    if not isinstance(answer, Finding) or (startup := _startup(answer, trace)) is None:
        return answer
    early = answer.extent & startup.time
    if not early:
        return answer
    steady = answer.extent & startup.steady
    share = steady.measure_ns / max(startup.steady.measure_ns, 1)
    in_startup = "part before the last one-time work (loading, allocation, compilation) ahead of steady state"
    told = replace(
        answer,
        evidence=[
            *answer.evidence,
            Evidence("in startup", early.measure_ns, "ns", in_startup),
            Evidence("share of steady state", share, "share", "the rest / (window - startup)"),
        ],
    )
    if early.measure_ns < steady.measure_ns:
        return told
    sentence = (
        f"{units.time(early.measure_ns)} of it is startup (the first {units.time(startup.time.measure_ns)}), which a "
        f"longer run pays once; of steady state it takes {units.share(share)}."
    )
    level = min(answer.severity, severity_of(share), key=SEVERITIES.index)
    return replace(told, claim=f"{answer.claim} {sentence}", level=level)


def _startup(finding: Finding, trace: Trace) -> Startup | None:
    """That of the device which the finding is about, if it is about one."""
    for device in trace.devices if finding.subject.device is not None else ():
        if (device.pid, device.device) == (finding.subject.process, finding.subject.device):
            return trace.startup_of(device)
    return None
