"""What probes measured, as points under the roofs of their machine: the same picture as for profiled kernels."""

from __future__ import annotations

from collections.abc import Sequence

from diag.model.roofline import Side
from diag.render.ceiling_table import best
from diag.rules.ceiling_rows import CeilingRow
from diag.rules.measurement_rows import MeasurementRow
from diag.rules.report import Report
from diag.rules.roofline_report import KernelRoofline, RooflineCeiling, RooflineLimit, RooflinePoint, RooflineRow

NEAR = 0.01
"""By which two figures of the same ceiling may differ: one of them was worked out."""
LEVEL, WORK = "DRAM", "peak"
"""What roofs are called that no ceiling of the report has the figure of."""


def probe_rooflines(report: Report) -> list[KernelRoofline]:
    """Of the measurements that have work, bytes and roofs for both, in their order. `launch` is empty: ncu saw none."""
    return [row for each in report.measurements if (row := _of(each, best(report.ceilings))) is not None]


def _of(row: MeasurementRow, ceilings: Sequence[CeilingRow]) -> KernelRoofline | None:
    known = (row.intensity, row.ridge_point, row.flops_per_s, row.roof_per_s, row.roof_share)
    if None in known or not row.intensity or not row.ridge_point or not row.flops_per_s or not row.roof_per_s:
        return None
    is_memory = row.roof_unit == "bytes/s"
    bytes_per_s = row.roof_per_s if is_memory else row.roof_per_s / row.ridge_point
    flops_per_s = row.roof_per_s * row.ridge_point if is_memory else row.roof_per_s
    origin = row.roof_origin or "derived"
    own = [ceiling for ceiling in ceilings if ceiling.machine == row.machine]
    slope = _ceiling(own, bytes_per_s, "bytes/s", (row.nearest if is_memory else None) or LEVEL, origin)
    flat = _ceiling(own, flops_per_s, "FLOP/s", (None if is_memory else row.nearest) or WORK, origin)
    attainable = min(flat.per_s, row.intensity * slope.per_s)
    point = RooflinePoint(slope.name, flat.name, row.intensity, row.flops_per_s, attainable, row.ridge_point)
    share = row.flops_per_s / attainable
    limits = [
        RooflineLimit(slope.name, "memory", row.flops_per_s / row.intensity / slope.per_s),
        RooflineLimit(flat.name, "compute", row.flops_per_s / flat.per_s),
    ]
    return KernelRoofline(
        source=row.source,
        launch="",
        short_name=" ".join(filter(None, (row.probe, row.variant, row.dtype))),
        configuration=row.shape,
        count=row.repeats,
        share=None,
        device_name=row.machine,
        sm_clock_hz=None,
        memory_clock_hz=None,
        roofline=RooflineRow(
            level=slope.name,
            precision=flat.name,
            intensity=row.intensity,
            work_unit="FLOP",
            work_per_s=row.flops_per_s,
            attainable_work_per_s=attainable,
            ridge_point=row.ridge_point,
            bound=None,
            headroom=max(0.0, 1 - share),
            nearest=row.nearest or slope.name,
            limits=limits,
            points=[point],
            ceilings=[slope, flat],
            uncounted=[],
        ),
    )


def _ceiling(own: Sequence[CeilingRow], per_s: float, unit: str, name: str, origin: str) -> RooflineCeiling:
    """That of the report with this figure, or one by what is known of it."""
    found = next((row for row in own if row.unit == unit and abs(row.per_s - per_s) <= NEAR * per_s), None)
    side: Side = "memory" if unit == "bytes/s" else "compute"
    if found is None:
        return RooflineCeiling(name, side, per_s, unit, origin, "of the nearest roof and the ridge point", None, None)
    clocks = (found.sm_clock_hz, found.memory_clock_hz)
    return RooflineCeiling(found.name, found.side, per_s, unit, found.origin, found.formula, *clocks)
