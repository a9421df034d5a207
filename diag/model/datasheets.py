"""Peaks as they are printed: the tables `peaks` of `data/products`, dense and sparse apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from diag.model import units
from diag.model.ceilings import Arithmetic, Ceiling, arithmetic
from diag.model.hardware import Product
from diag.model.tables import tables

Peaks = Mapping[Arithmetic, Ceiling]


@dataclass(frozen=True)
class Datasheet:
    """Peaks that are printed together, in FLOP/s or OP/s, by what they are of.

    The keys of `sparse` are dense arithmetic, too. A clock that is not printed is None.
    """

    source: str
    dense: Mapping[Arithmetic, float]
    sparse: Mapping[Arithmetic, float]
    clock_hz: int | None
    tensor_clock_hz: int | None

    def clock_of(self, of: Arithmetic) -> int | None:
        """Some products run their tensor cores at a lower clock than the rest, FP64 apart."""
        return self.tensor_clock_hz if of.is_tensor and of.input != "fp64" else self.clock_hz


@cache
def datasheets() -> Mapping[str, Datasheet]:
    """By the names to which `Product.peaks` refers."""
    return {name: _datasheet(entry) for name, entry in tables("products", "peaks").items()}


def _datasheet(entry: Mapping[str, Any]) -> Datasheet:
    return Datasheet(
        source=entry["source"],
        dense=_by_arithmetic(entry.get("dense", {})),
        sparse=_by_arithmetic(entry.get("sparse", {})),
        clock_hz=entry.get("clock_hz"),
        tensor_clock_hz=entry.get("tensor_clock_hz"),
    )


def _by_arithmetic(values: Mapping[str, float]) -> Mapping[Arithmetic, float]:
    return {arithmetic(key): value for key, value in values.items()}


def datasheet_peaks(product: Product) -> Peaks:
    """What is printed about a product; empty where nothing is.

    A dense peak that is printed with sparsity only is half of that: two of four weights are left out.

    >>> from diag.model.hardware import product
    >>> known = product("NVIDIA H100 80GB HBM3")
    >>> peak = datasheet_peaks(known)[arithmetic("tensor_fp16")]
    >>> peak.formula, peak.sm_clock_hz
    ('989.4 TFLOP/s', 1830000000)
    """
    if product.peaks is None:
        return {}
    sheet = datasheets()[product.peaks]
    peaks = {of: _printed(product, sheet, of, per_s) for of, per_s in sheet.dense.items()}
    for of, per_s in sheet.sparse.items():
        sparse = _printed(product, sheet, replace(of, is_sparse=True), per_s)
        peaks[replace(of, is_sparse=True)] = sparse
        peaks.setdefault(of, _half(of, sparse))
    return peaks


def _printed(product: Product, sheet: Datasheet, of: Arithmetic, per_s: float) -> Ceiling:
    return Ceiling(
        per_s=per_s,
        unit=of.unit,
        origin="datasheet",
        formula=units.quantity(per_s, of.unit),
        source=sheet.source,
        arithmetic=of,
        sm_clock_hz=sheet.clock_of(of),
        sm_count=product.sm_count,
    )


def _half(of: Arithmetic, sparse: Ceiling) -> Ceiling:
    return replace(sparse, per_s=sparse.per_s / 2, formula=f"{sparse.formula} with sparsity / 2", arithmetic=of)


def times_fp32(product: Product | None) -> Mapping[str, float]:
    """How often the printed peak of FP32 goes into that of TF32 and FP16 on the tensor cores; none that is not printed.

    >>> from diag.model.hardware import product
    >>> times_fp32(product("NVIDIA A100-SXM4-40GB"))
    {'TF32': 8.0, 'FP16': 16.0}
    """
    peaks = datasheet_peaks(product) if product else {}
    fp32 = peaks.get(arithmetic("fp32"))
    faster = {"TF32": arithmetic("tensor_tf32"), "FP16": arithmetic("tensor_fp16")}
    return {} if fp32 is None else {name: peaks[of].per_s / fp32.per_s for name, of in faster.items() if of in peaks}
