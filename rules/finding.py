"""What a rule can answer: a finding, all clear, or cannot tell."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from diag.timeline.intervals import Intervals

Severity = Literal["info", "warning", "critical"]
ShareOf = Literal["window", "profiled_kernel_time"]
Confidence = Literal["high", "medium", "low"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")
WARNING_SHARE = 0.02
CRITICAL_SHARE = 0.10


def is_about_capture(rule_id: str) -> bool:
    """Whether a rule judges how something was recorded, and not the run."""
    return rule_id.startswith("capture.") or rule_id in ("ncu.conditions", "serving.checks")


def severity_of(share: float) -> Severity:
    return "critical" if share >= CRITICAL_SHARE else "warning" if share >= WARNING_SHARE else "info"


@dataclass(frozen=True)
class Subject:
    """What an answer is about. Fields that do not apply are None."""

    source: int
    process: int | None = None  # pid
    device: int | None = None  # ordinal, local to the process
    context: int | None = None
    stream: int | None = None
    range: str | None = None
    kernel: str | None = None
    configuration: str | None = None  # grid and block of a kernel that Nsight Compute measured
    launch: str | None = None  # of such a kernel, the id of the launch that speaks for it
    ranks: tuple[int, ...] | None = None
    window: tuple[int, int] | None = None  # ns on the source's clock
    load: str | None = field(default=None, repr=False)  # of several on a server, its name; ids hash what is shown

    def same_device(self, other: Subject) -> bool:
        return (self.source, self.process, self.device) == (other.source, other.process, other.device)

    def same_kernel(self, other: Subject) -> bool:
        """Whether both speak of one kernel in one configuration, as one report profiled it."""
        return self.launch is not None and self.launch == other.launch

    def present(self) -> dict[str, object]:
        """Only the fields that apply, as the report contract wants them."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Evidence:
    """One number: what it is, its unit, how it was computed, and SQL on the case that shows the rows behind it."""

    label: str
    value: float | int | str
    unit: str  # of `diag.model.units.EVIDENCE`
    formula: str
    sql: str | None = None


@dataclass(frozen=True, eq=False)
class Finding:
    """Something worth acting on or knowing, that an observation could refute."""

    title: str
    claim: str
    subject: Subject
    counterfactual: str  # what would be won, under which assumption
    refute: str
    next: Sequence[str]
    evidence: Sequence[Evidence]
    share: float | None = None  # of the subject's window, or of `whole_ns`
    whole_ns: int | None = None  # what `share` is of where it is no window: all the kernel time that was profiled
    recoverable_ns: int | None = None  # upper bound; None when no bound can be given
    confidence: Confidence = "high"
    level: Severity | None = None  # overrides the severity that follows from the share
    held_up: int = 0  # ranks, or requests, that wait for what it is about
    extent: Intervals = field(default_factory=Intervals.empty)  # the device time it speaks of
    rule: str = ""  # filled in by the engine

    @property
    def severity(self) -> Severity:
        return self.level if self.level is not None else severity_of(self.share or 0.0)

    @property
    def share_of(self) -> ShareOf:
        return "window" if self.whole_ns is None else "profiled_kernel_time"

    @property
    def id(self) -> str:
        """The same rule on the same subject and window has the same id in every run."""
        about = repr((self.rule, self.subject)) + (self.subject.load or "")
        return "F" + hashlib.sha256(about.encode()).hexdigest()[:10]

    @property
    def recoverable_share(self) -> float:
        """Recoverable time as a share of what `share` is of; 0 where either is not known."""
        start_ns, end_ns = self.subject.window or (0, self.whole_ns or 0)
        return (self.recoverable_ns or 0) / (end_ns - start_ns) if end_ns > start_ns else 0.0

    @property
    def rank(self) -> tuple[int, int, float, float, int, str]:
        """Sort key: severity, who waits, the shares that can be won and that are taken, confidence, a tie-break."""
        return (
            -SEVERITIES.index(self.severity),
            -self.held_up,
            -self.recoverable_share,
            -(self.share or 0.0),
            CONFIDENCES.index(self.confidence),
            self.id,
        )


@dataclass(frozen=True)
class Clear:
    """The rule looked and found nothing."""

    subject: Subject
    rule: str = ""


@dataclass(frozen=True)
class CannotTell:
    """The rule could not decide, because something was not captured or is not known."""

    subject: Subject
    because: str
    rule: str = ""
    beyond_format: bool = False  # no file of this format ever tells it


Answer = Finding | Clear | CannotTell
