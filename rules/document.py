"""A report as another run left it: what of the contract `diag.report/1` comparisons need, read from JSON.

A report of this run has the same attributes, so that either can stand on either side of a comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from diag.errors import InputError
from diag.rules.finding import Severity, ShareOf, severity_of
from diag.rules.report import Report
from diag.store.case import NO_TIMELINE

MOST_BYTES = 256 << 20
"""Of a JSON report; the largest of real traces has 5 MB."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Also of nanoseconds: so bounded, a report that someone edited makes no number that floating point cannot hold."""

Instant = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

Size = tuple[int, int, int]


class SubjectOf(msgspec.Struct):
    source: int | None = None
    process: int | None = None
    device: int | None = None
    kernel: str | None = None
    range: str | None = None
    load: str | None = None
    window: tuple[Instant, Instant] | None = None


class FindingOf(msgspec.Struct):
    rule: str
    title: str
    severity: Severity
    subject: SubjectOf
    share: float | None
    share_of: ShareOf = "window"
    recoverable_ns: Count | None = None
    level: Severity | None = None  # this and the next are not in JSON
    whole_ns: Count | None = None

    @property
    def is_fact(self) -> bool:
        """Whether it is information by its rule; of another run, as far as its share shows it."""
        return self.level == "info" or (self.severity == "info" and severity_of(self.share or 0.0) != "info")


class AnswerOf(msgspec.Struct):
    """What was clear, or could not be told."""

    rule: str
    subject: SubjectOf


class SourceOf(msgspec.Struct):
    id: int
    rank: int | None = None
    kind: str = "unknown"
    path: str = ""
    sha256: str = ""
    tool: str | None = None
    tool_version: str | None = None
    host: str | None = None
    graph_mode: str | None = None
    time_resolution_ns: Count = 1
    joined_to: int | None = None
    capabilities: Mapping[str, Any] = {}

    @property
    def has_timeline(self) -> bool:
        """Whether it is a timeline of its own: not part of another source, a profile, a benchmark, a watch or a log."""
        return self.joined_to is None and all(self.capabilities.get(fact) is None for fact in NO_TIMELINE)


class DeviceOf(msgspec.Struct):
    source: int
    process: int
    device: int
    window_ns: Count
    is_scoped: bool
    uuid: str | None = None
    name: str | None = None
    startup_ns: Count | None = None
    busy_ns: Count = 0
    idle_ns: Count = 0
    kernel_ns: Count = 0
    copy_ns: Count = 0
    memset_ns: Count = 0
    comm_ns: Count = 0
    exposed_comm_ns: Count = 0


class LiveDeviceOf(msgspec.Struct):
    """A device as it was watched."""

    source: int
    device: int
    uuid: str
    name: str


class KernelOf(msgspec.Struct):
    source: int
    process: int
    device: int
    name: str
    short_name: str
    count: Count
    total_ns: Count
    median_ns: Count


class RangeOf(msgspec.Struct):
    source: int
    process: int
    device: int
    name: str
    count: Count
    host_ns: Count
    gpu_sum_ns: Count


class ClocksOf(msgspec.Struct):
    is_locked: bool | None = None


class SpeedOfLightOf(msgspec.Struct):
    sm_pct: float | None = None
    memory_pct: float | None = None
    dram_pct: float | None = None


class LaunchOf(msgspec.Struct):
    """A launch that Nsight Compute measured."""

    source: int
    kind: str
    device: int | None
    name: str
    short_name: str
    duration_ns: float | None
    configuration: str
    sol: SpeedOfLightOf
    clocks: ClocksOf
    device_name: str | None = None
    grid: Size | None = None
    block: Size | None = None
    cache_control: str | None = None
    replay: str | None = None


class LatencyOf(msgspec.Struct):
    name: str
    count: Count | None = None
    p50_ns: float | None = None
    p99_ns: float | None = None


class ServingRunOf(msgspec.Struct):
    """A load on a server."""

    source: int
    name: str
    model: str | None = None
    arrival: str | None = None
    rate_per_s: float | None = None
    burstiness: float | None = None
    concurrency: Count | None = None
    prompt_lengths: str | None = None
    output_lengths: str | None = None
    shared_prefix_share: float | None = None
    mean_prompt_tokens: float | None = None
    mean_output_tokens: float | None = None
    requests_per_s: float | None = None
    input_tokens_per_s: float | None = None
    output_tokens_per_s: float | None = None
    goodput_per_s: float | None = None
    latencies: list[LatencyOf] = []
    settings: Mapping[str, str] = {}


class RequestsOf(msgspec.Struct):
    runs: list[ServingRunOf] = []


class PartOf(msgspec.Struct):
    window: tuple[Instant, Instant] | None
    range_name: str | None


class Document(msgspec.Struct):
    """Of the contract what a comparison needs, named as in `Report`; other keys are passed over."""

    findings: list[FindingOf]
    sources: list[SourceOf] = []
    devices: list[DeviceOf] = []
    live_devices: list[LiveDeviceOf] = []
    kernels: list[KernelOf] = []
    ranges: list[RangeOf] = []
    launches: list[LaunchOf] = []
    clear: list[AnswerOf] = []
    cannot_tell: list[AnswerOf] = []
    part: PartOf | None = None
    serving: list[ServingRunOf] = []


class _Written(Document, kw_only=True):
    schema: Literal["diag.report/1"]
    requests: RequestsOf = msgspec.field(default_factory=RequestsOf)

    def __post_init__(self) -> None:
        """JSON has the loads under another name than a report."""
        self.serving = self.requests.runs


def read(path: Path) -> Document:
    """As `of_json`, of a file. Raises InputError also when it is larger than any report."""
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is larger than a report can be ({MOST_BYTES >> 20} MiB). Name another one.")
    return of_json(path.read_bytes(), str(path))


def of_json(data: bytes, name: str) -> Document:
    """A report that was written with `--format json`. Raises InputError when it is no such report."""
    try:
        return msgspec.json.decode(data, type=_Written)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(
            f"{name} is no report of diag ({said}). Write one with: diag report INPUT --format json"
        ) from error


def of_report(report: Report) -> Document:
    """A report of this run in the form that one of another run has."""
    return msgspec.convert(report, Document, from_attributes=True)


def devices_by_key(devices: Sequence[DeviceOf]) -> Mapping[tuple[int, int, int], DeviceOf]:
    """By source, process and ordinal."""
    return {(row.source, row.process, row.device): row for row in devices}
