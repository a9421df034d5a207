"""The report: what all renderers show and what `--format json` writes (docs/json-contract.md)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from diag.rules.baseline_report import Comparison
from diag.rules.ceiling_rows import CeilingRow
from diag.rules.finding import CannotTell, Clear, Finding, is_about_capture
from diag.rules.hang_rows import GroupOfRanksRow, RankOfJobRow
from diag.rules.launch_report import LaunchRow
from diag.rules.live_rows import LiveDeviceRow, LiveProcessRow
from diag.rules.measured_collective_rows import MeasuredCollectiveRow
from diag.rules.measurement_rows import MeasurementRow
from diag.rules.rank_rows import CollectiveRow, RankRow
from diag.rules.roofline_report import KernelRoofline
from diag.rules.serving_rows import ServingRunRow
from diag.rules.timeline_report import DeviceRow, HardwareRow, KernelRow, OperatorRow, RangeRow
from diag.store.case import Source
from diag.store.experiments import Log


@dataclass(frozen=True)
class Verdict:
    """One sentence first: what this run is limited by."""

    title: str
    summary: str
    finding_id: str | None


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
    serving: Sequence[ServingRunRow] = ()  # loads on servers, in the order of their files
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
    experiments: Log = field(default_factory=dict)  # of the case, which may grow after the rules have spoken

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
