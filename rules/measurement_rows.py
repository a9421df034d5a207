"""What probes measured, as a report has it: plain data, for every renderer and the stored case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.launches.probe_results import ProbeResults
from diag.model.benchmark import MachineKind
from diag.model.ceilings import Origin
from diag.model.standing import Standing


@dataclass(frozen=True)
class MeasurementRow:
    """A probe in one variant, type and shape, and where it stands under the roofs of its machine."""

    source: int
    machine: str
    machine_kind: MachineKind
    probe: str
    variant: str
    dtype: str | None
    shape: str
    repeats: int
    median_ns: float
    p5_ns: float
    p95_ns: float
    end_to_end_ns: float | None  # median, from the call until the result is there; None on a CPU, where both are one
    flops: int | None
    bytes: int | None  # the least that must move
    flops_per_s: float | None
    bytes_per_s: float | None
    intensity: float | None  # FLOP per byte
    ridge_point: float | None  # the same unit
    nearest: str | None  # roof: 'DRAM', 'BF16 tensor'; None where none is known
    roof_share: float | None  # of the rate at that roof
    roof_per_s: float | None
    roof_unit: str | None
    roof_origin: Origin | None  # 'measured', else how it is known
    baseline_ns: float | None  # the vendor's library on the same shape
    max_abs_error: float | None
    max_rel_error: float | None
    tolerance: float | None  # relative
    formula: str | None  # of FLOPs and bytes
    conditions: str
    is_disturbed: bool  # other programs had cores of the machine during most repeats


def measurement_rows(results: Sequence[ProbeResults]) -> list[MeasurementRow]:
    return [_row(each, standing) for each in results for standing in each.standings]


def _row(results: ProbeResults, standing: Standing) -> MeasurementRow:
    one, nearest, ceiling, position = standing.measurement, standing.nearest, standing.ceiling, standing.position
    return MeasurementRow(
        source=results.source_id,
        machine=results.machine.name,
        machine_kind=results.machine.kind,
        probe=one.probe,
        variant=one.variant,
        dtype=one.dtype,
        shape=one.shape,
        repeats=one.repeats,
        median_ns=one.median_ns,
        p5_ns=one.p5_ns,
        p95_ns=one.p95_ns,
        end_to_end_ns=one.end_to_end_ns,
        flops=one.flops,
        bytes=one.n_bytes,
        flops_per_s=one.flops_per_s,
        bytes_per_s=one.bytes_per_s,
        intensity=one.intensity,
        ridge_point=position.ridge_point if position else None,
        nearest=nearest.name if nearest else None,
        roof_share=nearest.share if nearest else None,
        roof_per_s=ceiling.per_s if ceiling else None,
        roof_unit=ceiling.unit if ceiling else None,
        roof_origin=ceiling.origin if ceiling else None,
        baseline_ns=one.baseline_ns,
        max_abs_error=one.max_abs_error,
        max_rel_error=one.max_rel_error,
        tolerance=one.tolerance,
        formula=one.work_formula,
        conditions=one.conditions,
        is_disturbed=one.is_disturbed,
    )
