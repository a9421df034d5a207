"""What holds of every report, whatever the input was: it may have little to say, but nothing that cannot be."""

from __future__ import annotations

import json
import math
import re
from collections import Counter

import numpy as np

from diag.model.units import EVIDENCE
from diag.render import RENDERERS
from diag.rules.finding import CONFIDENCES, SEVERITIES, Evidence, Finding
from diag.rules.report import Report
from diag.rules.timeline_report import DeviceRow, HardwareRow, KernelRow, RangeRow
from diag.store.case import Case
from tests import published

ROUNDING = 1e-9

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_NOT_A_NUMBER = re.compile(r"\b(nan|inf)\b")


def check(report: Report, case: Case) -> None:
    """Raises AssertionError when the report of the case says what no report may say."""
    for device in report.devices:
        _check_device(device)
    for hardware in report.hardware:
        _check_hardware(hardware)
    windows: dict[tuple[int, int, int], int] = {}
    for device in report.devices:  # two processes may have the same number, on two machines
        key = (device.source, device.process, device.device)
        windows[key] = max(windows.get(key, 0), device.window_ns)
    for kernel in report.kernels:
        _check_kernel(kernel, windows[kernel.source, kernel.process, kernel.device])
    for row in report.ranges:
        _check_range(row, windows[row.source, row.process, row.device])
    for finding in report.findings:
        _check_finding(finding, case)
    assert [finding.rank for finding in report.findings] == sorted(finding.rank for finding in report.findings)
    ids = Counter(finding.id for finding in report.findings)
    assert ids.total() == len(ids), ids.most_common(1)
    assert report.verdict.title
    assert report.verdict.finding_id in (None, *(finding.id for finding in report.findings))
    assert all(answer.because and answer.rule for answer in report.cannot_tell)
    check_renderings(report)


def _check_device(device: DeviceRow) -> None:
    assert device.busy_ns + device.idle_ns == device.window_ns, device
    assert 0 <= device.busy_ns <= device.window_ns <= device.window[1] - device.window[0], device
    parts = (device.kernel_ns, device.copy_ns, device.memset_ns, device.graph_ns)
    assert all(0 <= part <= device.busy_ns for part in parts), device
    assert device.busy_ns <= sum(parts), device
    assert 0 <= device.exposed_comm_ns <= device.comm_ns <= device.kernel_ns, device
    assert min(device.lead_ns, device.tail_ns) >= 0, device
    assert sum(copy.count for copy in device.copies) == device.n_copies, device
    assert all(0 <= copy.busy_ns <= device.copy_ns and copy.bytes >= 0 for copy in device.copies), device


def _check_hardware(hardware: HardwareRow) -> None:
    assert hardware.busy_ns + hardware.idle_ns == hardware.window_ns, hardware
    assert min(hardware.busy_ns, hardware.idle_ns) >= 0, hardware


def _check_kernel(kernel: KernelRow, window_ns: int) -> None:
    assert 0 <= kernel.min_ns <= kernel.median_ns <= kernel.max_ns <= window_ns, kernel
    assert kernel.max_ns <= kernel.total_ns <= kernel.count * kernel.max_ns, kernel
    assert _is_share(kernel.share_of_kernel_time), kernel
    assert _is_share(kernel.share_of_window), kernel


def _check_range(row: RangeRow, window_ns: int) -> None:
    assert 0 <= row.gpu_ns <= min(window_ns, row.gpu_sum_ns), row
    assert row.host_ns >= 0, row
    assert row.count >= 0, row


def _check_finding(finding: Finding, case: Case) -> None:
    for text in (finding.title, finding.claim, finding.counterfactual, finding.refute, *finding.next):
        assert text, finding
        assert not _NOT_A_NUMBER.search(text), text
    assert finding.severity in SEVERITIES
    assert finding.confidence in CONFIDENCES
    assert finding.share is None or _is_share(finding.share), finding
    if finding.subject.window is not None:
        start_ns, end_ns = finding.subject.window
        assert finding.extent == finding.extent.clip(start_ns, end_ns), finding
        assert (finding.recoverable_ns or 0) <= end_ns - start_ns, finding
    assert (finding.recoverable_ns or 0) >= 0, finding
    if finding.extent:  # a report that was kept has none
        assert (finding.recoverable_ns or 0) <= finding.extent.measure_ns, finding
    assert finding.evidence, finding
    for evidence in finding.evidence:
        _check_evidence(evidence, case)


def _check_evidence(evidence: Evidence, case: Case) -> None:
    assert evidence.unit in EVIDENCE, evidence
    assert evidence.label, evidence
    assert evidence.formula, evidence
    if evidence.unit == "text":
        assert isinstance(evidence.value, str), evidence
        return
    assert isinstance(evidence.value, int | float | np.number), evidence
    assert math.isfinite(evidence.value), evidence
    assert evidence.value >= 0, evidence
    if evidence.sql is not None:
        case.db.execute(evidence.sql).fetchmany(1)


def check_renderings(report: Report, _: Case | None = None) -> None:
    """The part that holds also of a report that was kept in a case and edited there."""
    shown = {output_format: render(report, width=80, color=False, top=3) for output_format, render in RENDERERS.items()}
    assert shown["json"].isascii()
    document = json.loads(shown["json"], parse_constant=_refuse)
    assert document["schema"] == "diag.report/1"
    published.check(document)
    for output_format in ("text", "markdown"):
        assert not (found := _CONTROL.search(shown[output_format])), (output_format, found)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _is_share(value: float) -> bool:
    return 0 <= value <= 1 + ROUNDING
