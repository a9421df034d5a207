"""Work that CUDA graphs ran: each replay of a graph, from its first node to its last.

A launch of a graph is seen in one of three ways: each node is a row that leads to the launching call, the whole
launch is one row of kind 'graph', or nothing was recorded of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline
from diag.timeline.gpu_work import Calls, Column
from diag.timeline.intervals import Intervals, Times

GRAPH_LAUNCH = re.compile(r"^(cuda|cu|hip)GraphLaunch")
_BEGIN_CAPTURE = re.compile(r"^(cuda|cu|hip)StreamBeginCapture")
_END_CAPTURE = re.compile(r"^(cuda|cu|hip)StreamEndCapture")


@dataclass(frozen=True, eq=False)
class Replays:
    """Launches of graphs of which rows were recorded, in parallel arrays by thread and start of the call."""

    call: Column  # index into the device's calls
    start_ns: Times  # of the first node
    end_ns: Times  # of the last one
    n_rows: Column  # 1 where the whole launch is one row
    kind_of_graph: Column  # equal for replays of the same nodes: which, how many, with which grids

    def __len__(self) -> int:
        return len(self.call)

    def select(self, selection: NDArray[np.bool_]) -> Replays:
        return Replays(
            self.call[selection],
            self.start_ns[selection],
            self.end_ns[selection],
            self.n_rows[selection],
            self.kind_of_graph[selection],
        )

    @property
    def time(self) -> Intervals:
        return Intervals.union_of(self.start_ns, self.end_ns)


def calls_of_graphs(device: DeviceTimeline) -> NDArray[np.bool_]:
    """Which of the calls of the device's process launch a graph."""
    return device.calls.named(GRAPH_LAUNCH, device.names)


def ops_of_graphs(device: DeviceTimeline, node: Column) -> NDArray[np.bool_]:
    """Which of the device's operations a graph ran, by its launching call or its node (`gpu_op.graph_node`)."""
    launched = np.append(calls_of_graphs(device), False)[device.launch]  # NONE is the last one
    return np.asarray(launched | (node != gpu_work.NONE) | (device.ops.kind == gpu_work.GRAPH))


def find_replays(device: DeviceTimeline, *sizes: Column) -> Replays:
    """Replays in the window, in parts of a trace only those that it holds whole. `sizes` tell the nodes' work."""
    of_graph = np.flatnonzero(np.append(calls_of_graphs(device), False)[device.launch])
    order = of_graph[np.argsort(device.launch[of_graph], kind="stable")]  # operations stay in order of their start
    call, first, n_rows = np.unique(device.launch[order], return_index=True, return_counts=True)
    if not len(call):
        return Replays(*(np.empty(0, np.int64) for _ in range(5)))
    node = _mixed(device.ops.name_id[order].astype(np.int64), *(size[order] for size in sizes))
    replays = Replays(
        call=call,
        start_ns=device.ops.start_ns[order][first],
        end_ns=np.maximum.reduceat(device.ops.end_ns[order], first),
        n_rows=n_rows,
        kind_of_graph=np.add.reduceat(node, first).astype(np.int64),  # nodes of branches may come in any order
    )
    whole = device.window.measure_within(replays.start_ns, replays.end_ns) == replays.end_ns - replays.start_ns
    return replays.select(whole)


def _mixed(*columns: Column) -> NDArray[np.uint64]:
    """A number for each row that differs, but for a chance of 2^-64, where the columns do."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed


def capturing(calls: Calls, names: Mapping[int, str]) -> Intervals:
    """When a thread records its work into a graph in place of launching it, from the calls of that thread."""
    begin = calls.start_ns[calls.named(_BEGIN_CAPTURE, names)]
    end = calls.end_ns[calls.named(_END_CAPTURE, names)]
    ended_by = np.searchsorted(end, begin)
    ended = ended_by < len(end)
    return Intervals.union_of(begin[ended], end[ended_by[ended]])
