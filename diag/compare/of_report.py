"""A recording from a report alone: sums and medians, without what repeats behind them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from diag.compare.loads import loads_of
from diag.compare.places import device_places, input_places, ordinal_place
from diag.compare.recording import Kernel, Key, RangeTimes, Recording
from diag.compare.report_facts import facts_of
from diag.compare.series import Series
from diag.rules.document import DeviceOf, Document, LaunchOf

LACKS = (
    "A JSON report holds sums and medians: not how much launches, ranges and steps vary, not the steps themselves, "
    "neither grids nor shapes of inputs, and of each device the twenty longest ranges only."
)


def recording_of(report: Document, path: str) -> Recording:
    """What a report tells of its run."""
    kernels, launches = _kernels(report), launches_of(report)
    return Recording(
        path=path,
        report=report,
        facts=facts_of(report, kernels or launches),
        tick_ns=tick_ns_of(report),
        span_ns=0,
        steps=None,
        devices=_devices(report),
        kernels=kernels,
        launches=launches,
        ranges=_ranges(report),
        has_all_ranges=False,
        lacks=(LACKS,),
        loads=loads_of(report.serving),
    )


def tick_ns_of(report: Document) -> int:
    """The coarsest of its sources."""
    return max((source.time_resolution_ns for source in report.sources), default=1)


def _devices(report: Document) -> Mapping[Key, Series]:
    places = device_places(report)
    return {
        (places[row.source, row.process, row.device], figure): Series.of_figure(float(total_ns), None)
        for row in report.devices
        for figure, total_ns in _figures(row).items()
    }


def _figures(row: DeviceOf) -> Mapping[str, int]:
    return {
        "window": row.window_ns,
        "busy": row.busy_ns,
        "idle": row.idle_ns,
        "kernels": row.kernel_ns,
        "copies": row.copy_ns,
        "memsets": row.memset_ns,
        "communication": row.comm_ns,
        "exposed communication": row.exposed_comm_ns,
    }


def _kernels(report: Document) -> Mapping[Key, Kernel]:
    """The kernels of its timelines; a report does not say how they were launched."""
    places = device_places(report)
    return {
        (places[row.source, row.process, row.device], row.name): Kernel(
            row.short_name, {"": Series(row.count, float(row.total_ns), float(row.median_ns), None)}
        )
        for row in report.kernels
        if (row.source, row.process, row.device) in places
    }


def _ranges(report: Document) -> Mapping[Key, RangeTimes]:
    """By input and pattern. Several devices may have work of the same instances: these count once."""
    places = input_places(report)
    found: dict[Key, RangeTimes] = {}
    for row in report.ranges:
        key = (places.get(row.source, ""), row.name)
        before = found.get(key)
        gpu_ns = row.gpu_sum_ns + (before.gpu.total_ns if before and before.gpu else 0.0)
        found[key] = RangeTimes(
            host=Series(row.count, float(row.host_ns), None, None), gpu=Series(row.count, float(gpu_ns), None, None)
        )
    return found


# ---- Nsight Compute ------------------------------------------------------------------------------------------------


def launches_of(report: Document) -> Mapping[Key, Kernel]:
    """Launches that Nsight Compute measured, by device and name; those without a duration are left out."""
    timed = [launch for launch in report.launches if launch.duration_ns is not None]
    ordinals = [launch.device for launch in timed]
    alike: defaultdict[Key, defaultdict[str, list[LaunchOf]]] = defaultdict(lambda: defaultdict(list))
    for launch in timed:
        alike[ordinal_place(launch.device, ordinals), launch.name][launch.configuration].append(launch)
    return {key: _kernel(by_configuration) for key, by_configuration in alike.items()}


def _kernel(by_configuration: Mapping[str, list[LaunchOf]]) -> Kernel:
    first = next(iter(by_configuration.values()))[0]
    return Kernel(
        first.short_name,
        {name: Series.of(np.array([_ns(each) for each in alike])) for name, alike in by_configuration.items()},
        {name: _median(alike).sol for name, alike in by_configuration.items()},
    )


def _ns(launch: LaunchOf) -> float:
    return launch.duration_ns or 0.0


def _median(launches: list[LaunchOf]) -> LaunchOf:
    ordered = sorted(launches, key=_ns)
    return ordered[(len(ordered) - 1) // 2]
