"""Work that CUDA graphs ran: each replay of a graph, from its first node to its last.

A launch of a graph is seen in one of three ways: each node is a row that leads to the launching call, the whole
launch is one row of kind 'graph', or nothing was recorded of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.store.case import Case
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import NONE, Calls, Column, GpuOps
from diag.timeline.intervals import Intervals, Times
from diag.timeline.naming import where_named
from diag.timeline.repeats import one_number

GRAPH_LAUNCH = re.compile(r"^(cuda|cu|hip)GraphLaunch")
MAKES_INSTANCE = re.compile(r"^(cuda|cu|hip)Graph(Instantiate|ExecUpdate)")
_BEGIN_CAPTURE = re.compile(r"^(cuda|cu|hip)StreamBeginCapture")
_END_CAPTURE = re.compile(r"^(cuda|cu|hip)StreamEndCapture")


@dataclass(frozen=True, eq=False)
class Replays:
    """Launches of graphs of which rows were recorded, in parallel arrays by thread and start of the call."""

    call: Column  # index into the device's calls
    start_ns: Times  # of the first node
    end_ns: Times  # of the last one
    n_rows: Column  # 1 where the whole launch is one row
    graph: Column  # equal for replays of the same graph, where the trace tells ids

    def __len__(self) -> int:
        return len(self.call)

    def select(self, selection: NDArray[np.bool_]) -> Replays:
        return Replays(
            self.call[selection],
            self.start_ns[selection],
            self.end_ns[selection],
            self.n_rows[selection],
            self.graph[selection],
        )

    @property
    def time(self) -> Intervals:
        return Intervals.union_of(self.start_ns, self.end_ns)


def calls_of_graphs(device: DeviceTimeline) -> NDArray[np.bool_]:
    """Which of the calls of the device's process launch a graph."""
    return where_named(GRAPH_LAUNCH, device.calls.name_id, device.names)


def find_replays(device: DeviceTimeline, *ids: Column) -> Replays:
    """Replays in the window, of which it holds the whole. `ids` tell the nodes of one graph from those of others."""
    of_graph = np.flatnonzero(np.append(calls_of_graphs(device), False)[device.launch])  # NONE is the last one
    order = of_graph[np.argsort(device.launch[of_graph], kind="stable")]  # operations stay in order of their start
    call, first, n_rows = np.unique(device.launch[order], return_index=True, return_counts=True)
    if not len(call):
        return Replays(*(np.empty(0, np.int64) for _ in range(5)))
    node = one_number(*(column[order] for column in ids)) if ids else np.zeros(len(order), np.uint64)
    replays = Replays(
        call=call,
        start_ns=device.ops.start_ns[order][first],
        end_ns=np.maximum.reduceat(device.ops.end_ns[order], first),
        n_rows=n_rows,
        graph=np.add.reduceat(node, first).view(np.int64),  # a sum, as nodes of branches may come in any order
    )
    whole = device.window.measure_within(replays.start_ns, replays.end_ns) == replays.end_ns - replays.start_ns
    return replays.select(whole)


def capturing(calls: Calls, names: Mapping[int, str]) -> Intervals:
    """When a thread records its work into a graph in place of launching it, from the calls of that thread."""
    begin = calls.start_ns[where_named(_BEGIN_CAPTURE, calls.name_id, names)]
    end = calls.end_ns[where_named(_END_CAPTURE, calls.name_id, names)]
    ended_by = np.searchsorted(end, begin)
    ended = ended_by < len(end)
    return Intervals.union_of(begin[ended], end[ended_by[ended]])


def unrecorded_launches(case: Case, calls: Calls, ops: Iterable[GpuOps]) -> Calls:
    """Those of a process' calls that launched a graph of which none of its operations was recorded, on any device.

    Not those that failed or that put their graph into another one that is being captured, for they ran nothing.
    """
    launches = calls.select(where_named(GRAPH_LAUNCH, calls.name_id, case.names) & (calls.correlation != NONE))
    if not len(launches):
        return launches
    failed = [number for (number,) in case.db.execute(_FAILED_CALLS, (int(launches.process_id[0]),))]
    known = np.concatenate([np.array(failed, np.int64), *(part.correlation for part in ops)])
    launches = launches.select(~np.isin(launches.correlation, known))
    for thread_id in np.unique(launches.thread_id).tolist():
        captured = capturing(calls.select(calls.thread_id == thread_id), case.names).contains(launches.start_ns)
        launches = launches.select(~(captured & (launches.thread_id == thread_id)))
    _, first = np.unique(launches.correlation, return_index=True)  # of nested calls of one launch the outermost
    return launches.select(np.sort(first))


_FAILED_CALLS = """
    SELECT a.correlation
      FROM api_call a JOIN thread t ON t.id = a.thread_id
     WHERE t.process_id = ? AND a.status <> 0 AND a.correlation IS NOT NULL
"""
