"""The report: what all renderers show and what `--format json` writes (docs/json-contract.md)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from diag.model.ceilings import Origin
from diag.model.roofline import Bound
from diag.rules.ceiling_rows import CeilingRow
from diag.rules.finding import CannotTell, Clear, Finding, Severity, ShareOf, is_about_capture
from diag.rules.hang_rows import GroupOfRanksRow, RankOfJobRow
from diag.rules.launch_report import LaunchRow
from diag.rules.live_rows import LiveDeviceRow, LiveProcessRow
from diag.rules.measured_collective_rows import MeasuredCollectiveRow
from diag.rules.measurement_rows import MeasurementRow
from diag.rules.rank_rows import CollectiveRow, RankRow
from diag.rules.roofline_report import KernelRoofline, RooflineRow
from diag.store.case import Source
from diag.timeline.device import FEWEST_OPERATIONS


@dataclass(frozen=True)
class Verdict:
    """One sentence first: what this run is limited by."""

    title: str
    summary: str
    finding_id: str | None


@dataclass(frozen=True)
class CopyRow:
    """All copies of one kind between one pair of memory kinds."""

    kind: str
    src: str
    dst: str
    count: int
    bytes: int
    busy_ns: int  # union


@dataclass(frozen=True)
class DeviceRow:
    """The account of one (process, device). All `_ns` but the window's edges are measures of unions within it."""

    source: int
    process: int
    process_name: str | None
    device: int
    uuid: str | None
    name: str | None
    window: tuple[int, int]
    window_ns: int
    is_scoped: bool  # the window is the part that the user asked for
    lead_ns: int
    tail_ns: int
    startup_ns: int | None  # part of the window before steady state; None where none is in sight
    busy_ns: int
    busy_is_upper_bound: bool  # graph launches recorded as one row hide the gaps inside
    busy_is_lower_bound: bool  # graph launches of which nothing was recorded look like idle time
    idle_ns: int
    kernel_ns: int
    copy_ns: int
    memset_ns: int
    graph_ns: int
    comm_ns: int
    exposed_comm_ns: int
    n_kernels: int
    n_copies: int
    n_memsets: int
    n_graphs: int
    copies: Sequence[CopyRow]

    @property
    def has_shares(self) -> bool:
        """Whether there is enough work for shares of the window to mean anything."""
        return self.n_kernels + self.n_copies + self.n_memsets + self.n_graphs >= FEWEST_OPERATIONS

    def share(self, measure_ns: int) -> float:
        return measure_ns / self.window_ns if self.window_ns else 0.0


@dataclass(frozen=True)
class HardwareRow:
    """A physical device that several processes of one source used: their work together, never added up."""

    source: int
    uuid: str
    name: str | None
    processes: tuple[int, ...]  # pids
    window_ns: int  # first start to last end over all of them
    busy_ns: int  # union over all of them
    idle_ns: int


@dataclass(frozen=True)
class OccupancyRow:
    """Theoretical occupancy of a kernel in the configuration that takes most of its time."""

    theoretical_pct: float
    limits: Mapping[str, int | None]  # blocks per SM by 'blocks', 'registers', 'shared_memory', 'warps', 'barriers'
    limiters: Sequence[str]  # those of them that bound it
    configurations: int  # different blocks with which the kernel was launched


@dataclass(frozen=True)
class KernelRow:
    """All launches of one kernel by one process on one device."""

    source: int
    process: int
    device: int
    name: str
    short_name: str
    count: int
    total_ns: int  # sum of durations
    median_ns: int
    min_ns: int
    max_ns: int
    share_of_kernel_time: float  # of the sum over all kernels of that device
    share_of_window: float  # union of its launches over the window
    occupancy: OccupancyRow | None = None  # None where the device or the launch is not known
    roofline: RooflineRow | None = None  # of its profile, in the configuration that takes most of the time


@dataclass(frozen=True)
class RangeRow:
    """All instances of one range pattern, with the device time of the work launched inside them."""

    source: int
    process: int
    device: int
    name: str
    count: int
    host_ns: int  # sum of durations, recursion counted once
    gpu_ns: int  # union of the operations launched inside
    gpu_sum_ns: int  # their sum


@dataclass(frozen=True)
class OperatorRow:
    """Calls of one PyTorch operator with the same shapes: their work, *modelled* from the shapes, and measured time."""

    source: int
    process: int
    device: int
    name: str
    shapes: str
    dtype: str | None
    kind: str  # 'gemm' | 'convolution' | 'attention' | 'norm' | 'elementwise' | 'reduction'
    count: int
    gpu_ns: int  # union of what these calls launched
    share_of_window: float
    flops: int  # of all calls together
    bytes: int | None  # the least that must move; None where a type is not known
    flops_per_s: float
    bytes_per_s: float | None
    intensity: float | None  # FLOP per byte
    formula: str  # of the FLOPs of one call
    nearest: str | None = None  # roof of the device: 'DRAM', 'BF16 tensor'; None where none is known
    roof_share: float | None = None  # of the time that it would take at that roof, had it all of it
    bound: Bound | None = None
    roof_origin: Origin | None = None  # of `nearest`


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


@dataclass(frozen=True)
class Part:
    """The part of the trace that the user asked for; of several inputs, that of the longest."""

    window: tuple[int, int] | None  # ns from the first event, cut to the trace; None where only ranges were asked for
    range_name: str | None
    measure_ns: int  # of the part
    trace_ns: int  # from the first event to the last


@dataclass(frozen=True)
class ChangedThreshold:
    """A threshold that the user set to something else than what is shipped."""

    rule: str
    name: str
    shipped: float
    value: float


@dataclass(frozen=True)
class Profiled:
    """The launches that speak for a kernel, by their ids, and in how many ways it was launched in how many inputs."""

    launches: Mapping[str, LaunchRow]
    n_configurations: int
    n_sources: int

    @classmethod
    def of(cls, rows: Sequence[LaunchRow]) -> Profiled:
        configurations, sources = {row.configuration for row in rows}, {row.source for row in rows}
        return cls({row.id: row for row in rows}, len(configurations), len(sources))


@dataclass(frozen=True, eq=False)
class Report:
    """Findings are ranked; `overlaps` gives for each finding id those of others on the same device time."""

    sources: Sequence[Source]
    notes: Mapping[int, Sequence[str]]  # by source id: what was lost or guessed while reading
    verdict: Verdict
    devices: Sequence[DeviceRow]
    kernels: Sequence[KernelRow]
    ranges: Sequence[RangeRow]
    findings: Sequence[Finding]
    overlaps: Mapping[str, Sequence[str]]
    clear: Sequence[Clear]
    cannot_tell: Sequence[CannotTell]
    operators: Sequence[OperatorRow] = ()  # longest first
    launches: Sequence[LaunchRow] = ()  # in the order of their files
    rooflines: Sequence[KernelRoofline] = ()  # of profiled kernels, the longest first
    ceilings: Sequence[CeilingRow] = ()  # that came with the evidence
    measurements: Sequence[MeasurementRow] = ()  # of probes, in the order of their files
    measured_collectives: Sequence[MeasuredCollectiveRow] = ()  # that benchmarks timed
    live_devices: Sequence[LiveDeviceRow] = ()  # of workloads that were watched
    live_processes: Sequence[LiveProcessRow] = ()
    timeline_ranks: Sequence[RankRow] = ()  # of a job of which several ranks have timelines here
    collectives: Sequence[CollectiveRow] = ()  # that they carried out together, most time first
    ranks: Sequence[RankOfJobRow] = ()  # of a job whose flight recorders are at hand
    groups: Sequence[GroupOfRanksRow] = ()
    hardware: Sequence[HardwareRow] = ()  # only what several processes share
    baseline: Comparison | None = None  # where the user named one
    part: Part | None = None  # None for the whole trace
    changed_thresholds: Sequence[ChangedThreshold] = ()

    @cached_property
    def short_names(self) -> Mapping[str, str]:
        """Of profiled kernels, by their names."""
        return {row.name: row.short_name for row in reversed(self.launches)}

    @cached_property
    def profiled(self) -> Mapping[str, Profiled]:
        """By the name of a kernel."""
        found: defaultdict[str, list[LaunchRow]] = defaultdict(list)
        for row in self.launches:
            if row.id == row.spoken_for_by:
                found[row.name].append(row)
        return {name: Profiled.of(rows) for name, rows in found.items()}

    @cached_property
    def device_rows(self) -> Mapping[tuple[int, int | None, int | None], DeviceRow]:
        """By source, pid and ordinal."""
        return {(row.source, row.process, row.device): row for row in reversed(self.devices)}

    @cached_property
    def shared_by_processes(self) -> frozenset[int]:
        """Ids of the sources in which several processes used devices."""
        processes = {(row.source, row.process) for row in self.devices}
        counts = Counter(source for source, _ in processes)
        return frozenset(source for source, count in counts.items() if count > 1)

    @property
    def tells_something(self) -> bool:
        """Whether any rule could decide about the run itself, and not only about its capture."""
        rules = [finding.rule for finding in self.findings] + [clear.rule for clear in self.clear]
        return any(not is_about_capture(rule) for rule in rules)
