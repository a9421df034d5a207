"""What every reader of Nsight Compute's files gives, whatever the file looked like: one record for each launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Value = int | float | str
Size = tuple[int, int, int]
MessageType = Literal["ok", "info", "optimization", "warning", "error"]
SpeedupKind = Literal["local", "global"]
Severity = Literal["default", "low", "high"]


class Instance(NamedTuple):
    """One of the values that a metric is made of."""

    key: Value | None
    """Address of an instruction, opcode or other name; None where the position says what it is."""
    value: Value | None


class Metric(NamedTuple):
    """One metric of one launch, in ncu's base unit: bytes, not kilobytes."""

    name: str
    unit: str
    value: Value | None
    instances: Sequence[Instance] = ()


@dataclass(frozen=True)
class OpenRange:
    """An NVTX range that was open around a launch."""

    depth: int
    kind: Literal["push", "start"]
    domain: str  # '<default domain>' is NVTX's own
    name: str


@dataclass(frozen=True)
class FocusMetric:
    """A metric that made one of NVIDIA's rules say what it said."""

    metric: str
    value: float | None
    severity: Severity
    info: str


@dataclass(frozen=True)
class RuleResult:
    """One message of one of NVIDIA's own rules; a rule may give several, or none."""

    rule: str
    section: str | None
    name: str | None
    type: MessageType
    title: str | None
    message: str
    speedup_pct: float | None = None
    speedup_kind: SpeedupKind | None = None
    focus: Sequence[FocusMetric] = ()


@dataclass(frozen=True)
class Instruction:
    """One instruction of a launch's machine code."""

    address: int
    sass: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class ProfiledDevice:
    """A device as a report describes it. `attributes` are CUDA's, by their names in the driver API in lower case."""

    ordinal: int
    name: str | None = None
    uuid: str | None = None
    compute_capability: tuple[int, int] | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)
    pid: int | None = None  # whose ordinal it is, where the file says that


@dataclass(frozen=True)
class LaunchRecord:
    """One kernel launch, or a range of several, as it was measured. What a file does not say is None."""

    kind: Literal["kernel", "range", "graph"]
    name: str
    short_name: str | None = None
    pid: int | None = None
    process_name: str | None = None
    tid: int | None = None
    device: int | None = None  # ordinal
    context: int | None = None
    stream: int | None = None
    grid: Size | None = None
    block: Size | None = None
    is_clock_locked: bool | None = None
    metrics: Sequence[Metric] = ()
    ranges: Sequence[OpenRange] = ()
    rules: Sequence[RuleResult] = ()
    instructions: Sequence[Instruction] = ()
    measured_on: ProfiledDevice | None = None  # where the launch itself describes it, and not the file


@dataclass(frozen=True)
class ReportFacts:
    """What a file says of itself and of how it was made."""

    tool_version: str | None = None
    schema_version: str | None = None
    host: str | None = None
    clock_control: str | None = None  # 'base' | 'none'
    cache_control: str | None = None  # 'all' | 'none'
    replay: str | None = None  # 'kernel' | 'application' | 'range' | 'app-range'
    devices: Sequence[ProfiledDevice] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # imported code by file name, once all launches were read
    is_cut: bool = False
    lacks: Sequence[str] = ()  # tables of the case that it may not be able to fill: when empty, they say nothing
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class LaunchReport:
    """A file of Nsight Compute, read. `launches` may be read once: they come from the file as they are taken."""

    facts: ReportFacts
    launches: Iterator[LaunchRecord]
    problems: list[str] = field(default_factory=list)
    """What of the launches could not be read, one sentence each; complete when all have been taken."""
