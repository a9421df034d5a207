"""The operators of a report: work modelled from shapes, beside the device time that it took."""

from __future__ import annotations

from collections.abc import Sequence

from diag.rules.report import OperatorRow
from diag.timeline.device import DeviceTimeline
from diag.timeline.operators import ModelledCalls, OperatorTime, load_modelled_calls, operator_times
from diag.timeline.trace import Trace

MOST = 200
"""Of each device: a model with many shapes has thousands, of which the last ones take no time."""


def operator_rows(traces: Sequence[Trace]) -> list[OperatorRow]:
    rows = [row for trace in traces if trace.source.captured("shapes") for row in _of_trace(trace)]
    return sorted(rows, key=lambda row: (-row.gpu_ns, row.source, row.process, row.device, row.name, row.shapes))


def _of_trace(trace: Trace) -> list[OperatorRow]:
    calls: ModelledCalls = load_modelled_calls(trace.case, trace.source.id)
    return [_row(device, time) for device in trace.devices for time in operator_times(calls, device)[:MOST]]


def _row(device: DeviceTimeline, time: OperatorTime) -> OperatorRow:
    flops, n_bytes = time.work.flops * time.count, time.work.n_bytes
    total_bytes = None if n_bytes is None else n_bytes * time.count
    return OperatorRow(
        source=device.source_id,
        process=device.pid,
        device=device.device,
        name=time.name,
        shapes=time.shapes,
        dtype=time.work.dtype,
        kind=time.work.kind,
        count=time.count,
        gpu_ns=time.gpu_ns,
        share_of_window=device.share(time.gpu_ns),
        flops=flops,
        bytes=total_bytes,
        flops_per_s=1e9 * flops / time.gpu_ns,
        bytes_per_s=None if total_bytes is None else 1e9 * total_bytes / time.gpu_ns,
        intensity=time.work.intensity,
        formula=time.work.formula,
    )
