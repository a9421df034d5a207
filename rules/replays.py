"""Replays of CUDA graphs: the time that they lose, and what of them is padding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from diag.model import units
from diag.rules import pacing, queries
from diag.rules.engine import device_rule, subject_of
from diag.rules.facts import FACTS
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding
from diag.rules.thresholds import Limits
from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import Column
from diag.timeline.graphs import MAKES_INSTANCE, Replays, calls_of_graphs, find_replays
from diag.timeline.host import HostThread
from diag.timeline.intervals import Intervals
from diag.timeline.naming import where_named
from diag.timeline.ranges import OPEN_NS
from diag.timeline.trace import Trace


@device_rule("graph.replay", needs=("api",))
def graph_replay(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Replays of CUDA graphs that leave the device idle.

    Asks      Do replays of CUDA graphs keep the device busy, or does it idle between their nodes, before a replay that
              is too small to hide its own launch, or while a graph is made again?
    Decides   A replay is what one graph launch ran, from the first node's start to the last one's end. Three losses are
              measured: time inside replays in which the device does nothing; gaps paced by launching (as in
              launch.bound, `paced_ratio`) that end with a replay; in steady state host-late time inside
              cudaGraphInstantiate or cudaGraphExecUpdate. Fires for the largest when it takes `share` of the window.
    Matters   A graph removes the launches of its nodes; what is left is the pace of nodes and one launch per replay.
    Do        Fuse small nodes or give them more work; put more work, or several steps, into one graph; make graphs
              ahead, one for each shape, and keep them.
    Refute    Tracing node by node takes time itself: capture with `--cuda-graph-trace=graph`. If a replay is then as
              much shorter as its gaps were long, the profiler made them.
    """
    if not calls_of_graphs(device).any():
        yield Clear(subject_of(device))
        return
    replays = find_replays(device)
    if device.count(gpu_work.GRAPH):
        yield CannotTell(subject_of(device), _ONE_ROW)
    losses = [
        _between_nodes(device, replays),
        _before_replays(trace, device, replays, limits["paced_ratio"]),
        _making_again(trace, device),
    ]
    worst = max(losses, key=lambda loss: loss.time.measure_ns)
    share = device.share(worst.time)
    if share < limits["share"]:
        yield Clear(subject_of(device))
        return
    span_ns = replays.end_ns - replays.start_ns
    calls = device.calls.select(replays.call)
    yield Finding(
        title=worst.title,
        claim=f"{worst.claim} They take {units.time(worst.time.measure_ns)} ({units.share(share)} of the window).",
        subject=subject_of(device),
        share=share,
        recoverable_ns=worst.time.measure_ns,
        confidence="medium",
        counterfactual=f"Without them the window would be at most {units.time(worst.time.measure_ns)} shorter.",
        evidence=[
            *(Evidence(loss.label, loss.time.measure_ns, "ns", loss.formula) for loss in losses),
            Evidence(
                "replays", len(replays), "count", "graph launches wholly in the window", queries.graph_launches(device)
            ),
            *(
                [
                    Evidence(
                        "replay", int(np.median(span_ns)), "ns", "median from first node's start to last one's end"
                    ),
                    Evidence("nodes of a replay", int(np.median(replays.n_rows)), "count", "median number of rows"),
                    Evidence("launching call", int(np.median(calls.end_ns - calls.start_ns)), "ns", "median duration"),
                ]
                if len(replays)
                else []
            ),
        ],
        refute=worst.refute,
        next=[worst.next],
        extent=worst.time,
    )


@dataclass(frozen=True, eq=False)
class _Loss:
    """Idle time that replays cause in one way, in words."""

    time: Intervals
    label: str
    formula: str
    title: str
    claim: str
    next: str
    refute: str


def _between_nodes(device: DeviceTimeline, replays: Replays) -> _Loss:
    several = replays.select(replays.n_rows > 1)
    gaps = (several.time & device.window) - device.busy - device.others
    return _Loss(
        time=gaps,
        label="gaps between nodes",
        formula="union of replays of several rows - union of all work",
        title="Gaps between the nodes of replayed CUDA graphs",
        claim=f"Inside {units.count(len(several), 'replay')} the device does nothing in "
        f"{units.count(len(gaps), 'gap')} between nodes.",
        next="Fuse small nodes or give each more work; take edges out of the graph that the data does not need.",
        refute="Capture with --cuda-graph-trace=graph: if a replay is as much shorter as its gaps were long, "
        "tracing each node made them.",
    )


def _before_replays(trace: Trace, device: DeviceTimeline, replays: Replays, paced_ratio: float) -> _Loss:
    launches = np.zeros(len(device.calls), bool)
    launches[replays.call] = True
    gaps = pacing.ended_by(device, pacing.paced_gaps(trace, device, paced_ratio)[0], launches)
    return _Loss(
        time=gaps,
        label="gaps before replays",
        formula="gaps paced by launching whose next operation is a replay's first",
        title="CUDA graphs too small to hide their own launches",
        claim=f"{units.count(len(gaps), 'short gap')} end when the next replay has been launched "
        "(launch.bound counts the same gaps).",
        next="Put more of the work, or several steps, into one graph, and launch the next replay before this one ends.",
        refute="Launch two replays ahead: if the gaps stay, they were not for launching.",
    )


def _making_again(trace: Trace, device: DeviceTimeline) -> _Loss:
    making = Intervals.empty()
    n_calls = 0
    for thread_id, late in trace.idle_of(device).host_late_of.items():
        calls = trace.threads[thread_id].calls
        calls = calls.select(where_named(MAKES_INSTANCE, calls.name_id, trace.names))
        waited = late & Intervals.union_of(calls.start_ns, calls.end_ns) & trace.startup_of(device).steady
        n_calls += int((waited.measure_within(calls.start_ns, calls.end_ns) > 0).sum())
        making = making | waited
    return _Loss(
        time=making,
        label="making graphs in steady state",
        formula="host-late time inside cudaGraphInstantiate or cudaGraphExecUpdate after startup",
        title="CUDA graphs are made again in steady state",
        claim=f"The device waits for {units.count(n_calls, 'call')} that instantiate or update graphs, after startup "
        "(load.steady counts the same time).",
        next="Make the graphs ahead, one for each shape, and keep them; update one (cudaGraphExecUpdate) rather than "
        "instantiate it again.",
        refute="Keep the instances for one run: if the device idles as long, something else kept the host.",
    )


_ONE_ROW = "gaps between the nodes of graphs: launches are one row each (nsys profile --cuda-graph-trace=node)"


# ---- padding -------------------------------------------------------------------------------------------------------


@device_rule("graph.padding", needs=("api",))
def graph_padding(trace: Trace, device: DeviceTimeline, limits: Limits) -> Iterator[Answer]:
    """Replays of CUDA graphs that were captured for larger batches.

    Asks      How much of what replayed graphs compute is padding?
    Decides   The innermost range around a graph launch that tells a size in its name (vLLM: `execute_32_context_...` or
              `execute_context_0(0)_generation_64(64)`) gives the real size of the replay. A graph, told by the ids of
              its nodes or its own, was captured for the largest size that it was replayed for, at least. Padding is
              1 - sum(real sizes) / sum(sizes captured), a lower bound; fires at `share`.
    Matters   A graph has fixed shapes: a batch that is smaller than its graph pays for all of it.
    Do        Capture more sizes, or let the scheduler fill batches up to the captured ones.
    Refute    Capture a graph for exactly this size: if a replay takes as long, padding cost nothing.
    """
    if not calls_of_graphs(device).any():
        yield Clear(subject_of(device))
        return
    if not FACTS["range"].is_captured(trace):
        yield CannotTell(subject_of(device), FACTS["range"].why_not(trace))
        return
    ids = trace.details(device.ops, "graph_node", "graph", "graph_exec")
    replays = find_replays(device, *ids)
    sizes = _sizes_told(trace, device, replays)
    real, captured = _slots(sizes[sizes > 0], replays.graph[sizes > 0])
    has_ids = any((column != gpu_work.NONE).any() for column in ids)
    if not has_ids or not (real < captured).any():
        yield CannotTell(subject_of(device), _NO_SIZE if not len(real) else _ONE_SIZE if has_ids else _NO_ID)
        return
    padding = 1.0 - int(real.sum()) / int(captured.sum())
    if padding < limits["share"]:
        yield Clear(subject_of(device))
        return
    yield Finding(
        title=f"At least {units.share(padding)} of what replayed CUDA graphs compute is padding",
        claim=f"{units.count(len(real), 'replay')} of known size had {int(real.sum()):,} real slots. By the largest "
        f"size that each graph was replayed for, they computed {int(captured.sum()):,} at least.",
        subject=subject_of(device),
        level="info",
        confidence="medium",
        counterfactual="What the replays would take without padding is not in the trace: work that reads all weights "
        "anyway may hardly be shorter.",
        evidence=[
            Evidence("padding, at least", padding, "share", "1 - real slots / slots captured"),
            Evidence("real slots", int(real.sum()), "count", "sum of the sizes that ranges around launches tell"),
            Evidence("slots captured, at least", int(captured.sum()), "count", "sum of the largest size of each graph"),
            Evidence(
                "replays of known size",
                len(real),
                "count",
                "of those wholly in the window",
                queries.graph_launches(device),
            ),
        ],
        refute="Capture a graph for exactly this size: if a replay takes as long, padding cost nothing.",
        next=["Capture graphs for more sizes, or let the scheduler fill batches up to the captured ones."],
    )


def _slots(real: Column, graph: Column) -> tuple[Column, Column]:
    """The real size of each replay, and the largest one of its graph."""
    _, index = np.unique(graph, return_inverse=True)
    largest = np.zeros(len(real), np.int64)
    np.maximum.at(largest, index, real)
    return real, largest[index]


def _sizes_told(trace: Trace, device: DeviceTimeline, replays: Replays) -> Column:
    """The size that the innermost telling range around each replay's launch gives, or 0."""
    sizes = np.zeros(len(replays), np.int64)
    threads, start_ns = device.calls.thread_id[replays.call], device.calls.start_ns[replays.call]
    for thread_id in np.unique(threads).tolist():
        mine = threads == thread_id
        sizes[mine] = _size_at(trace, trace.threads[thread_id], start_ns[mine])
    return sizes


def _size_at(trace: Trace, thread: HostThread, times_ns: Column) -> Column:
    used = np.unique(thread.ranges.name_id)
    size_of = np.array([_size_in(trace.names[name_id]) for name_id in used.tolist()], np.int64)
    size = size_of[np.searchsorted(used, thread.ranges.name_id)]
    telling = thread.ranges.select((size > 0) & (thread.ranges.end_ns != OPEN_NS))
    if not len(telling):
        return np.zeros(len(times_ns), np.int64)
    at = np.maximum(np.searchsorted(telling.start_ns, times_ns, side="right") - 1, 0)
    inside = (telling.start_ns[at] <= times_ns) & (times_ns < telling.end_ns[at])
    return np.where(inside, size_of[np.searchsorted(used, telling.name_id[at])], 0)


def _size_in(name: str) -> int:
    told = next(filter(None, (pattern.match(name) for pattern in _SIZES)), None)
    return sum(int(number) for number in told.groups()) if told else 0


_SIZES = (
    re.compile(r"execute_(\d{1,9})_context_"),
    re.compile(r"execute_context_\d+\((\d{1,9})\)_generation_\d+\((\d{1,9})\)"),
)
"""Names in which vLLM's model runner tells the tokens of a step: all of them, or those of prefill and of decode."""

_SIZE_NEEDED = "the size that a graph was captured for is in no timeline, and"
_NO_SIZE = f"{_SIZE_NEEDED} no range around its launches tells the real size (vLLM's execute_... annotations do)"
_ONE_SIZE = f"{_SIZE_NEEDED} no graph was replayed for several sizes"
_NO_ID = f"{_SIZE_NEEDED} which graph a launch replays is not in the trace"
