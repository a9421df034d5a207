"""What the rules say of one trace, and its tables: all that a report takes of it, without any of its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from diag.model.measured import Known
from diag.model.roofline import Ladder
from diag.rules import running, tables
from diag.rules.finding import Answer, CannotTell, Clear, Finding
from diag.rules.operator_rows import operator_rows
from diag.rules.thresholds import Limits
from diag.rules.timeline_report import DeviceRow, HardwareRow, KernelRow, OperatorRow, RangeRow
from diag.timeline.trace import Trace


@dataclass(frozen=True)
class TraceResult:
    findings: Sequence[Finding]
    clear: Sequence[Clear]
    cannot_tell: Sequence[CannotTell]
    devices: Sequence[DeviceRow]
    hardware: Sequence[HardwareRow]
    kernels: Sequence[KernelRow]
    operators: Sequence[OperatorRow]
    ranges: Sequence[RangeRow]

    @property
    def answers(self) -> Iterator[Answer]:
        return chain(self.findings, self.clear, self.cannot_tell)


def trace_result(trace: Trace, limits: Mapping[str, Limits], ladder: Ladder, known: Known) -> TraceResult:
    """Runs the rules about timelines on one."""
    answers = running.about_trace(trace, limits)
    return TraceResult(
        findings=[answer for answer in answers if isinstance(answer, Finding)],
        clear=[answer for answer in answers if isinstance(answer, Clear)],
        cannot_tell=[answer for answer in answers if isinstance(answer, CannotTell)],
        devices=[tables.device_row(trace, device) for device in trace.devices],
        hardware=tables.hardware_rows(trace.devices),
        kernels=[row for device in trace.devices for row in tables.kernel_rows(trace, device)],
        operators=operator_rows([trace], ladder, known),
        ranges=[row for device in trace.devices for row in tables.range_rows(trace, device)],
    )
