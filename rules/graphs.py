"""What CUDA graphs could take over of the launching."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules import pacing, queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.pacing import Launches, too_few
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import FEWEST_OPERATIONS, DeviceTimeline
from diag.timeline.gpu_work import Column
from diag.timeline.host import SYNCHRONISING_CALL
from diag.timeline.intervals import Intervals
from diag.timeline.naming import where_named
from diag.timeline.repeats import in_repeated_stretch, one_number
from diag.timeline.trace import Trace

_BREAKS_CAPTURE = re.compile(
    rf"{SYNCHRONISING_CALL.pattern}|^(cuda|hip)(Malloc|Free|Host(Alloc|Register))(?!.*Async)|^cuMem(Alloc|Free|Host)(?!.*Async)"
)
"""Calls that a capture in its default mode refuses: CUDA Programming Guide, CUDA graphs, prohibited operations."""

MOST_SHOWN = 4


@device_rule("graph.coverage", needs=("api",))
def graph_coverage(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Launches that repeat and could be one CUDA graph.

    Asks      How much of the launching is the same again and again outside CUDA graphs, what would a graph save, and
              what stands in the way of a larger one?
    Decides   A launch repeats if it is part of `sequence` consecutive launches of its thread that occur
              `fewest_repeats` times with the same kernels, grids and kinds of copies. A sequence holds nothing that
              breaks a capture: no call that waits for the device or allocates without a pool, no copy from or to
              pageable memory; and no launch of a graph. Counted are the gaps paced by launching, as in launch.bound
              (`paced_ratio`), that end with such a launch. Fires when they take `share` of the window and
              `repeated_share` of the launches outside graphs repeat. The gaps bound what a graph saves; of it, one
              usual launching call (lower quartile) for each are the calls alone, the rest is what the program and its
              framework do in between.
    Matters   A graph costs one launch for all its nodes, and the device takes the next node without the host.
    Do        Capture the sequence (torch.cuda.graph, torch.compile(mode='reduce-overhead'), cudaStreamBeginCapture).
              Layers of one step repeat too: then the step is what to capture, if the program runs it again. Move out of
              it what breaks a capture. Where shapes change, pad them to a few sizes, one graph each.
    Refute    Replay the same kernels as one graph: if the time per step stays, launching was not the limit.
    """
    launches = pacing.launches_of(device)
    if len(launches) < FEWEST_OPERATIONS:
        yield CannotTell(subject_of(device), too_few(launches))
        return
    paced, _ = pacing.paced_gaps(trace, device, limits["paced_ratio"])
    if device.share(paced) < limits["share"]:
        yield Clear(subject_of(device))
        return
    barriers = _barriers(trace, device, launches)
    grids = trace.details(device.ops, "grid_x", "grid_y", "grid_z")
    repeats = _repeating(device, launches, barriers, grids, limits)
    of_repeated = np.zeros(len(device.calls), bool)
    of_repeated[launches.call[repeats]] = True
    gaps = pacing.ended_by(device, paced, of_repeated)
    n_repeated, n_alone = int(repeats.sum()), int((~launches.is_graph).sum())
    if device.share(gaps) < limits["share"] or n_repeated < limits["repeated_share"] * n_alone:
        yield Clear(subject_of(device))
        return
    n_by_name = int(_repeating(device, launches, barriers, (), limits).sum())
    has_grids = bool((grids[0] != gpu_work.NONE).any())
    yield _finding(device, launches, barriers, _Repeated(gaps, n_repeated, n_by_name, has_grids), limits)


@dataclass(frozen=True, eq=False)
class _Repeated:
    """Launches in sequences that repeat outside graphs."""

    gaps: Intervals  # that end with such a launch
    count: int
    count_by_name: int  # where only grids differ, too
    has_grids: bool


def _finding(
    device: DeviceTimeline, launches: Launches, barriers: _Barriers, repeated: _Repeated, limits: Limits
) -> Finding:
    gaps, share = repeated.gaps, device.share(repeated.gaps)
    calls_ns = min(len(gaps) * launches.usual_call_ns, gaps.measure_ns)
    same = "kernels and grids" if repeated.has_grids else "kernels (no grids were captured)"
    by_name = _sequence(limits, "the same kernels")
    n_of_graphs, graph_rows = int(launches.is_graph.sum()), queries.graph_launches(device)
    return Finding(
        title=f"CUDA graphs could replay {units.share(repeated.count / len(launches))} of the launches",
        claim=f"{repeated.count:,} of {units.count(len(launches), 'launch')} belong to sequences that repeat with the "
        f"same {same}, each launched on its own. The device waits {units.time(gaps.measure_ns)} "
        f"({units.share(share)} of the window) for them: {units.time(calls_ns)} for the calls alone, the rest for what "
        f"the host does in between. {_already(launches)}{_in_the_way(barriers)}",
        subject=subject_of(device),
        share=share,
        recoverable_ns=gaps.measure_ns,
        confidence="medium",
        counterfactual="Captured once and replayed whenever the program runs the same again, the window would be at "
        f"most {units.time(gaps.measure_ns)} shorter. launch.bound counts the same gaps: this does not add to it.",
        evidence=[
            Evidence("gaps before launches that repeat", gaps.measure_ns, "ns", "of the gaps paced by launching"),
            Evidence("launching calls alone", calls_ns, "ns", "min(these gaps, their number x the usual call)"),
            Evidence("launches that repeat", repeated.count, "count", _sequence(limits, f"the same {same}")),
            Evidence("they repeat but for their grids", repeated.count_by_name, "count", by_name),
            Evidence("launches of graphs", n_of_graphs, "count", "cudaGraphLaunch and the like", graph_rows),
            *(
                Evidence(f"breaks a capture: {what}", count, "count", "between launches of the window")
                for what, count in barriers.named.most_common(MOST_SHOWN)
            ),
        ],
        refute="Replay the same kernels as one CUDA graph: if the time per step stays, launching was not the limit.",
        next=[
            "Capture the sequence once and replay it: torch.cuda.graph, torch.compile(mode='reduce-overhead'), or "
            "cudaStreamBeginCapture and cudaGraphLaunch.",
            *([_MOVE.format(", ".join(barriers.named))] if barriers.named else []),
            *([_PAD] if repeated.count_by_name > repeated.count else []),
        ],
        extent=gaps,
    )


@dataclass(frozen=True, eq=False)
class _Barriers:
    """What no capture can reach over."""

    before: NDArray[np.bool_]  # launches that a sequence may not continue to from the one before them
    is_barrier: NDArray[np.bool_]  # launches that cannot be part of a sequence
    named: Counter[str]


def _barriers(trace: Trace, device: DeviceTimeline, launches: Launches) -> _Barriers:
    ops = device.ops.select(launches.op)
    pageable = (ops.kind == gpu_work.COPY) & (
        (ops.src_memory == gpu_work.PAGEABLE) | (ops.dst_memory == gpu_work.PAGEABLE)
    )
    is_barrier = launches.is_graph | pageable
    part = np.searchsorted(device.window.starts_ns, ops.end_ns, side="left")
    before = (np.diff(launches.thread_id, prepend=-1) != 0) | (np.diff(part, prepend=-1) != 0)
    named = Counter({"copies from or to pageable memory": int(pageable.sum())})
    for thread_id in np.unique(launches.thread_id).tolist():
        first, stop = np.searchsorted(launches.thread_id, [thread_id, thread_id + 1])
        starts_ns = launches.start_ns[first:stop]
        calls = trace.threads[thread_id].calls
        breaks = calls.select(where_named(_BREAKS_CAPTURE, calls.name_id, trace.names))
        inside = (breaks.start_ns >= starts_ns[0]) & (breaks.start_ns <= starts_ns[-1])
        breaks = breaks.select(inside)
        named.update(trace.names[name_id] for name_id in breaks.name_id.tolist())
        before[first + np.searchsorted(starts_ns, breaks.start_ns, side="left")] = True
        is_barrier[first:stop] |= np.isin(starts_ns, breaks.start_ns)
    return _Barriers(before, is_barrier, +named)


def _repeating(
    device: DeviceTimeline, launches: Launches, barriers: _Barriers, sizes: Sequence[Column], limits: Limits
) -> NDArray[np.bool_]:
    """Which launches are part of a sequence that occurs often enough."""
    ops = device.ops.select(launches.op)
    what = one_number(
        ops.kind, ops.name_id, ops.copy_kind, ops.src_memory, ops.dst_memory, *(size[launches.op] for size in sizes)
    )
    after_barrier = np.concatenate(([False], barriers.is_barrier[:-1]))
    group = np.cumsum(barriers.before | barriers.is_barrier | after_barrier, dtype=np.int64)
    length, fewest = (max(round(limits[name]), 1) for name in ("sequence", "fewest_repeats"))
    repeats = in_repeated_stretch(what, group, length=length, fewest=fewest)
    return repeats & ~barriers.is_barrier


def _sequence(limits: Limits, of_what: str) -> str:
    return f"in {limits['sequence']:g} consecutive launches of {of_what} that occur {limits['fewest_repeats']:g} times"


def _already(launches: Launches) -> str:
    n_graphs = int(launches.is_graph.sum())
    return f"{units.count(n_graphs, 'launch')} already are of graphs." if n_graphs else "No launch is of a graph."


def _in_the_way(barriers: _Barriers) -> str:
    listed = ", ".join(f"{what} ({count:,})" for what, count in barriers.named.most_common(MOST_SHOWN))
    return f" Between the sequences, these would break a capture: {listed}." if listed else ""


_MOVE = "For larger graphs, move out of the way what breaks a capture: {}."
_PAD = "Some sequences differ in their grids only: pad shapes to a few sizes and keep one graph for each."
