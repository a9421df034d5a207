"""The document `diag.report/1`, as `diag.render.json_report` writes it."""

from __future__ import annotations

from typing import Literal

from diag.render.contract.hang_object import HANG
from diag.render.contract.record import by_name, either, fields_of, many, maybe_there, record
from diag.rules.baseline_report import Gone, Standing, WindowChange
from diag.rules.ceiling_rows import CeilingRow
from diag.rules.finding import CannotTell, Clear, Evidence, Finding, Severity, ShareOf, Subject
from diag.rules.hang_rows import GroupOfRanksRow, RankOfJobRow
from diag.rules.launch_report import LaunchRow, SpeedOfLight
from diag.rules.live_rows import LiveDeviceRow, LiveProcessRow
from diag.rules.measured_collective_rows import MeasuredCollectiveRow
from diag.rules.measurement_rows import MeasurementRow
from diag.rules.rank_rows import CollectiveRow, RankRow
from diag.rules.report import ChangedThreshold, Part, Verdict
from diag.rules.serving_rows import ServingRunRow
from diag.rules.timeline_report import DeviceRow, HardwareRow, KernelRow, OperatorRow, RangeRow
from diag.store.case import Source
from diag.store.experiments import Experiment

SOURCE = record(
    "Source",
    fields_of(
        Source,
        *("id", "kind", "path", "sha256", "tool", "tool_version", "schema_version", "host", "rank", "rank_origin"),
        *("world_size", "graph_mode", "time_resolution_ns", "clock_offset_ns", "clock_error_ns", "clock_drift"),
        *("joined_to", "events_declared", "events_read", "capabilities"),
    ),
    is_unread=bool,
    notes=many(str),
)

SOURCE_LABEL = record("SourceLabel", fields_of(Source, "kind", "path", "sha256", "tool", "tool_version", "rank"))

SPEED_OF_LIGHT = record("SpeedOfLight", fields_of(SpeedOfLight))

SUBJECT = record(
    "Subject",
    {"source": int},
    {name: maybe_there(kind) for name, kind in fields_of(Subject, without=("source",)).items()},
)

FINDING_OF_ANY = {
    "id": str,
    "severity": Severity,
    "subject": SUBJECT,
    "evidence": many(Evidence),
    **fields_of(Finding, "rule", "title", "claim", "confidence", "counterfactual", "share", "refute", "next"),
}
"""What every document says of a finding."""

FINDING = record(
    "Finding",
    FINDING_OF_ANY,
    fields_of(Finding, "recoverable_ns"),
    share_of=ShareOf,
    overlaps=many(str),
    standing=Standing | None,
    share_before=float | None,
    title_before=str | None,
)

CLEAR = record("Clear", fields_of(Clear, "rule"), subject=SUBJECT)
CANNOT_TELL = record("CannotTell", fields_of(CannotTell, "rule", "because", "beyond_format"), subject=SUBJECT)

STALL = record("Stall", {"class_": str, "reason": str, "share": float, "share_of": Literal["latency", "samples"]})

BASELINE = record("Baseline", path=str, margin=float, gone=many(Gone), windows=many(WindowChange))

LAUNCH = record("Launch", fields_of(LaunchRow), sol=SPEED_OF_LIGHT, stalls=many(STALL))
OPERATOR = record("Operator", fields_of(OperatorRow), is_modelled=Literal[True])

EXPERIMENT = record("Experiment", fields_of(Experiment), number=int, miss=float | None)

RANKS = (record("RankOfTraces", fields_of(RankRow)), record("RankOfRecorders", fields_of(RankOfJobRow)))

REPORT = record(
    "Report",
    {
        "schema": Literal["diag.report/1"],
        "diag_version": str,
        "part": Part | None,
        "changed_thresholds": many(ChangedThreshold),
        "sources": many(SOURCE),
        "verdict": Verdict,
        "devices": many(DeviceRow),
        "kernels": many(KernelRow),
        "operators": many(OPERATOR),
        "launches": many(LAUNCH),
        "measurements": many(MeasurementRow),
        "measured_collectives": many(MeasuredCollectiveRow),
        "live_devices": many(LiveDeviceRow),
        "live_processes": many(LiveProcessRow),
        "hardware": many(HardwareRow),
        "ranges": many(RangeRow),
        "ranks": many(either(*RANKS)),
        "groups": many(GroupOfRanksRow),
        "collectives": many(CollectiveRow),
        "requests": record("Requests", runs=maybe_there(many(ServingRunRow))),
        "ceilings": many(CeilingRow),
        "baseline": BASELINE | None,
        "findings": many(FINDING),
        "clear": many(CLEAR),
        "cannot_tell": many(CANNOT_TELL),
        "hang": maybe_there(HANG),
        "experiments": maybe_there(many(EXPERIMENT)),
    },
)

PROBE_REPORT = record("ProbeReport", schema=Literal["diag.probe/1"], report=REPORT, traces=by_name(REPORT))
