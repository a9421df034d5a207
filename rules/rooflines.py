"""The rooflines of a report: of each launch, and of each kernel for the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from diag.launches.kernel import ProfiledKernel, Untold
from diag.launches.roofline import roofline_of
from diag.model.ceilings import Ceiling
from diag.model.roofline import Ladder, Position
from diag.rules import profiled
from diag.rules.launch_report import LaunchRow
from diag.rules.roofline_report import KernelRoofline, RooflineCeiling, RooflineLimit, RooflinePoint, RooflineRow
from diag.rules.thresholds import Limits
from diag.rules.timeline_report import KernelRow


def ladder(limits: Limits) -> Ladder:
    """From the thresholds of `ncu.roofline`."""
    return Ladder(low=limits["low"], even=limits["even"], slack=limits["slack"])


def kernel_rooflines(kernels: Sequence[ProfiledKernel], launches: Sequence[LaunchRow]) -> list[KernelRoofline]:
    """Of the kernels that have one, by their share of the time, or by their time where that has no shares."""
    longest_first = sorted(kernels, key=lambda kernel: -(profiled.total_ns(kernel) or 0.0))
    known = _by_launch(launches)
    rows = [_of_kernel(kernel, row) for kernel in longest_first if (row := known[kernel.launch.label]) is not None]
    return sorted(rows, key=lambda row: -(row.share or 0.0))


def with_rooflines(
    rows: Sequence[KernelRow], kernels: Sequence[ProfiledKernel], launches: Sequence[LaunchRow]
) -> list[KernelRow]:
    """Kernels of timelines, each with the roofline of its profile, if there is one."""
    longest: dict[tuple[object, ...], ProfiledKernel] = {}
    for kernel in sorted(kernels, key=lambda kernel: kernel.place.total_ns if kernel.place else 0):
        if (place := kernel.place) is not None:
            longest[place.device.source_id, place.device.pid, place.device.device, place.name] = kernel
    known = _by_launch(launches)
    of = {key: known[kernel.launch.label] for key, kernel in longest.items()}
    return [replace(row, roofline=of.get((row.source, row.process, row.device, row.name))) for row in rows]


def _by_launch(launches: Sequence[LaunchRow]) -> Mapping[str, RooflineRow | None]:
    """A roofline is worked out once, for the row of its launch."""
    return {row.id: row.roofline for row in launches}


def _of_kernel(kernel: ProfiledKernel, row: RooflineRow) -> KernelRoofline:
    launch, clocks = kernel.launch, profiled.clocks(kernel)
    return KernelRoofline(
        source=launch.source_id,
        launch=launch.label,
        short_name=launch.short_name,
        configuration=kernel.configuration,
        count=len(kernel.launches),
        share=profiled.share_of_time(kernel),
        device_name=launch.gpu.name,
        sm_clock_hz=clocks.sm_hz,
        memory_clock_hz=clocks.memory_hz,
        roofline=row,
    )


def roofline_row(kernel: ProfiledKernel, ladder: Ladder) -> RooflineRow | None:
    """None where the report does not count what a roofline needs, and where the launch moved no byte."""
    roofline = roofline_of(kernel)
    if isinstance(roofline, Untold) or (main := roofline.main) is None:
        return None
    return RooflineRow(
        level=main.traffic.name,
        precision=main.work.name,
        intensity=main.intensity,
        work_unit=main.work_unit,
        work_per_s=main.work.per_s,
        attainable_work_per_s=main.attainable_per_s,
        ridge_point=main.ridge_point,
        bound=roofline.bound(ladder),
        headroom=roofline.headroom,
        nearest=roofline.tightest.name,
        limits=[RooflineLimit(limit.name, limit.side, limit.share) for limit in roofline.limits],
        points=[_point(position) for position in roofline.positions],
        ceilings=[_ceiling(each) for each in (*(rate.ceiling for rate in roofline.rates), *roofline.others)],
        uncounted=roofline.uncounted,
    )


def _point(position: Position) -> RooflinePoint:
    return RooflinePoint(
        level=position.traffic.name,
        precision=position.work.name,
        intensity=position.intensity,
        work_per_s=position.work.per_s,
        attainable_work_per_s=position.attainable_per_s,
        ridge_point=position.ridge_point,
    )


def _ceiling(ceiling: Ceiling) -> RooflineCeiling:
    return RooflineCeiling(
        name=ceiling.name,
        side="compute" if ceiling.level is None else "memory",
        per_s=ceiling.per_s,
        unit=ceiling.unit,
        origin=ceiling.origin,
        formula=ceiling.formula,
        sm_clock_hz=ceiling.sm_clock_hz,
        memory_clock_hz=ceiling.memory_clock_hz,
    )
