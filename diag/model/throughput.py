"""Peaks as they follow from what one SM does per clock, at any clock: `data/throughput.toml`.

Nsight Compute holds a device at its base clock, where no printed peak holds. A fused multiply-add is two operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from diag.model import units
from diag.model.ceilings import Arithmetic, Ceiling, arithmetic
from diag.model.datasheets import Peaks
from diag.model.hardware import ComputeCapability, Gpu, TensorRate, parsed_capability, todays
from diag.model.tables import table


@dataclass(frozen=True)
class SmThroughput:
    """What one SM does per clock. None: not published."""

    multiply_adds: Mapping[Arithmetic, int]  # dense
    has_sparsity: bool = False
    shared_bytes: int | None = None
    l1_bytes: int | None = None


@cache
def _throughputs() -> Mapping[ComputeCapability, SmThroughput]:
    entries = {key: entry for key, entry in table("throughput.toml").items() if key != "sources"}
    return {parsed_capability(key): _throughput(entry) for key, entry in entries.items()}


_OTHERS = ("has_sparsity", "shared_bytes", "l1_bytes")


def _throughput(entry: Mapping[str, Any]) -> SmThroughput:
    multiply_adds = {arithmetic(key): value for key, value in entry.items() if key not in _OTHERS}
    return SmThroughput(multiply_adds, **{key: entry[key] for key in _OTHERS if key in entry})


def sm_throughput(capability: ComputeCapability) -> SmThroughput | None:
    """
    >>> sm_throughput((8, 0)).multiply_adds[arithmetic("tensor_fp16")], sm_throughput((1, 0))
    (1024, None)
    """
    return _throughputs().get(todays(capability))


def derived_peaks(gpu: Gpu, sm_clock_hz: float) -> Peaks:
    """Peaks of a device at a clock of its SMs; empty where its capability or its number of SMs is not known.

    Of a product that is not listed and no GeForce, whose tensor cores may have half of the rate, they are upper bounds.
    """
    throughput = sm_throughput(gpu.compute_capability) if gpu.compute_capability else None
    if throughput is None or not gpu.sm_count:
        return {}
    peaks = {}
    for of, multiply_adds in throughput.multiply_adds.items():
        if of.is_tensor and not gpu.has_tensor_cores:
            continue
        operations = multiply_adds if _is_halved(of, _tensor_rate(gpu)) else 2 * multiply_adds
        peaks[of] = _peak(of, operations, gpu.sm_count, sm_clock_hz)
        if throughput.has_sparsity and of.is_tensor and of.input != "fp64":
            sparse = replace(of, is_sparse=True)
            peaks[sparse] = _peak(sparse, 2 * operations, gpu.sm_count, sm_clock_hz)
    return peaks


def _tensor_rate(gpu: Gpu) -> TensorRate:
    if gpu.product is not None:
        return gpu.product.tensor_rate
    return "geforce" if "GeForce" in (gpu.name or "") else "full"


def _is_halved(of: Arithmetic, rate: TensorRate) -> bool:
    """GeForce cards sum in FP32 at half of the rate, FP4 apart, which has but one."""
    if rate == "geforce":
        return of.is_tensor and of.accumulator == "fp32" and of.input != "fp4"
    return rate == "half" and of.is_tensor


def _peak(of: Arithmetic, per_clock: int, sm_count: int, sm_clock_hz: float) -> Ceiling:
    return Ceiling(
        per_s=per_clock * sm_count * sm_clock_hz,
        unit=of.unit,
        origin="derived",
        formula=_spelt(per_clock, "operations", sm_count, sm_clock_hz),
        source=_SOURCE,
        arithmetic=of,
        sm_clock_hz=sm_clock_hz,
        sm_count=sm_count,
    )


def on_chip_peak(gpu: Gpu, level: Literal["l1", "shared"], sm_clock_hz: float) -> Ceiling | None:
    """What the L1 caches or the shared memories of all SMs deliver together; None where it is not published."""
    throughput = sm_throughput(gpu.compute_capability) if gpu.compute_capability else None
    if throughput is None or not gpu.sm_count:
        return None
    per_clock = throughput.l1_bytes if level == "l1" else throughput.shared_bytes
    if per_clock is None:
        return None
    return Ceiling(
        per_s=per_clock * gpu.sm_count * sm_clock_hz,
        unit="bytes/s",
        origin="derived",
        formula=_spelt(per_clock, "bytes", gpu.sm_count, sm_clock_hz),
        source=_SOURCE,
        level=level,
        sm_clock_hz=sm_clock_hz,
        sm_count=gpu.sm_count,
    )


def _spelt(per_clock: int, what: str, sm_count: int, sm_clock_hz: float) -> str:
    return f"{per_clock:,} {what} per clock and SM x {sm_count} SMs x {units.quantity(sm_clock_hz, 'Hz')}"


_SOURCE = "diag/model/data/throughput.toml (docs/hardware.md)"


def dram_peak(gpu: Gpu) -> Ceiling | None:
    """What device memory delivers in theory: as the report tells it, which knows clock and width, else as printed."""
    if gpu.memory_bytes_per_s is None:
        return None
    product = gpu.product
    is_printed = product is not None and product.memory_bytes_per_s == gpu.memory_bytes_per_s
    return Ceiling(
        per_s=gpu.memory_bytes_per_s,
        unit="bytes/s",
        origin="datasheet" if is_printed else "report",
        formula=units.quantity(gpu.memory_bytes_per_s, "bytes/s"),
        source=product.source if product is not None and is_printed else "attributes of the device in the report",
        level="dram",
    )
