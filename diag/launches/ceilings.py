"""Ceilings at the conditions of a launch: measured at its clock, else from its report, else derived, else printed."""

from __future__ import annotations

from diag.launches.counters import Counted
from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.ceilings import Arithmetic, Ceiling, Level
from diag.model.datasheets import datasheet_peaks
from diag.model.measured import at_clocks, best_rate
from diag.model.quantities import Missing
from diag.model.throughput import derived_peaks, dram_peak, on_chip_peak


def ceiling_of(kernel: ProfiledKernel, counted: Counted) -> Ceiling | None:
    """The best that is known; None where nothing is."""
    return (
        measured(kernel, counted)
        or reported(kernel, counted)
        or _derived(kernel, counted.arithmetic, counted.level)
        or printed(kernel, counted.arithmetic, counted.level)
    )


def measured(kernel: ProfiledKernel, counted: Counted) -> Ceiling | None:
    """What a calibration reached on this device at the clocks of the launch, which ncu may hold lower.

    Of arithmetic and of device memory. Caches count what their clients ask of them and what goes between their parts,
    which the bytes of a program are not: a rate is never held against the peak of another counter.
    """
    if counted.arithmetic is None and counted.level != "dram":
        return None
    best = best_rate(kernel.measured, arithmetic=counted.arithmetic, level=counted.level)
    return at_clocks(best, sm_clock_hz=kernel.known("sm_clock"), memory_clock_hz=kernel.known("memory_clock"))


def reported(kernel: ProfiledKernel, counted: Counted) -> Ceiling | None:
    """What the report says that the device sustains, at the clocks of the launch."""
    peak = kernel.quantity(counted.peak)
    if isinstance(peak, Missing) or peak.value <= 0:
        return None
    return Ceiling(
        per_s=peak.value,
        unit=peak.unit,
        origin="report",
        formula=peak.formula,
        source=f"the report of Nsight Compute, launch {kernel.launch.number}",
        arithmetic=counted.arithmetic,
        level=counted.level,
        sm_clock_hz=kernel.known("sm_clock"),
        memory_clock_hz=kernel.known("memory_clock"),
        sm_count=kernel.launch.gpu.sm_count,
    )


def printed(kernel: ProfiledKernel, arithmetic: Arithmetic | None, level: Level | None) -> Ceiling | None:
    """What a datasheet says, mostly at boost clock."""
    gpu = kernel.launch.gpu
    if level == "dram":
        known = dram_peak(gpu)
        return known if known is not None and known.origin == "datasheet" else None
    return datasheet_peaks(gpu.product).get(arithmetic) if gpu.product and arithmetic else None


def _derived(kernel: ProfiledKernel, arithmetic: Arithmetic | None, level: Level | None) -> Ceiling | None:
    """What follows from the units of an SM at the clock of the launch. Nobody says what an L2 cache sustains."""
    gpu, clock_hz = kernel.launch.gpu, kernel.known("sm_clock")
    if level == "dram":
        return dram_peak(gpu)
    if clock_hz is None or level == "l2":
        return None
    if level == "l1":
        return on_chip_peak(gpu, "l1", clock_hz)
    return derived_peaks(gpu, clock_hz).get(arithmetic) if arithmetic else _issue(kernel, clock_hz)


def _issue(kernel: ProfiledKernel, clock_hz: float) -> Ceiling | None:
    """One instruction per clock of each scheduler. Before Volta, a scheduler could issue two at a time."""
    gpu = kernel.launch.gpu
    if gpu.limits is None or not gpu.sm_count or (gpu.compute_capability or _VOLTA) < _VOLTA:
        return None
    schedulers = gpu.limits.sub_partitions
    return Ceiling(
        per_s=schedulers * gpu.sm_count * clock_hz,
        unit="inst/s",
        origin="derived",
        formula=f"{schedulers} schedulers per SM x {gpu.sm_count} SMs x {units.quantity(clock_hz, 'Hz')}",
        source="Ding and Williams 2019 (doi:10.1109/PMBS49563.2019.00007)",
        sm_clock_hz=clock_hz,
        sm_count=gpu.sm_count,
    )


_VOLTA = (7, 0)
