"""One run of one fault, what a rule said of it, and the score of many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from diag.rules.finding import Finding
from diag.rules.report import Report

Kind = str
"""Of the evidence: 'nsys' and 'torch' captured here, 'synthetic', 'synthetic ncu' and 'synthetic load' built."""

TOLERANCE = 0.10
"""The reported share may differ from the injected one by this part of it."""
ANYTHING = ""
"""Told by every finding of a rule: of twins it may have none."""
LEAST_SHARE = 0.02
"""Below that a mention in the evidence of a finding accuses nobody."""


@dataclass(frozen=True)
class Trial:
    fault: str
    kind: Kind
    rule: str
    dose: float
    seed: int
    is_sick: bool
    injected: float
    reported: float | None
    """None: the rule accused nobody of this fault."""
    accused: tuple[str, ...] = ()
    """Rules by which the same report accuses the run of other faults."""
    threshold: float = 0.0
    """Share from which the rule fires."""
    unit: str = "share"
    """Of injected and reported."""

    @property
    def deviation(self) -> float | None:
        """Of the reported share from the injected one, as a part of it."""
        if not self.is_sick or self.reported is None or not self.injected:
            return None
        return self.reported / self.injected - 1

    @property
    def miss(self) -> str | None:
        """What went wrong, in words."""
        what = f"{self.fault} ({self.kind}, dose {self.dose:.2f}, seed {self.seed})"
        if self.is_sick_enough and self.reported is None:
            return f"{what}: {self.rule} did not find {self.injected:.1%}"
        if not self.is_sick and self.reported is not None and not self.is_sick_by_itself:
            return f"{what}: {self.rule} accuses the healthy twin of {self.reported:.1%}"
        if self.accused:
            return f"{what}: also accused by {', '.join(self.accused)}"
        if self.deviation is not None and abs(self.deviation) > TOLERANCE:
            return f"{what}: {self.rule} reports {self.reported:.1%} of {self.injected:.1%} injected"
        return None

    @property
    def is_sick_enough(self) -> bool:
        """What is below the rule's threshold, it need not find: a dose is aimed at, and hit by and by."""
        return self.is_sick and self.injected >= self.threshold

    @property
    def is_sick_by_itself(self) -> bool:
        """A twin to which the machine did what the fault would have done: measured, not guessed."""
        return not self.is_sick and self.injected >= self.threshold > 0


@dataclass(frozen=True)
class Score:
    """Of one rule on one fault, in one kind of evidence."""

    trials: Sequence[Trial]

    @property
    def sick(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.is_sick_enough]

    @property
    def twins(self) -> list[Trial]:
        return [trial for trial in self.trials if not trial.is_sick and not trial.is_sick_by_itself]

    @property
    def found(self) -> int:
        return sum(trial.reported is not None for trial in self.sick)

    @property
    def false(self) -> int:
        return sum(trial.reported is not None for trial in self.twins)

    @property
    def recall(self) -> float:
        return self.found / len(self.sick) if self.sick else 1.0

    def precision(self, elsewhere: int) -> float:
        """`elsewhere`: runs of other faults that the rule accuses of this one."""
        wrong = self.false + elsewhere
        return self.found / (self.found + wrong) if self.found + wrong else 1.0

    @property
    def worst_deviation(self) -> float:
        return max(self._deviations, key=abs, default=0.0)

    @property
    def mean_deviation(self) -> float:
        return fmean(self._deviations) if self._deviations else 0.0

    @property
    def _deviations(self) -> list[float]:
        return [trial.deviation for trial in self.trials if trial.deviation is not None]


def accusation(report: Report, rule: str, tells: str) -> float | None:
    """The share that a rule gives to the fault that `tells` describes, or None.

    A finding that names another cause first gives it in its evidence, as the list of the hottest ranges does.
    """
    for finding in (each for each in report.findings if each.rule == rule):
        if re.search(tells, f"{finding.title} {finding.claim}"):
            return finding.share
        if (share := _share_in_evidence(finding, tells)) is not None and share >= LEAST_SHARE:
            return share
    return None


def figure(finding: Finding, label: str) -> float | None:
    """A figure of a finding; None where it has none of this name."""
    return next((float(each.value) for each in finding.evidence if each.label == label), None)


def _share_in_evidence(finding: Finding, tells: str) -> float | None:
    whole_ns = _whole_ns(finding)
    times = [float(e.value) for e in finding.evidence if e.unit == "ns" and re.search(tells, e.label)]
    return max(times) / whole_ns if times and whole_ns else None


def _whole_ns(finding: Finding) -> float:
    """What the finding's own share is of, from the evidence that it was computed from."""
    first = next((float(e.value) for e in finding.evidence if e.unit == "ns"), 0.0)
    return first / finding.share if finding.share else 0.0
