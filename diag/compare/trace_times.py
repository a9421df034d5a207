"""What a timeline tells of its steps, devices and kernels, with everything that repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.compare.noise import Values
from diag.compare.recording import FIGURES, Kernel, Steps
from diag.compare.series import OUTSIDE, Series, together
from diag.rules import thresholds
from diag.rules.tables import kernels_by_name
from diag.timeline import nesting
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Integers, Intervals, Times
from diag.timeline.steps import find_steps
from diag.timeline.trace import Trace


@dataclass(frozen=True, eq=False)
class Periods:
    """From the start of each step, but the first, to that of the next one; sorted and apart."""

    pattern: str
    starts_ns: Times
    ends_ns: Times

    def __len__(self) -> int:
        return len(self.starts_ns)

    @property
    def steps(self) -> Steps:
        return Steps(self.pattern, Series.of((self.ends_ns - self.starts_ns).astype(np.float64)))

    def measure(self, time: Intervals) -> Values:
        """How much of a set of time lies in each."""
        return time.measure_within(self.starts_ns, self.ends_ns).astype(np.float64)

    def at(self, times_ns: Times) -> NDArray[np.int64]:
        """Which of them each time lies in, or OUTSIDE."""
        at = np.searchsorted(self.starts_ns, times_ns, side="right") - 1
        return np.where((at >= 0) & (times_ns < self.ends_ns[at]), at, OUTSIDE)


def periods_of(trace: Trace) -> Periods | None:
    """Steps as rule steps.variance finds them; in a part of a trace those that lie wholly in it. None without any."""
    if trace.main_thread is None:
        return None
    limits = thresholds.load()["steps.variance"]
    steps = find_steps(
        trace.threads[trace.main_thread], fewest=limits["fewest_steps"], least_cover=limits["least_cover"]
    )
    if steps is None:
        return None
    is_whole = np.ones(len(steps), bool)
    if trace.scope is not None:
        is_whole = trace.scope.measure_within(steps.start_ns, steps.end_ns) == steps.duration_ns
    timed = is_whole[1:-1]
    if not timed.any():
        return None
    return Periods(steps.pattern, steps.start_ns[1:-1][timed], steps.start_ns[2:][timed])


def figures_of(device: DeviceTimeline, periods: Periods | None) -> Iterator[tuple[str, Series]]:
    """Each of FIGURES, in the window and, where there are steps, in each of their periods."""
    sets = (
        device.window,
        device.busy,
        device.idle,
        device.kernel_time,
        device.copy_time,
        device.memset_time,
        device.communication_time,
        device.exposed_communication,
    )
    for figure, time in zip(FIGURES, sets, strict=True):
        yield figure, Series.of_figure(float(time.measure_ns), None if periods is None else periods.measure(time))


def kernels_of(trace: Trace, device: DeviceTimeline, periods: Periods | None) -> Mapping[str, Kernel]:
    """The kernels of a device by name, each launch cut to the window; configurations are grid and block."""
    launched = trace.configurations_of(device)
    ops = device.ops.select(launched.kernels)
    durations_ns = device.window.measure_within(ops.start_ns, ops.end_ns).astype(np.float64)
    period = None if periods is None else periods.at(ops.start_ns)
    found: dict[str, dict[str, list[Series]]] = {}
    for at, which in _groups(launched.of):
        name = device.name_of(int(launched.name_id[at]))
        how = _configuration(int(launched.blocks[at]), int(launched.threads[at]))
        series = Series.of(durations_ns[which], None if period is None else period[which], len(periods or ()))
        found.setdefault(name, {}).setdefault(how, []).append(series)
    short = {row.name: row.short_name for row in kernels_by_name(device).values()}
    return {
        name: Kernel(short[name], {how: together(series) for how, series in by_configuration.items()})
        for name, by_configuration in found.items()
    }


def _groups(labels: Integers) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each label and where it stands."""
    order = np.argsort(labels, kind="stable")
    for first, stop in nesting.runs_of_equal(labels[order]):
        yield int(labels[order[first]]), order[first:stop]


def _configuration(blocks: int, threads: int) -> str:
    """
    >>> _configuration(1024, 256), _configuration(-1, -1)
    ('1024 blocks of 256 threads', '')
    """
    return f"{blocks} blocks of {threads} threads" if blocks >= 0 and threads >= 0 else ""
