"""How a report stands to that of an earlier run (`diag.rules.baseline` works it out)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.rules.finding import Severity, ShareOf

Standing = Literal["new", "worse", "better", "known"]


@dataclass(frozen=True)
class Before:
    """A finding of this run as the baseline has it."""

    title: str
    share: float | None
    is_other_cause: bool  # the rule gives another reason now


@dataclass(frozen=True)
class WindowChange:
    """The window of a device in both runs."""

    source: int
    process: int
    device: int
    before_ns: int
    window_ns: int


@dataclass(frozen=True)
class Gone:
    """A finding of the baseline that this run does not have."""

    rule: str
    title: str  # as it was then
    severity: Severity
    device: int | None  # ordinal
    name: str | None  # pattern of the kernel or range that it was about
    share: float | None
    share_of: ShareOf
    is_judged: bool  # the rule looked again; otherwise what it needs was not captured this time


@dataclass(frozen=True)
class Comparison:
    """How the findings stand to those of an earlier run (`rules/baseline.py`)."""

    path: str  # of the baseline
    margin: float  # what changed by more, in share and in time, is worse or better
    standing: Mapping[str, Standing]  # by finding id
    before: Mapping[str, Before]  # by id of a finding that the baseline has, too
    gone: Sequence[Gone]
    windows: Sequence[WindowChange]  # of the devices that can be told apart in both runs
