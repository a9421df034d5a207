"""Kernels that are too short, and chains of kernels that could be one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules import families, queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import FEWEST_OPERATIONS, DeviceTimeline
from diag.timeline.gpu_work import NONE
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace

Index = NDArray[np.int64]


@device_rule("kernels.tiny", needs=("api",))
def tiny_kernels(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Kernels that are over before a launch is.

    Asks      Does the work come in kernels that run shorter than it takes to launch them, and does that take time?
    Decides   A kernel is tiny if it takes less time than a usual launching call (lower quartile, so that first
              launches, which load code, do not set it), that being more than two ticks of the source. Fires when
              `launches` of the kernels are tiny, and they, with what the device idles right before each, up to the
              length of a call, take `share` of the window. Graph launches, whose call launches many, and communication
              do not count.
    Matters   A host cannot launch faster than it calls: work in such pieces leaves the device waiting, or needs a host
              that does nothing else.
    Do        Fuse (torch.compile, fused optimisers, foreach variants), batch more work into each launch, or replay the
              sequence as a CUDA graph.
    Refute    Calls take longer under a profiler that traces them: with a lighter capture (without backtraces, CPU
              samples or `record_shapes`) the kernels are longer than their calls.
    """
    judged = _launched_alone(device)
    calls = device.launch[judged]
    call_ns = int(np.percentile(device.calls.end_ns[calls] - device.calls.start_ns[calls], 25)) if len(calls) else 0
    n_judged = len(calls)
    if n_judged < FEWEST_OPERATIONS or call_ns <= 2 * trace.tick_ns:
        yield CannotTell(subject_of(device), _UNTOLD.format(n=n_judged, call=units.time(call_ns)))
        return
    tiny = judged & (device.ops.duration_ns < call_ns)
    n_tiny = int(tiny.sum())
    time = _with_launches(device, tiny, call_ns)
    share = device.share(time)
    if n_tiny < limits["launches"] * n_judged or share < limits["share"]:
        yield Clear(subject_of(device))
        return
    kernel_ns = int(np.median(device.ops.duration_ns[tiny]))
    alone_ns = device.time_of(tiny).measure_ns
    sql = _KERNELS_AND_CALLS.format(source=device.source_id, process=device.process_id, device=device.device)
    yield Finding(
        title=f"Tiny kernels: {units.share(n_tiny / n_judged)} of them run shorter than a launching call",
        claim=f"{n_tiny:,} of {n_judged:,} kernels take less time than a usual launching call: "
        f"{units.time(kernel_ns)} (median) against {units.time(call_ns)}. With what the device idles right before "
        f"them, they take {units.share(share)} of the window.",
        subject=subject_of(device),
        share=share,
        level="info",
        counterfactual="What the launches cost in this run, the rules on idle time say.",
        evidence=[
            Evidence("tiny kernels", n_tiny, "count", "duration < usual launching call", sql),
            Evidence("kernels with a call of their own", n_judged, "count", "calls that launched one operation", sql),
            Evidence("usual launching call", call_ns, "ns", "lower quartile of its duration", sql),
            Evidence("tiny kernel", kernel_ns, "ns", "median duration", sql),
            Evidence("time of tiny kernels", alone_ns, "ns", "union, cut to the window"),
            Evidence("with idle time before them", time.measure_ns, "ns", "idle before each, up to a launching call"),
        ],
        refute="Capture with less detail: if the calls then take less time than the kernels, the profiler slowed them.",
        next=[
            "Fuse: torch.compile, fused or foreach optimisers; or batch more work into each launch.",
            'Replay the sequence as a CUDA graph: torch.cuda.graph, or torch.compile(mode="reduce-overhead").',
        ],
        extent=time,
    )


_UNTOLD = "few launching calls ({n}), or calls as short as a tick ({call})"


def _launched_alone(device: DeviceTimeline) -> NDArray[np.bool_]:
    """For each operation, whether it is a kernel that its launching call launched alone."""
    launched = device.launch != NONE
    n_launched = np.bincount(device.launch[launched], minlength=len(device.calls))
    alone = launched & (device.ops.kind == gpu_work.KERNEL) & ~device.is_communication
    alone[alone] = n_launched[device.launch[alone]] == 1
    return np.asarray(alone)


def _with_launches(device: DeviceTimeline, tiny: NDArray[np.bool_], call_ns: int) -> Intervals:
    """The time of some operations and of the idle time right before each, up to the length of a launching call."""
    starts_ns, ends_ns = device.ops.start_ns, device.ops.end_ns
    busy_until_ns = np.concatenate((starts_ns[:1], np.maximum.accumulate(ends_ns)[:-1]))
    idle_ns = np.clip(starts_ns - busy_until_ns, 0, call_ns)
    return Intervals.union_of((starts_ns - idle_ns)[tiny], ends_ns[tiny]) & device.window


_KERNELS_AND_CALLS = (
    "SELECT g.name_id, g.end_ns - g.start_ns AS kernel_ns, a.end_ns - a.start_ns AS call_ns FROM gpu_op g "
    "JOIN api_call a ON a.correlation = g.correlation "
    "JOIN thread t ON t.id = a.thread_id AND t.process_id = g.process_id "
    "WHERE g.source_id = {source:d} AND a.source_id = {source:d} AND g.process_id = {process:d} "
    "AND g.device = {device:d} AND g.kind = 'kernel' ORDER BY g.start_ns"
)


@device_rule("kernels.fusion")
def fusion_chances(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Chains of elementwise kernels that could be one.

    Asks      How much time goes to elementwise kernels, reductions, copies and fills that follow each other on a
              stream, so that a compiler could make one kernel of them?
    Decides   A chain are two or more such kernels (by name, rules/kernel_families.toml) in a row on one stream, each
              starting no later after the one before it than `gap_ratio` x the longer of both. If one kernel did the
              work of a chain in the time of its longest member, the time of the others would be won; fires when that
              is `share` of the window. Kernels that a compiler fused already (triton_, nvfuser_) end a chain.
    Matters   Each kernel of a chain reads from and writes to device memory what the next one reads again; fused, the
              values stay in registers, and the launches between vanish.
    Do        torch.compile, jit-compiled or fused variants (fused optimisers, foreach), or a kernel of your own.
    Refute    The members work on different tensors, or the compiled version takes as long: then nothing but launches
              can be saved.
    """
    is_member = families.is_of(device, "elementwise")
    if device.share(device.time_of(is_member)) < limits["share"]:
        yield Clear(subject_of(device))
        return
    chains = _chains(device, is_member, limits["gap_ratio"])
    share = device.share(chains.won_ns)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    time = device.time_of(chains.is_member)
    pattern = chains.most_costly(device)
    names = sorted(np.unique(device.ops.name_id[chains.is_member]).tolist())
    listed = ", ".join(f"{name_id:d}" for name_id in names)
    sql = queries.operations(device, "stream, name_id, start_ns, end_ns", "kind = 'kernel'", f"name_id IN ({listed})")
    yield Finding(
        title=f"Fusion chances: {units.count(len(chains), 'chain')} of elementwise kernels",
        claim=f"{units.count(chains.n_kernels, 'elementwise kernel')} follow each other in "
        f"{units.count(len(chains), 'chain')} on one stream; they take {units.time(time.measure_ns)} "
        f"({units.share(device.share(time))} of the window). The costliest chain occurs "
        f"{units.count(pattern.count, 'time')}: {pattern.names}. That each feeds the next, a timeline does not show.",
        subject=subject_of(device),
        share=share,
        recoverable_ns=chains.won_ns,
        level="warning" if share >= 0.02 else None,
        confidence="low",
        counterfactual="If one kernel did the work of each chain in the time of its longest member, the window would "
        f"be at most {units.time(chains.won_ns)} shorter.",
        evidence=[
            Evidence("chains", len(chains), "count", "runs of elementwise kernels on one stream", sql),
            Evidence("kernels in chains", chains.n_kernels, "count", "their members", sql),
            Evidence("time of the chains", time.measure_ns, "ns", "union of the members, cut to the window", sql),
            Evidence("won by fusion at most", chains.won_ns, "ns", "members without the longest of each chain"),
            Evidence("longest chain", chains.longest, "count", "members"),
            Evidence("costliest chain", pattern.names, "text", "by the time won over all its occurrences"),
            Evidence("occurs", pattern.count, "count", "chains of exactly these kernels"),
        ],
        refute="Compile the model (torch.compile): if these kernels take as long in one, there was nothing to fuse.",
        next=[
            "torch.compile the module or function that launches this chain; the operators above it are in the ranges.",
            "For an optimiser step: fused=True or foreach=True.",
        ],
        extent=time,
    )


@dataclass(frozen=True)
class Pattern:
    names: str
    count: int


@dataclass(frozen=True, eq=False)
class Chains:
    """Runs of kernels in parallel arrays; members of chain i are `members[first[i]:first[i] + length[i]]`."""

    members: Index  # positions in the device's operations
    first: Index
    length: Index
    won: Index  # ns by chain: the members without the longest
    union_ns: int
    is_member: NDArray[np.bool_]  # of each operation of the device

    def __len__(self) -> int:
        return len(self.first)

    @property
    def n_kernels(self) -> int:
        return len(self.members)

    @property
    def won_ns(self) -> int:
        """Chains on several streams may overlap: never more than the time that they take."""
        return min(int(self.won.sum()), self.union_ns)

    @property
    def longest(self) -> int:
        return int(self.length.max())

    def most_costly(self, device: DeviceTimeline) -> Pattern:
        """The sequence of kernels by whose chains most time would be won."""
        signatures, at, of = np.unique(self._signatures(device), return_index=True, return_inverse=True)
        best = int(np.argmax(np.bincount(of, self.won, len(signatures))))
        start = int(self.first[at[best]])
        members = self.members[start : start + int(self.length[at[best]])]
        names = [families.operation(device.names.get(i, "?")) for i in device.ops.name_id[members].tolist()]
        return Pattern(_abridged(names), int((of == best).sum()))

    def _signatures(self, device: DeviceTimeline) -> NDArray[np.uint64]:
        """A polynomial of the names of each chain, modulo 2^64: equal sequences have equal ones."""
        place = np.arange(len(self.members)) - np.repeat(self.first, self.length)
        powers = np.multiply.accumulate(np.full(self.longest, _ODD, np.uint64))
        return np.add.reduceat((device.ops.name_id[self.members] + 2).astype(np.uint64) * powers[place], self.first)


_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: a multiplier that spreads small integers over all bits (Knuth, TAOCP 6.4)."""


def _chains(device: DeviceTimeline, is_member: NDArray[np.bool_], gap_ratio: float) -> Chains:
    """The chains of a device. Each operation's neighbours are those on its own stream."""
    order = np.argsort(device.ops.stream, kind="stable")
    starts_ns, ends_ns = device.ops.start_ns[order], device.ops.end_ns[order]
    took_ns = ends_ns - starts_ns
    gap_ns = starts_ns[1:] - ends_ns[:-1]
    inside = is_member[order]
    follows = inside[1:] & inside[:-1] & (np.diff(device.ops.stream[order]) == 0)
    follows &= gap_ns <= gap_ratio * np.maximum(took_ns[1:], took_ns[:-1])
    in_chain = np.concatenate((follows, [False])) | np.concatenate(([False], follows))
    begins = in_chain & ~np.concatenate(([False], follows))
    members = order[in_chain]
    first = np.flatnonzero(begins[in_chain])
    length = np.diff(np.append(first, len(members)))
    inside_ns = device.window.measure_within(device.ops.start_ns[members], device.ops.end_ns[members])
    won = np.add.reduceat(inside_ns, first) - np.maximum.reduceat(inside_ns, first) if len(first) else np.empty(0, int)
    chosen = np.zeros(len(device.ops), bool)
    chosen[members] = True
    return Chains(members, first, length, won, device.time_of(chosen).measure_ns, chosen)


MOST_NAMES = 6


def _abridged(names: list[str]) -> str:
    """Names in a row, repetitions counted, no more than a reader takes in."""
    runs: list[tuple[str, int]] = []
    for name in names:
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + 1)
        else:
            runs.append((name, 1))
    shown = [f"{count} x {name}" if count > 1 else name for name, count in runs[:MOST_NAMES]]
    return " → ".join(shown + ([f"{len(runs) - MOST_NAMES} more"] if len(runs) > MOST_NAMES else []))
