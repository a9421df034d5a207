"""The report as JSON: the contract `diag.report/1` of docs/json-contract.md."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import diag
from diag.render.escape import unicode_only
from diag.render.experiment_phrases import entries
from diag.rules.baseline_report import Comparison
from diag.rules.finding import CannotTell, Clear, Finding
from diag.rules.launch_report import LaunchRow
from diag.rules.report import Report
from diag.store.case import Source

SCHEMA = "diag.report/1"


def render_json(report: Report) -> str:
    """The same report gives the same bytes. All of them are ASCII, so that nothing in a name can act on a terminal."""
    return json.dumps(plain(document(report)), indent=2, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "diag_version": diag.__version__,
        "part": asdict(report.part) if report.part else None,
        "changed_thresholds": [asdict(changed) for changed in report.changed_thresholds],
        "sources": [_source(source, report.notes.get(source.id, ())) for source in report.sources],
        "verdict": asdict(report.verdict),
        "devices": [asdict(row) for row in report.devices],
        "kernels": [asdict(row) for row in report.kernels],
        "operators": [asdict(row) | {"is_modelled": True} for row in report.operators],
        "launches": [_launch(row) for row in report.launches],
        "measurements": [asdict(row) for row in report.measurements],
        "measured_collectives": [asdict(row) for row in report.measured_collectives],
        "live_devices": [asdict(row) for row in report.live_devices],
        "live_processes": [asdict(row) for row in report.live_processes],
        "hardware": [asdict(row) for row in report.hardware],
        "ranges": [asdict(row) for row in report.ranges],
        "ranks": [*map(asdict, report.timeline_ranks), *map(asdict, report.ranks)],
        "groups": [asdict(row) for row in report.groups],
        "collectives": [asdict(row) for row in report.collectives],
        "requests": {"runs": [asdict(row) for row in report.serving]} if report.serving else {},
        "ceilings": [asdict(row) for row in report.ceilings],
        "baseline": _baseline(report.baseline) if report.baseline else None,
        "findings": [_finding(finding, report) for finding in report.findings],
        "clear": [clear_document(answer) for answer in report.clear],
        "cannot_tell": [_cannot_tell(answer) for answer in report.cannot_tell],
        **({"experiments": entries(report.experiments)} if report.experiments else {}),
    }


def _source(source: Source, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "id": source.id,
        "kind": source.kind,
        "path": source.path,
        "sha256": source.sha256,
        "tool": source.tool,
        "tool_version": source.tool_version,
        "schema_version": source.schema_version,
        "host": source.host,
        "rank": source.rank,
        "rank_origin": source.rank_origin,
        "world_size": source.world_size,
        "graph_mode": source.graph_mode,
        "time_resolution_ns": source.time_resolution_ns,
        "clock_offset_ns": source.clock_offset_ns,
        "clock_error_ns": source.clock_error_ns,
        "clock_drift": source.clock_drift,
        "joined_to": source.joined_to,
        "is_unread": bool(source.is_unread),
        "events_declared": source.events_declared,
        "events_read": source.events_read,
        "capabilities": dict(sorted(source.capabilities.items())),
        "notes": notes,
    }


def _launch(row: LaunchRow) -> dict[str, Any]:
    stalls = [
        {"class": s.stall_class, "reason": s.reason, "share": s.share, "share_of": s.share_of} for s in row.stalls
    ]
    return asdict(row) | {"stalls": stalls}


def _baseline(comparison: Comparison) -> dict[str, Any]:
    return {
        "path": comparison.path,
        "margin": comparison.margin,
        "gone": [asdict(gone) for gone in comparison.gone],
        "windows": [asdict(change) for change in comparison.windows],
    }


def _finding(finding: Finding, report: Report) -> dict[str, Any]:
    baseline = report.baseline
    before = baseline.before.get(finding.id) if baseline else None
    return finding_document(finding) | {
        "share_of": finding.share_of,
        "recoverable_ns": finding.recoverable_ns,
        "overlaps": report.overlaps.get(finding.id, ()),
        "standing": baseline.standing[finding.id] if baseline else None,
        "share_before": before.share if before else None,
        "title_before": before.title if before else None,
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """What every document says of a finding."""
    return {
        "id": finding.id,
        "rule": finding.rule,
        "severity": finding.severity,
        "title": finding.title,
        "claim": finding.claim,
        "confidence": finding.confidence,
        "counterfactual": finding.counterfactual,
        "subject": finding.subject.present(),
        "share": finding.share,
        "evidence": [asdict(evidence) for evidence in finding.evidence],
        "refute": finding.refute,
        "next": finding.next,
    }


def clear_document(answer: Clear) -> dict[str, Any]:
    return {"rule": answer.rule, "subject": answer.subject.present()}


def _cannot_tell(answer: CannotTell) -> dict[str, Any]:
    return {
        "rule": answer.rule,
        "subject": answer.subject.present(),
        "because": answer.because,
        "beyond_format": answer.beyond_format,
    }


def plain(value: object) -> object:
    """The value as JSON can hold it: NumPy's numbers as Python's, what is not a finite number as null."""
    match value:
        case None | bool():
            return value
        case str():
            return unicode_only(value)
        case numbers.Integral():
            return int(value)
        case numbers.Real():
            return float(value) if math.isfinite(value) else None
        case Mapping():
            return {unicode_only(str(key)): plain(item) for key, item in value.items()}
        case Sequence():
            return [plain(item) for item in value]
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a report")
