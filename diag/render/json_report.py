"""The report as JSON: the contract `diag.report/1` of docs/json-contract.md."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import diag
from diag.render import phrases
from diag.render.escape import unicode_only
from diag.rules.finding import CannotTell, Clear, Finding
from diag.rules.report import KernelRow, Report
from diag.store.case import Source
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline

SCHEMA = "diag.report/1"


def render_json(report: Report) -> str:
    """The same report gives the same bytes. All of them are ASCII, so that nothing in a name can act on a terminal."""
    return json.dumps(_plain(document(report)), indent=2, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "diag_version": diag.__version__,
        "sources": [_source(source, report.notes.get(source.id, ())) for source in report.sources],
        "verdict": asdict(report.verdict),
        "devices": [_device(device) for device in report.devices],
        "kernels": [_kernel(row) for row in report.kernels],
        "launches": [],
        "ranges": [asdict(row) for row in report.ranges],
        "ranks": [],
        "groups": [],
        "requests": {},
        "ceilings": [],
        "findings": [_finding(finding, report.overlaps.get(finding.id, ())) for finding in report.findings],
        "clear": [_clear(answer) for answer in report.clear],
        "cannot_tell": [_cannot_tell(answer) for answer in report.cannot_tell],
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
        "time_resolution_ns": source.time_resolution_ns,
        "capabilities": dict(sorted(source.capabilities.items())),
        "notes": notes,
    }


def _device(device: DeviceTimeline) -> dict[str, Any]:
    return {
        "source": device.source_id,
        "process": device.pid,
        "process_name": device.process_name,
        "device": device.device,
        "uuid": device.uuid,
        "name": device.hardware,
        "window": (device.start_ns, device.end_ns),
        "window_ns": device.window_ns,
        "lead_ns": device.lead_ns,
        "tail_ns": device.tail_ns,
        "busy_ns": device.busy.measure_ns,
        "busy_is_upper_bound": phrases.busy_is_upper_bound(device),
        "idle_ns": device.idle.measure_ns,
        "idle_used_by_others_ns": phrases.used_by_others_ns(device),
        "kernel_ns": device.kernel_time.measure_ns,
        "copy_ns": device.copy_time.measure_ns,
        "memset_ns": device.memset_time.measure_ns,
        "graph_ns": device.graph_time.measure_ns,
        "comm_ns": device.communication_time.measure_ns,
        "exposed_comm_ns": device.exposed_communication.measure_ns,
        "n_kernels": device.count(gpu_work.KERNEL),
        "n_copies": device.count(gpu_work.COPY),
        "n_memsets": device.count(gpu_work.MEMSET),
        "n_graphs": device.count(gpu_work.GRAPH),
        "copies": [
            {
                "kind": copies.kind,
                "src": copies.src,
                "dst": copies.dst,
                "count": copies.count,
                "bytes": copies.bytes,
                "busy_ns": copies.busy_ns,
            }
            for copies in device.copies
        ],
    }


def _kernel(row: KernelRow) -> dict[str, Any]:
    return asdict(row) | {"occupancy": None, "roofline": None}


def _finding(finding: Finding, overlaps: Sequence[str]) -> dict[str, Any]:
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
        "recoverable_ns": finding.recoverable_ns,
        "overlaps": overlaps,
        "evidence": [asdict(evidence) for evidence in finding.evidence],
        "refute": finding.refute,
        "next": finding.next,
    }


def _clear(answer: Clear) -> dict[str, Any]:
    return {"rule": answer.rule, "subject": answer.subject.present()}


def _cannot_tell(answer: CannotTell) -> dict[str, Any]:
    return {"rule": answer.rule, "subject": answer.subject.present(), "because": answer.because}


def _plain(value: object) -> object:
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
            return {unicode_only(str(key)): _plain(item) for key, item in value.items()}
        case Sequence():
            return [_plain(item) for item in value]
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a report")
