"""What slow steps spend more time on than the usual ones.

For every kind of time (device idle, kernels, a range, a call, ...) its excess is what the slow steps spend on it beyond
as many usual steps: sum over slow steps - number of slow steps x mean over usual steps. Kinds are seen from the device
and from the host, so that they speak of the same time and do not add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from diag.rules import activities
from diag.rules.activities import Activity
from diag.rules.finding import Subject
from diag.rules.host_time import HostTime
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import KERNEL, NONE
from diag.timeline.host import HostThread
from diag.timeline.intervals import Integers, Intervals, Times
from diag.timeline.steps import Steps
from diag.timeline.trace import Trace


@dataclass(frozen=True)
class Difference:
    """A kind of time that slow steps have more of, and by how much all of them together."""

    what: str
    excess_ns: int


@dataclass(frozen=True)
class Differences:
    beyond_ns: int  # what slow steps take beyond as many usual ones
    device_idle: Sequence[Difference]
    device_work: Sequence[Difference]  # parts of the device's time that exclude each other
    host: Sequence[Difference]  # may lie in each other

    def largest(self, *, least_share: float, most: int) -> list[Difference]:
        found = [*self.device_work, *self.host, *self.device_idle]
        large = [each for each in found if each.excess_ns >= max(least_share * self.beyond_ns, 1)]
        return sorted(large, key=lambda each: -each.excess_ns)[:most]

    def explaining(self, named: Sequence[Difference]) -> list[Difference]:
        """Without the device's idle time: that it waits is no explanation."""
        return [each for each in named if each not in self.device_idle]

    def unexplained_ns(self, named: Sequence[Difference]) -> int:
        """At most: what neither the device's work nor any one kind of the host's time accounts for."""
        of_device = sum(each.excess_ns for each in named if each in self.device_work)
        of_host = max((each.excess_ns for each in named if each in self.host), default=0)
        return max(0, self.beyond_ns - max(of_device, of_host))


@dataclass(frozen=True, eq=False)
class Contrast:
    """Steps, and which of them are slow."""

    steps: Steps
    slow: NDArray[np.bool_]

    def of_time(self, what: str, time: Intervals) -> Difference:
        inside_ns = time.measure_within(self.steps.start_ns, self.steps.end_ns)
        return Difference(what, int(self.excess(inside_ns)))

    def excess(self, per_step: NDArray[np.int64]) -> float:
        """What the slow steps have together beyond as many usual ones."""
        return float(per_step[self.slow].sum() - self.slow.sum() * per_step[~self.slow].mean())

    def by_label(self, starts_ns: Times, ends_ns: Times, labels: Integers, n: int) -> tuple[Times, Times]:
        """Time of all slow steps, and excess, of each label below n; spans count where they start, cut to the step."""
        step = self._step_at(starts_ns)
        inside = step >= 0
        step, labels = step[inside], labels[inside]
        spent_ns = np.minimum(ends_ns[inside], self.steps.end_ns[step]) - starts_ns[inside]
        is_slow = self.slow[step]
        slow_ns = np.bincount(labels[is_slow], spent_ns[is_slow], n)
        usual_ns = np.bincount(labels[~is_slow], spent_ns[~is_slow], n)
        excess_ns = slow_ns - usual_ns * (self.slow.sum() / (~self.slow).sum())
        return slow_ns.astype(np.int64), excess_ns.astype(np.int64)

    def counts(self, times_ns: Times) -> tuple[float, float]:
        """How many of these instants lie in a slow and in a usual step, on average."""
        step = self._step_at(times_ns)
        per_step = np.bincount(step[step >= 0], minlength=len(self.steps))
        return float(per_step[self.slow].mean()), float(per_step[~self.slow].mean())

    def _step_at(self, times_ns: Times) -> NDArray[np.int64]:
        """Index of the step at each time, or -1."""
        at = np.searchsorted(self.steps.start_ns, times_ns, side="right") - 1
        return np.where((at >= 0) & (times_ns < self.steps.end_ns[np.maximum(at, 0)]), at, -1)


def differences(trace: Trace, contrast: Contrast) -> Differences:
    """Of several devices of the process, the one is told whose work differs most."""
    thread = trace.threads[contrast.steps.thread_id]
    of_process = [device for device in trace.devices if device.process_id == thread.process_id]
    work = [(device, _device_work(device, contrast)) for device in of_process]
    idle: list[Difference] = []
    most: list[Difference] = []
    if work:
        device, most = max(work, key=lambda item: max(each.excess_ns for each in item[1]))
        idle = [contrast.of_time(f"idle time of GPU {device.device}", trace.idle_of(device).idle)]
    beyond_ns = int(contrast.excess(contrast.steps.duration_ns))
    return Differences(beyond_ns, idle, most, list(_on_host(trace, thread, contrast)))


def launches_per_step(trace: Trace, contrast: Contrast) -> tuple[float, float]:
    """GPU operations launched in a slow and in a usual step, on average."""
    thread = trace.threads[contrast.steps.thread_id]
    times = [
        device.calls.start_ns[device.launch[device.launch != NONE]]
        for device in trace.devices
        if device.process_id == thread.process_id
    ]
    return contrast.counts(np.concatenate(times)) if times else (0.0, 0.0)


def _device_work(device: DeviceTimeline, contrast: Contrast) -> list[Difference]:
    on = f"of GPU {device.device}"
    exposed, kernels = device.exposed_communication, device.kernel_time
    compute, top = contrast.of_time(f"kernels {on}", kernels - exposed), _kernel(device, contrast)
    if top and 2 * top.excess_ns >= compute.excess_ns:
        compute = replace(compute, what=f"{compute.what}, most in '{top.what}'")
    return [
        compute,
        contrast.of_time(f"exposed communication {on}", exposed),
        contrast.of_time(f"copies {on} that no kernel hides", device.copy_time - kernels),
    ]


def _kernel(device: DeviceTimeline, contrast: Contrast) -> Difference | None:
    """The kernel with the largest excess, by its short name."""
    ops = device.ops.select((device.ops.kind == KERNEL) & ~device.is_communication)
    names, labels = np.unique(ops.short_name_id, return_inverse=True)
    texts = [device.name_of(name_id) for name_id in names.tolist()]
    _, excess_ns = contrast.by_label(ops.start_ns, ops.end_ns, labels, len(names))
    return _largest(texts, excess_ns)


def _on_host(trace: Trace, thread: HostThread, contrast: Contrast) -> Iterator[Difference]:
    if ranges := _range(thread, contrast):
        yield ranges
    for starts_ns, ends_ns, name_id in (
        (thread.calls.start_ns, thread.calls.end_ns, thread.calls.name_id),
        (thread.os_calls.start_ns, thread.os_calls.end_ns, thread.os_calls.name_id),
    ):
        names, labels = np.unique(name_id, return_inverse=True)
        texts = [f"{trace.names[name_id]}()" for name_id in names.tolist()]
        _, excess_ns = contrast.by_label(starts_ns, ends_ns, labels, len(names))
        if best := _largest(texts, excess_ns):
            yield best
    if thread.off_cpu is not None:
        yield contrast.of_time("time off the CPU", thread.off_cpu)
    collect = activities.activities()["collect_garbage"]
    yield contrast.of_time(collect.label, _collecting(trace, thread, contrast.steps, collect))


def _collecting(trace: Trace, thread: HostThread, steps: Steps, collect: Activity) -> Intervals:
    """By ranges, or else by samples."""
    when = Intervals.union_of(steps.start_ns, steps.end_ns)
    sampled = HostTime(trace, thread, when, when.measure_ns, Subject(trace.source.id)).sampled(collect)
    return activities.time_in_ranges(thread, collect) or sampled.extent


def _range(thread: HostThread, contrast: Contrast) -> Difference | None:
    """The range that fits the excess best: much of it, and little else in slow steps.

    Of those that enclose each other and fit alike, it is the outermost.
    """
    ranges, outermost = thread.ranges, thread.outermost.copy()
    outermost &= thread.range_labels != thread.range_patterns.index(contrast.steps.pattern)
    slow_ns, excess_ns = contrast.by_label(
        ranges.start_ns[outermost],
        ranges.end_ns[outermost],
        thread.range_labels[outermost],
        len(thread.range_patterns),
    )
    fit = np.maximum(excess_ns, 0) / np.maximum(slow_ns, 1) * excess_ns
    best = int(np.argmax(fit))
    return Difference(f"'{thread.range_patterns[best]}'", int(excess_ns[best])) if fit[best] > 0 else None


def _largest(texts: Sequence[str], excess_ns: Times) -> Difference | None:
    if not len(excess_ns) or excess_ns.max() <= 0:
        return None
    best = int(np.argmax(excess_ns))
    return Difference(texts[best], int(excess_ns[best]))
