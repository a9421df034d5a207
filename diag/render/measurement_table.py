"""The table of what probes measured."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.render import phrases
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.measurement_rows import MeasurementRow
from diag.rules.report import Report

TOO_LARGE = 100
"""Of errors as multiples of what is allowed: by how much more does not matter, and a result of NaN has no error."""


def measurements(report: Report, top: int) -> Table:
    """Each probe under the roofs of its machine, in the order in which they ran."""
    shown = report.measurements[: max(top, phrases.FEW_ROWS)]
    is_compared = any(row.baseline_ns is not None for row in shown)
    header = (
        "of its roof",
        "rate",
        "median",
        *(("of vendor",) if is_compared else ()),
        "error",
        "p5–p95",
        "FLOP/byte",
        "ridge",
        "probe",
    )
    return Table(
        "Probes under the roofs of their machine",
        header,
        [_row(row, is_compared) for row in shown],
        name_column=len(header) - 1,
        notes=list(_notes(report, len(shown), is_compared)),
        wraps_names=True,
    )


def _row(row: MeasurementRow, is_compared: bool) -> list[str]:
    return [
        _roof(row),
        _rate(row),
        units.time(row.median_ns),
        *([_of_vendor(row)] if is_compared else []),
        _error(row),
        f"{units.time(row.p5_ns)}–{units.time(row.p95_ns)}",
        NOT_CAPTURED if row.intensity is None else f"{row.intensity:.3g}",
        NOT_CAPTURED if row.ridge_point is None else f"{row.ridge_point:.3g}",
        " ".join(filter(None, (row.probe, row.variant, row.dtype, row.shape))),
    ]


def _roof(row: MeasurementRow) -> str:
    if row.nearest is None or row.roof_share is None:
        return NOT_CAPTURED
    marks = ("*" if row.roof_origin != "measured" else "") + ("~" if row.is_disturbed else "")
    return f"{row.nearest} {units.share(row.roof_share)}{marks}"


def _rate(row: MeasurementRow) -> str:
    """Of what its nearest roof limits; where none is known, of FLOPs or bytes, whichever it has more of."""
    flops, n_bytes = row.flops_per_s or 0.0, row.bytes_per_s or 0.0
    if flops and (row.roof_unit == "FLOP/s" or (row.roof_unit is None and flops > n_bytes)):
        return units.quantity(flops, "FLOP/s")
    return units.quantity(n_bytes, "bytes/s") if n_bytes else NOT_CAPTURED


def _of_vendor(row: MeasurementRow) -> str:
    return NOT_CAPTURED if row.baseline_ns is None else units.share(row.baseline_ns / row.median_ns)


def _error(row: MeasurementRow) -> str:
    """As a share of what is allowed: a number that means the same for all types and shapes."""
    if row.max_rel_error is None or row.tolerance is None:
        return NOT_CAPTURED
    if row.tolerance == 0:
        return "exact" if row.max_rel_error == 0 else "wrong"
    of_allowed = row.max_rel_error / row.tolerance
    return units.share(of_allowed) if of_allowed < TOO_LARGE else "wrong"


def _notes(report: Report, shown: int, is_compared: bool) -> Iterator[str]:
    rows = report.measurements
    if shown < len(rows):
        yield phrases.more(len(rows), shown)
    origins = {row.roof_origin for row in rows} - {None}
    if "measured" in origins:
        yield "Roofs were measured here (diag calibrate)."
    if origins - {"measured"}:
        yield "* by the datasheet: nobody reached that. Measure this machine with: diag calibrate"
    if not origins and any(row.flops or row.bytes for row in rows):
        yield "No roof is known: measure those of this machine with: diag calibrate"
    if any(row.is_disturbed for row in rows):
        yield "~ other programs had cores of this machine: measure again when nothing else runs."
    vendor = "; of vendor: rate, as a share of that of the vendor's library" if is_compared else ""
    yield f"Error: the largest relative one, as a share of what rounding explains{vendor}."
