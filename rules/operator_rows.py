"""The operators of a report: work modelled from shapes, beside the device time that it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diag.model.ceilings import Arithmetic, Ceiling, Origin
from diag.model.datasheets import datasheet_peaks
from diag.model.hardware import Gpu
from diag.model.measured import Known, best_rate
from diag.model.quantities import Measured
from diag.model.roofline import Ladder, Limit, Rate, Roofline
from diag.model.throughput import dram_peak
from diag.rules.timeline_report import OperatorRow
from diag.timeline.device import DeviceTimeline
from diag.timeline.operators import ModelledCalls, OperatorTime, load_modelled_calls, operator_times
from diag.timeline.trace import Trace

MOST = 200
"""Of each device: a model with many shapes has thousands, of which the last ones take no time."""


def operator_rows(traces: Sequence[Trace], ladder: Ladder, known: Known) -> list[OperatorRow]:
    rows = [row for trace in traces if trace.source.captured("shapes") for row in _of_trace(trace, ladder, known)]
    return sorted(rows, key=longest_first)


def longest_first(row: OperatorRow) -> tuple[int, int, int, int, str, str]:
    return (-row.gpu_ns, row.source, row.process, row.device, row.name, row.shapes)


def _of_trace(trace: Trace, ladder: Ladder, known: Known) -> list[OperatorRow]:
    calls: ModelledCalls = load_modelled_calls(trace.case, trace.source.id)
    return [
        _row(device, time, modelled_roofline(time, roofs), ladder)
        for device, roofs in [(device, _roofs(trace.gpu_of(device), known)) for device in trace.devices]
        for time in operator_times(calls, device)[:MOST]
    ]


@dataclass(frozen=True)
class _Roofs:
    bandwidth: Ceiling | None  # of device memory
    peaks: Mapping[Arithmetic, Ceiling]


def _roofs(gpu: Gpu, known: Known) -> _Roofs:
    """Of a device: measured, else as printed. Clocks are not in a trace: both are for the device as it runs freely."""
    measured, printed = known.of(gpu), datasheet_peaks(gpu.product) if gpu.product else {}
    every = {of for kinds in _ARITHMETIC.values() for of in kinds}
    best = {of: found.ceiling for of in every if (found := best_rate(measured, arithmetic=of)) is not None}
    dram = best_rate(measured, level="dram")
    return _Roofs(dram.ceiling if dram else dram_peak(gpu), {**printed, **best})


def modelled_roofline(time: OperatorTime, roofs: _Roofs) -> Roofline:
    """Where an operator stands under the roofs of its device.

    Of several peaks that its type may have (FP32 or TF32), the lowest that it does not exceed counts.
    """
    seconds, bandwidth, peaks = time.gpu_ns / 1e9, roofs.bandwidth, roofs.peaks
    possible = [peaks[of] for of in _ARITHMETIC.get(time.work.dtype or "", ()) if of in peaks]
    flops, n_bytes = time.work.flops * time.count, (time.work.n_bytes or 0) * time.count
    peak = next((each for each in possible if flops <= each.per_s * seconds), possible[-1] if possible else None)
    is_product = time.work.kind in ("gemm", "convolution", "attention")
    return Roofline(
        traffic=[Rate(_modelled(n_bytes / seconds, "bytes/s"), bandwidth)] if n_bytes and bandwidth else [],
        work=[Rate(_modelled(flops / seconds, "FLOP/s"), peak)] if flops and peak and is_product else [],
    )


def _modelled(per_s: float, unit: str) -> Measured:
    return Measured(per_s, unit, "modelled from shapes / measured time", ())


_ARITHMETIC: Mapping[str, Sequence[Arithmetic]] = {
    "fp64": (Arithmetic("fp64", "fp64"), Arithmetic("fp64", "fp64", is_tensor=True)),
    "fp32": (Arithmetic("fp32", "fp32"), Arithmetic("tf32", "fp32", is_tensor=True)),
    "fp16": (Arithmetic("fp16", "fp32", is_tensor=True), Arithmetic("fp16", "fp16", is_tensor=True)),
    "bf16": (Arithmetic("bf16", "fp32", is_tensor=True),),
    "fp8": (Arithmetic("fp8", "fp32", is_tensor=True),),
    "int8": (Arithmetic("int8", "int32", is_tensor=True),),
}
"""What may work on products of a type, the slower first. Other operators are held against bandwidth alone."""


def _origin(roofline: Roofline, nearest: Limit | None) -> Origin | None:
    """How the ceiling of a limit is known."""
    return next((rate.ceiling.origin for rate in roofline.rates if nearest and rate.name == nearest.name), None)


def _row(device: DeviceTimeline, time: OperatorTime, roofline: Roofline, ladder: Ladder) -> OperatorRow:
    nearest = roofline.tightest if roofline.limits and not roofline.above(ladder.slack) else None
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
        nearest=nearest.name if nearest else None,
        roof_share=nearest.share if nearest else None,
        bound=roofline.bound(ladder),
        roof_origin=_origin(roofline, nearest),
    )
