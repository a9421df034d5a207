"""Where a measurement stands under the ceilings of its machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from diag.model.benchmark import Machine, MeasuredCeiling, Measurement
from diag.model.ceilings import Arithmetic, Ceiling, Level
from diag.model.datasheets import datasheet_peaks
from diag.model.hardware import gpu
from diag.model.measured import best_rate
from diag.model.quantities import Measured
from diag.model.roofline import Limit, Position, Rate, Roofline
from diag.model.throughput import dram_peak


@dataclass(frozen=True)
class Standing:
    """A measurement, and a roofline of the ceilings that bound it."""

    measurement: Measurement
    roofline: Roofline

    @property
    def nearest(self) -> Limit | None:
        """The ceiling at which it spends the largest share of its time; None where none is known."""
        return self.roofline.tightest if self.roofline.limits else None

    @property
    def ceiling(self) -> Ceiling | None:
        """Of `nearest`."""
        rate = max(self.roofline.rates, key=lambda rate: rate.share, default=None)
        return rate.ceiling if rate else None

    @property
    def position(self) -> Position | None:
        return self.roofline.main

    @property
    def error_share(self) -> float:
        """Half-width of the 95 % interval of the median, as a share of it.

        The standard error of a median is 1.2533 sigma / sqrt(n) (Kenney and Keeping 1962, Mathematics of Statistics,
        section 13.13), and 3.29 sigma lie between the percentiles 5 and 95, both for normally distributed times.
        """
        spread = self.measurement.p95_ns - self.measurement.p5_ns
        sigma = spread / 3.29
        return 1.96 * 1.2533 * sigma / sqrt(self.measurement.repeats) / self.measurement.median_ns


def standing(measurement: Measurement, machine: Machine, measured: Sequence[MeasuredCeiling]) -> Standing:
    """Under measured ceilings, and where a kind was not measured under those that are printed about the device."""
    traffic = _rates(
        _level_ceiling(measurement.level, machine, measured), measurement.bytes_per_s, "bytes", measurement.n_bytes
    )
    work = _rates(
        _arithmetic_ceiling(measurement.arithmetic, machine, measured),
        measurement.flops_per_s,
        "FLOPs",
        measurement.flops,
    )
    return Standing(measurement, Roofline(traffic=traffic, work=work))


def _rates(ceiling: Ceiling | None, per_s: float | None, what: str, amount: int | None) -> Sequence[Rate]:
    if ceiling is None or per_s is None:
        return []
    return [Rate(Measured(per_s, ceiling.unit, f"{amount:,} {what} / median", ()), ceiling)]


def _level_ceiling(level: Level | None, machine: Machine, measured: Sequence[MeasuredCeiling]) -> Ceiling | None:
    if level is None:
        return None
    if best := best_rate(measured, level=level):
        return best.ceiling
    return dram_peak(gpu(_facts(machine))) if level == "dram" and machine.kind == "cuda" else None


def _arithmetic_ceiling(of: Arithmetic | None, machine: Machine, measured: Sequence[MeasuredCeiling]) -> Ceiling | None:
    if of is None:
        return None
    if best := best_rate(measured, arithmetic=of):
        return best.ceiling
    product = gpu(_facts(machine)).product if machine.kind == "cuda" else None
    return datasheet_peaks(product).get(of) if product else None


def _facts(machine: Machine) -> dict[str, object]:
    major, minor = machine.compute_capability or (None, None)
    return {"name": machine.name, "sm_count": machine.n_units, "compute_major": major, "compute_minor": minor}


def is_same(one: Machine, other: Machine) -> bool:
    """Whether ceilings of the one hold for the other."""
    if one.uuid and other.uuid:
        return one.uuid == other.uuid
    return (one.kind, one.name, one.n_units, one.host) == (other.kind, other.name, other.n_units, other.host)
