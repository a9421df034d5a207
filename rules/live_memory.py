"""Memory of a watched workload: a device that is nearly full, and memory that grows."""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.live_run import LiveRun
from diag.model.live_trend import Growth, growth, is_long_enough
from diag.rules.engine import live_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Severity, Subject
from diag.rules.live import (
    Device,
    device_rows,
    gpu,
    live_device_rule,
    process,
    process_rows,
    subject_of,
    subject_of_process,
    subject_of_run,
    window_of,
)
from diag.rules.thresholds import Limits

FEWEST = 12
"""Snapshots, of which each quarter of the window then has some."""


@live_device_rule("live.memory_full", needs=("memory_used_bytes", "memory_total_bytes"))
def device_memory_nearly_full(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """Device memory is nearly full.

    Asks      How full was the device's memory at its fullest?
    Decides   Fires when the largest amount in use reaches `share` of what the device has. In use is what the driver has
              handed out: a caching allocator (PyTorch, JAX) keeps more than the program needs at the moment, and JAX
              takes most of the device at its start, on purpose.
    Matters   The next larger batch, a longer sequence or another process ends the program, out of memory. An allocator
              that is short of memory gives back and takes again, which stops the device.
    Do        In PyTorch, compare `torch.cuda.memory_allocated()` with `torch.cuda.memory_reserved()`: the difference is
              cache. Take a smaller batch, checkpoint activations, shard the optimiser, or use lower precision.
    Refute    The allocator's own statistics show that most of it is free inside its cache.
    """
    subject, rows = subject_of(run, device), device_rows(run, device, "memory_used_bytes", "memory_total_bytes")
    most, total = max(device.known("memory_used_bytes")), max(device.known("memory_total_bytes"))
    if most < limits["share"] * total:
        yield Clear(subject)
        return
    holders = sorted(
        ((each.memory_bytes, each.pid) for each in device.last.processes or () if each.memory_bytes), reverse=True
    )
    yield Finding(
        title=f"{gpu(device)} has {units.share(most / total) if total else 'all'} of its memory in use",
        claim=f"At the fullest {units.size(most)} of {units.size(total)} were in use.",
        subject=subject,
        level="warning",
        counterfactual="Nothing would be faster by itself; larger batches would fit.",
        evidence=[
            Evidence("most in use", most, "bytes", "largest reading", rows),
            Evidence("device memory", total, "bytes", "of the device", rows),
            *(
                Evidence(f"held by {pid}", size, "bytes", "by NVML, in the last snapshot", rows)
                for size, pid in holders[:4]
            ),
        ],
        refute="The allocator's own statistics show that most of it is free inside its cache.",
        next=["Ask the allocator what it needs and what it keeps: torch.cuda.memory_summary()"],
    )


@live_device_rule("live.memory_growth", needs=("memory_used_bytes", "memory_total_bytes"), fewest=FEWEST)
def device_memory_grows(run: LiveRun, device: Device, limits: Limits) -> Iterator[Answer]:
    """Device memory grows.

    Asks      Does the memory in use on the device grow throughout the window, and when would it be full?
    Decides   The floor counts, not the peaks: in each quarter of the window the lowest amount must be above that of the
              quarter before, and from the first to the last it must rise by `growth` of what the device has. The time
              to full takes for granted that it goes on as it did. Loading a model looks the same while it lasts.
    Matters   Memory that grows with the steps ends the program, hours later.
    Do        Look for tensors that are kept from step to step: losses that are summed with their graph (`loss.item()`
              instead), lists of outputs, caches without a bound, shapes that never repeat.
    Refute    Watch for longer: the amount levels off.
    """
    subject = subject_of(run, device)
    used = [
        (time_ns, value)
        for (_, time_ns), value in zip(device.spans, device.column("memory_used_bytes"), strict=True)
        if value is not None
    ]
    times_ns, values = [time_ns for time_ns, _ in used], [value for _, value in used]
    total = max(device.known("memory_total_bytes"))
    if not is_long_enough(times_ns):
        yield CannotTell(subject, "device memory was not read in each quarter of the window: watch for longer")
        return
    found = growth(times_ns, values)
    if found is None or found.last - found.first < limits["growth"] * total:
        yield Clear(subject)
        return
    sql = device_rows(run, device, "memory_used_bytes", "memory_total_bytes")
    yield _growing(run, subject, gpu(device), "device memory", found, max(0, total - values[-1]), sql, limits)


@live_rule("live.host_memory_growth", fewest=FEWEST)
def host_memory_grows(run: LiveRun, limits: Limits) -> Iterator[Answer]:
    """Host memory of a process grows.

    Asks      Does the resident memory of a watched process grow throughout the window, and when would it be all there
              is?
    Decides   As live.memory_growth, for the resident memory of each process, against what the machine has; the time to
              full is until what is available at the end is used up. Pages of files that are mapped count as resident,
              and the kernel takes them back when it must.
    Matters   When memory runs out the kernel ends a process (OOM), and before that it drops the cache of files, so that
              data come from storage again.
    Do        In Python, compare `tracemalloc` snapshots of two steps. With a data loader look for lists of Python
              objects in the dataset: workers copy them page by page as reference counts are touched.
    Refute    Watch for longer: the amount levels off. Or `smaps_rollup` shows that what grew is clean pages of files.
    """
    host = run.snapshots[-1].host
    if host.memory_total_bytes is None or host.memory_available_bytes is None:
        yield CannotTell(subject_of_run(run), run.untold("host") or "how much memory the machine has was not readable")
        return
    if not run.processes:
        yield CannotTell(subject_of_run(run), run.untold("processes") or "no process was watched")
        return
    whole = [each for each in run.processes if each.elapsed_ns == run.window_ns]  # growing up is no leak
    growing = []
    for each in whole:
        known = [
            (time_ns, reading.resident_bytes)
            for time_ns, reading in zip(each.times_ns, each.readings, strict=True)
            if reading.resident_bytes is not None
        ]
        found = growth([time_ns for time_ns, _ in known], [value for _, value in known])
        if found is not None and found.last - found.first >= limits["growth"] * host.memory_total_bytes:
            growing.append((each, found))
    if not growing:
        if any(is_long_enough(each.times_ns) and each.last.resident_bytes is not None for each in whole):
            yield Clear(subject_of_run(run))
        else:
            yield CannotTell(subject_of_run(run), "no process was there, with its memory readable, all the time")
    for each, found in growing:
        yield _growing(
            run,
            subject_of_process(run, each.pid),
            process(each),
            "resident memory",
            found,
            host.memory_available_bytes,
            process_rows(run, each.pid, "resident_bytes"),
            limits,
        )


def _growing(
    run: LiveRun, subject: Subject, who: str, what: str, found: Growth, rest: int, sql: str | None, limits: Limits
) -> Finding:
    to_full_ns = round(found.time_to_ns(rest))
    level: Severity = "critical" if to_full_ns < limits["soon"] * run.window_ns else "warning"
    return Finding(
        title=f"{who}: {what} grows by {units.size(found.per_s * 60)} a minute",
        claim=f"Its floor rose in every quarter of the window, by {units.size(found.last - found.first)} in all; if it "
        f"goes on like that, nothing is left after {_long(to_full_ns)}.",
        subject=subject,
        level=level,
        confidence="medium",
        counterfactual="Nothing would be faster; the program would not run out of memory.",
        evidence=[
            window_of(run),
            Evidence("floor at first", found.first, "bytes", "lowest reading of the first quarter", sql),
            Evidence("floor at last", found.last, "bytes", "lowest reading of the last quarter", sql),
            Evidence("growth", round(found.per_s), "bytes/s", "(last floor - first floor) / three quarters", sql),
            Evidence("left", rest, "bytes", "not in use at the end", sql),
            Evidence("time to full", to_full_ns, "ns", "left / growth, if it goes on as in the window"),
        ],
        refute="Watch for longer: the amount levels off.",
        next=["Watch for ten times as long, and see whether it levels off.", _LOOK[what]],
    )


_LOOK = {
    "device memory": "Record what is allocated: torch.cuda.memory._record_memory_history(), then a snapshot.",
    "resident memory": "Compare two snapshots of tracemalloc, taken some steps apart.",
}


def _long(ns: float) -> str:
    """Hours and minutes, which `units.time` does not know.

    >>> _long(90e9), _long(7.5e12), _long(2e9)
    ('1.5 min', '2.1 h', '2.0 s')
    """
    if ns >= 3.6e12:
        return f"{ns / 3.6e12:.1f} h"
    return f"{ns / 6e10:.1f} min" if ns >= 6e10 else units.time(ns)
