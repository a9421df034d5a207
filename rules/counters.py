"""What the hardware's own counters say: busy is not the same as used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.counters import Counter
from diag.timeline.device import DeviceTimeline
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace

_FASTER = "nsys profile --gpu-metrics-devices=all --gpu-metrics-frequency=20000, or more"


@device_rule("counters.sm_active", needs=("gpu_metrics",))
def few_sms_active(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Kernels keep the device busy, but few of its SMs.

    Asks      While kernels run, what part of the SMs has any warp to work on?
    Decides   Over the samples whose period, and the one before, lies wholly in the union of kernels (without those of
              communication, which use few SMs by design): active = mean of *SMs Active*, weighted by time. Fires when
              active is below `active_share` and these samples × (1 - active) is at least `share` of the window; needs
              `fewest` samples. Work of other processes on the device counts as active too.
    Matters   "GPU utilisation" counts a device as busy when one of its SMs is. An SM without a warp computes nothing.
    Do        Give each kernel more blocks than there are SMs (batch more, split the longest dimension, stream-K or
              split-K GEMM), or run independent kernels at the same time on several streams.
    Refute    Double the work per launch (batch): if the kernels take twice as long, the SMs were not the room to spare.
    """
    active = trace.counters.of_device("sm_active", device.process_id, device.device)
    if active is None:
        yield CannotTell(subject_of(device), "no metric of this device tells how many SMs are active")
        return
    computing = device.time_of((device.ops.kind == gpu_work.KERNEL) & ~device.is_communication)
    settled = active.settled_within(computing)
    sampled = active.time_of(settled)
    mean_pct = active.mean_within(sampled)
    if mean_pct is None or settled.sum() < limits["fewest"]:
        yield CannotTell(subject_of(device), f"{_too_short(int(settled.sum()), 'kernel time', active)} ({_FASTER})")
        return
    unused_ns = round(sampled.measure_ns * (1 - mean_pct / 100))
    share = device.share(unused_ns)
    if mean_pct / 100 >= limits["active_share"] or share < limits["share"]:
        yield Clear(subject_of(device))
        return
    name, kernel_pct = _emptiest_kernel(device, active, sampled)
    yield Finding(
        title=f"Busy, but on average only {units.share(mean_pct / 100)} of the SMs have work",
        claim=f"Kernels run for {units.time(computing.measure_ns)} ({units.share(device.share(computing))} of the "
        f"window). In the {units.time(sampled.measure_ns)} of it that the samples tell of, "
        f"{units.share(mean_pct / 100)} of the SMs are active on average. Most of the SM time left over is left by "
        f"{name}, which keeps {units.share(kernel_pct / 100)} of them active.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=unused_ns,
        confidence="medium",
        counterfactual=f"If the same work spread over all SMs, it would win {units.time(unused_ns)} at most.",
        evidence=[
            Evidence("SMs active", mean_pct / 100, "share", "mean of the samples in kernel time, weighted by time"),
            Evidence("kernel time sampled", sampled.measure_ns, "ns", "samples whose periods lie wholly in kernels"),
            Evidence("kernel time", computing.measure_ns, "ns", "union of kernels without communication"),
            Evidence(
                "samples", int(settled.sum()), "count", f"one per {units.time(active.period_ns)}", _samples(trace)
            ),
            Evidence(f"SMs active in {name}", kernel_pct / 100, "share", "mean within the launches of this kernel"),
            *_other_figures(trace, device, sampled),
        ],
        refute="Double the work per launch (batch): if the kernels take twice as long, no SM was free.",
        next=[
            f"Look at the grid of {name}: it needs at least as many blocks as there are SMs.",
            "Batch more work per launch, split the longest dimension (split-K, stream-K), or run independent kernels "
            "on several streams.",
        ],
        extent=sampled,
    )


def _too_short(settled: int, where: str, counter: Counter) -> str:
    return f"only {settled} samples lie wholly in {where}, at one per {units.time(counter.period_ns)}"


def _emptiest_kernel(device: DeviceTimeline, active: Counter, sampled: Intervals) -> tuple[str, float]:
    """Name of the kernel with most unused SM time among the samples, and the mean of active SMs while it runs, in %."""
    ops = device.ops.select((device.ops.kind == gpu_work.KERNEL) & ~device.is_communication)
    inside_ns = sampled.measure_within(ops.start_ns, ops.end_ns)
    at = np.searchsorted(active.time_ns, (ops.start_ns + ops.end_ns) // 2, side="right") - 1
    unused = inside_ns * (100 - active.value[np.maximum(at, 0)])  # by the value in the middle of each launch
    names, index = np.unique(ops.short_name_id, return_inverse=True)
    name_id = int(names[np.argmax(np.bincount(index, unused))])
    is_it = (device.ops.kind == gpu_work.KERNEL) & (device.ops.short_name_id == name_id)
    mean_pct = active.mean_within(device.time_of(is_it) & sampled)
    return device.names.get(name_id, "a kernel"), 0.0 if mean_pct is None else mean_pct


def _other_figures(trace: Trace, device: DeviceTimeline, sampled: Intervals) -> Iterator[Evidence]:
    for meaning, label in (
        ("tensor_active", "tensor pipes active"),
        ("dram_read", "device memory reading"),
        ("dram_write", "device memory writing"),
    ):
        counter = trace.counters.of_device(meaning, device.process_id, device.device)
        if counter is not None and (mean_pct := counter.mean_within(sampled)) is not None:
            yield Evidence(label, mean_pct / 100, "share", f"mean over the same time: {counter.name}")


@dataclass(frozen=True, eq=False)
class _Link:
    """One direction of a link while the device has nothing to do but wait for it."""

    name: str
    awaited: str  # what the device waits for
    waiting: Intervals
    use: Counter

    def sampled(self) -> Intervals:
        return self.use.time_of(self.use.settled_within(self.waiting))

    def full(self, peak_share: float) -> Intervals:
        return self.use.time_of(self.use.settled_within(self.waiting) & (self.use.value >= 100 * peak_share))


@device_rule("counters.link", needs=("gpu_metrics",))
def full_link(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """A link is full while the device waits for it.

    Asks      Is PCIe or NVLink at its peak while copies or communication run with no kernel that computes?
    Decides   PCIe over the exposed copies between host and device, NVLink over the exposed communication: a sample
              counts when its period, and the one before, lies wholly in that time, and is *full* at `peak_share` of
              the peak. Fires when the full ones make `full_share` of the samples' time and `share` of the window;
              needs `fewest` samples. A network card's peak is not in the trace, so its rate is told only.
    Matters   What is link-bound gets no faster by pinning, larger copies or more streams: only fewer bytes help.
    Do        Move less: keep data on the device, smaller types, compress, shard otherwise. Or hide it behind kernels.
    Refute    Halve the bytes: if the copies take as long, the link was not the limit.
    """
    waits = {
        "PCIe": ("copies between host and device", device.link_copy_time - device.kernel_time),
        "NVLink": ("communication", device.exposed_communication),
    }
    waits = {name: (what, time) for name, (what, time) in waits.items() if device.share(time) >= limits["share"]}
    if not waits:
        yield Clear(subject_of(device))
        return
    links = [link for name, (what, time) in waits.items() for link in _links(trace, device, name, what, time)]
    told = [link for link in links if link.use.settled_within(link.waiting).sum() >= limits["fewest"]]
    if not told:
        yield CannotTell(subject_of(device), _why_no_link(waits, links))
        return
    link = max(told, key=lambda each: each.full(limits["peak_share"]).measure_ns)
    full, sampled = link.full(limits["peak_share"]), link.sampled()
    if full.measure_ns < limits["full_share"] * sampled.measure_ns or device.share(full) < limits["share"]:
        yield Clear(subject_of(device))
        return
    mean_pct = link.use.mean_within(sampled) or 0.0
    yield Finding(
        title=f"{link.name} is full while the device waits for {link.awaited}",
        claim=f"For {units.time(link.waiting.measure_ns)} ({units.share(device.share(link.waiting))} of the window) "
        f"{link.awaited} run while nothing computes. {link.name} is at {units.share(mean_pct / 100)} of its peak there "
        f"on average, and at {units.share(limits['peak_share'])} or more in {units.time(full.measure_ns)} of the "
        f"{units.time(sampled.measure_ns)} that the samples tell of: the link is the limit.",
        subject=subject_of(device),
        share=device.share(full),
        level="info",
        counterfactual="Only fewer bytes or overlap with kernels would shorten this; how much, the link cannot tell.",
        evidence=[
            Evidence(f"exposed {link.awaited}", link.waiting.measure_ns, "ns", "their union - union of other kernels"),
            Evidence(f"{link.name} full", full.measure_ns, "ns", "samples at the peak, wholly in that time"),
            *_use_of(told),
            Evidence("sampling period", link.use.period_ns, "ns", "median time between samples", _samples(trace)),
            *_network_rates(trace, device.exposed_communication),
        ],
        refute="Halve the bytes: if the copies take as long, the link was not the limit.",
        next=["Move less: keep data on the device, use smaller types, shard otherwise; or hide it behind kernels."],
        extent=full,
    )


def _links(trace: Trace, device: DeviceTimeline, name: str, awaited: str, waiting: Intervals) -> Iterator[_Link]:
    for direction in ("to", "from"):
        use = trace.counters.of_device(f"{name.lower()}_{direction}_device", device.process_id, device.device)
        if use is not None:
            yield _Link(f"{name} {direction} the device", awaited, waiting, use)


def _why_no_link(waits: dict[str, tuple[str, Intervals]], links: Sequence[_Link]) -> str:
    if not links:
        return f"the metrics of this device do not tell how full {' or '.join(waits)} is"
    most = max(links, key=lambda link: int(link.use.settled_within(link.waiting).sum()))
    settled = int(most.use.settled_within(most.waiting).sum())
    return f"{_too_short(settled, f'exposed {most.awaited}', most.use)} ({_FASTER})"


def _use_of(links: Sequence[_Link]) -> Iterator[Evidence]:
    for link in links:
        if (mean_pct := link.use.mean_within(link.sampled())) is not None:
            formula = f"mean within exposed {link.awaited}: {link.use.name}"
            yield Evidence(f"use of {link.name}", mean_pct / 100, "share", formula)


def _network_rates(trace: Trace, waiting: Intervals) -> Iterator[Evidence]:
    for meaning, label in (("network_sent", "sends"), ("network_received", "receives")):
        for card, counter in trace.counters.of_network(meaning):
            per_s = _BYTES_PER_S.get(counter.unit or "")
            if per_s is not None and (mean := counter.mean_within(waiting)):
                yield Evidence(f"{card} {label}", mean * per_s, "bytes/s", "mean within exposed communication")


_BYTES_PER_S = {"bytes/ms": 1e3, "bytes/s": 1.0}


def _samples(trace: Trace) -> str:
    return (
        "SELECT s.device, n.text, c.time_ns, c.value FROM counter c JOIN counter_series s ON s.id = c.series_id "
        f"JOIN name n ON n.id = s.name_id WHERE s.source_id = {trace.source.id:d} ORDER BY s.device, n.text, c.time_ns"
    )
