"""Device memory: allocating while the work runs, and filling the device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules import activities
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import memory
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import NONE, Calls
from diag.timeline.host import HostThread
from diag.timeline.intervals import Intervals
from diag.timeline.steps import find_steps
from diag.timeline.trace import Trace

ALLOCATING_CALL = re.compile(
    r"^((cuda|hip)(Malloc|Free|Host(Alloc|Register|Unregister))"
    r"|(cu|hip)Mem(Alloc|Free|Host(Alloc|Register|Unregister)|Create|Release|Map|Unmap|SetAccess))(?!.*Async)"
)
"""Calls that allocate or free at once. The stream-ordered ones (cudaMallocAsync) only queue and may stand in loops."""

FREEING_CALL = re.compile(r"Free|Release|Unmap|Unregister")

BURST = 4
"""So many calls in a row that free are a cache being emptied, not a buffer being replaced."""


@device_rule("memory.allocation", needs=("api",))
def allocation_in_steady_state(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Memory is allocated while the work runs.

    Asks      How long does the device idle in steady state because the launching thread is allocating or freeing?
    Decides   The part of the host-late time after startup in which the launching thread is inside a call that allocates
              or frees at once (cudaMalloc, cudaFree, cudaHostAlloc, cudaMallocManaged, cuMemMap...); fires at `share`
              of the window. The stream-ordered cudaMallocAsync and cudaFreeAsync are none of them. Startup may allocate
              as it likes.
    Matters   Allocating and freeing synchronise (CUDA C++ Programming Guide, Implicit Synchronization) and change the
              device's page tables; registering host memory pins it page by page. Nothing is launched meanwhile.
    Do        Allocate once and reuse: a caching allocator, buffers made before the loop, cudaMallocAsync with a release
              threshold. In PyTorch keep shapes steady, drop `torch.cuda.empty_cache()` from the loop, and set
              `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` where memory is fragmented.
    Refute    Hoist the allocations out of the loop for one run: if the device idles as long, they were not why.
    """
    startup = trace.startup_of(device)
    if not startup.is_told:
        yield CannotTell(subject_of(device), "steady state is not in sight: nothing repeats after the one-time work")
        return
    stalled = Intervals.empty()
    found: list[_Allocating] = []
    for thread_id, late in trace.idle_of(device).host_late_of.items():
        thread = trace.threads[thread_id]
        calls = _allocating_calls(thread, startup.steady)
        inside = late & startup.steady & Intervals.union_of(calls.start_ns, calls.end_ns)
        stalled = stalled | inside
        found.append(_Allocating(thread, _outermost(calls), inside))
    share = device.share(stalled)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    worst = max(found, key=lambda part: part.idle.measure_ns)
    longest = activities.longest_cuda_calls(trace.case, worst.thread, worst.idle)
    n_calls = sum(len(part.calls) for part in found)
    bursts = sum(part.bursts for part in found)
    rows = _CALLS.format(thread=worst.thread.thread_id, start=startup.steady.span[0], end=startup.steady.span[1])
    yield Finding(
        title=f"Allocation in steady state: the device waits for {longest[0][0]}",
        claim=f"After startup {units.count(n_calls, 'call')} of the launching thread allocate or free memory; for "
        f"{units.time(stalled.measure_ns)} ({units.share(share)} of the window) the device had run dry meanwhile.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=stalled.measure_ns,
        counterfactual=f"With memory allocated once, before the work repeats, the window would be at most "
        f"{units.time(stalled.measure_ns)} shorter.",
        evidence=[
            Evidence(
                "calls in steady state", n_calls, "count", "calls that allocate or free at once, after startup", rows
            ),
            *_per_step(trace, worst, limits),
            *(Evidence(f"idle inside {name}", ns, "ns", "host-late time inside this call") for name, ns in longest),
            Evidence("bursts of frees", bursts, "count", f"{BURST} or more freeing calls in a row, then an allocation"),
            *_churn(trace, device, startup.steady),
        ],
        refute="Hoist the allocations out of the loop for one run: if the device idles as long, they were not why.",
        next=[
            *([_EMPTIED] if bursts else []),
            "Find the callers with call stacks: nsys profile --cudabacktrace=memory:0 (or a PyTorch memory snapshot: "
            "`torch.cuda.memory._record_memory_history()`).",
            "Allocate before the loop and reuse, or allocate from a pool: cudaMallocAsync with "
            "cudaMemPoolAttrReleaseThreshold, a caching allocator (PyTorch, RMM, CuPy have one).",
        ],
        extent=stalled,
    )


@dataclass(frozen=True, eq=False)
class _Allocating:
    """What a launching thread allocates in steady state."""

    thread: HostThread
    calls: Calls
    idle: Intervals  # of the device, meanwhile

    @property
    def bursts(self) -> int:
        """How often a run of freeing calls is followed by an allocation, as when a cache is emptied to make room."""
        names = np.unique(self.calls.name_id).tolist()
        freeing = [name for name in names if FREEING_CALL.search(self.thread.names[name])]
        is_free = np.isin(self.calls.name_id, freeing).astype(np.int64)
        edges = np.diff(is_free, prepend=0)  # a run that ends before the last call is followed by an allocation
        begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        return int((ends - begins[: len(ends)] >= BURST).sum())


def _allocating_calls(thread: HostThread, within: Intervals) -> Calls:
    names = [i for i in np.unique(thread.calls.name_id).tolist() if ALLOCATING_CALL.match(thread.names[i])]
    calls = thread.calls.select(np.isin(thread.calls.name_id, names))
    return calls.select(within.contains(calls.start_ns))


def _outermost(calls: Calls) -> Calls:
    """Without those inside another one: a call may be recorded at two layers of the library."""
    until_ns = np.maximum.accumulate(calls.end_ns)
    return calls.select(np.append(True, calls.start_ns[1:] >= until_ns[:-1])[: len(calls)])


def _per_step(trace: Trace, allocating: _Allocating, limits: Limits) -> Iterator[Evidence]:
    steps = find_steps(allocating.thread, fewest=limits["fewest_steps"], least_cover=limits["least_cover"])
    if steps is not None:
        at = np.searchsorted(steps.start_ns, allocating.calls.start_ns, side="right") - 1
        inside = (at >= 0) & (allocating.calls.start_ns < steps.end_ns[at])
        median = float(np.median(np.bincount(at[inside], minlength=len(steps))))
        yield Evidence("calls per step", round(median), "count", f"median over the steps '{steps.pattern}'")


def _churn(trace: Trace, device: DeviceTimeline, steady: Intervals) -> Iterator[Evidence]:
    """Freed and allocated again at the same size: a buffer that could have been kept."""
    if not trace.source.has("allocation"):
        return
    start_ns, end_ns = steady.span
    where = {"source": device.source_id, "process": device.process_id, "device": device.device}
    sql = _CHURN.format(**where, start=start_ns, end=end_ns)
    pairs, n_bytes = trace.case.db.execute(sql).fetchone()
    yield Evidence(
        "freed and allocated at one size",
        int(pairs),
        "count",
        "sum over sizes of min(allocs, frees), outside of pools",
        sql,
    )
    yield Evidence("bytes of those", int(n_bytes), "bytes", "size x min(allocs, frees), summed")


_EMPTIED = (
    "The allocator's cache is emptied and filled again (`empty_cache()`, or an allocation that was retried): "
    "see `torch.cuda.memory_stats()['num_alloc_retries']`, keep the cache, or make the working set smaller."
)
_CALLS = (
    "SELECT n.text, a.start_ns, a.end_ns FROM api_call a JOIN name n ON n.id = a.name_id "
    "WHERE a.thread_id = {thread:d} AND a.start_ns >= {start:d} AND a.start_ns < {end:d} "
    "AND (n.text LIKE '%Malloc%' OR n.text LIKE '%Free%' OR n.text LIKE '%Alloc%' OR n.text LIKE 'cuMem%') "
    "AND n.text NOT LIKE '%Async%' ORDER BY a.start_ns"
)
_CHURN = (
    "SELECT TOTAL(pairs), TOTAL(1.0 * pairs * bytes) FROM "
    "(SELECT bytes, MIN(SUM(operation = 'alloc'), SUM(operation = 'free')) AS pairs FROM allocation "
    "WHERE source_id = {source:d} AND process_id = {process:d} AND (device = {device:d} OR device IS NULL) "
    "AND reserved_bytes IS NULL AND time_ns >= {start:d} AND time_ns < {end:d} GROUP BY bytes)"
)


@device_rule("memory.pressure", needs=("allocation",))
def memory_pressure(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """The device's memory is nearly full.

    Asks      How much of the device's memory does the process hold at its peak?
    Decides   Held = what the process' allocator reserved, and its allocations outside of one, added up over time; fires
              at `share` of the device's memory. It is at least that: contexts, other processes and what was allocated
              before the capture are not in it.
    Matters   An allocator that finds no room empties its cache and tries again, which waits for the device, or fails.
              A serving engine that reserves all memory for its cache does so on purpose.
    Do        Leave room (smaller batches, activation checkpointing, a smaller share for the cache), and see that what
              is reserved is in use: the rest is cache or fragments (`expandable_segments:True`).
    Refute    `nvidia-smi --query-gpu=memory.used --format=csv -l 1` during the run shows room left.
    """
    capacity = trace.case.value(_CAPACITY, (device.process_id, device.device))
    if not capacity:
        yield CannotTell(subject_of(device), "how much memory the device has is not in the trace")
        return
    held = memory.load_held(trace.case, device.source_id, device.process_id, device.device)
    peak_bytes = int(held.held_bytes[held.peak]) if len(held) else 0
    share = peak_bytes / capacity
    if share < limits["share"]:
        unseen = "memory was freed that had been allocated before the capture: how much was held is not known"
        yield Clear(subject_of(device)) if held.was_complete else CannotTell(subject_of(device), unseen)
        return
    rows = _EVENTS.format(source=device.source_id, process=device.process_id, device=device.device)
    in_use = int(held.in_use_bytes[held.peak])
    yield Finding(
        title=f"Device memory nearly full: {units.size(peak_bytes)} of {units.size(capacity)}",
        claim=f"At its peak the process holds at least {units.share(share)} of the device's memory.",
        subject=subject_of(device),
        level="info",
        confidence="medium",
        counterfactual="More room wins no time by itself; it keeps the allocator from emptying its cache and failing.",
        evidence=[
            Evidence(
                "held at the peak", peak_bytes, "bytes", "reserved by the allocator + allocated outside of it", rows
            ),
            *([Evidence("of it in use", in_use, "bytes", "as the allocator says")] if in_use != NONE else []),
            Evidence("memory of the device", int(capacity), "bytes", "as the trace describes the device"),
            Evidence("share of the device's memory", share, "share", "held at the peak / memory of the device"),
        ],
        refute="nvidia-smi --query-gpu=memory.used --format=csv -l 1 during the run shows room left.",
        next=[
            "A serving engine that reserves its cache ahead does this on purpose: nothing to do.",
            "Else see what is held: `torch.cuda.memory_summary()`, `torch.cuda.memory._dump_snapshot()`; use smaller "
            "batches or checkpointing; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against fragments.",
        ],
    )


_CAPACITY = """
    SELECT d.memory_bytes FROM process_device p JOIN device d ON d.id = p.device_id
     WHERE p.process_id = ? AND p.ordinal = ?
"""
_EVENTS = (
    "SELECT time_ns, operation, memory, bytes, allocated_bytes, reserved_bytes FROM allocation "
    "WHERE source_id = {source:d} AND process_id = {process:d} AND device = {device:d} ORDER BY time_ns"
)
