"""Ranges and operators as a call tree: what each place in it took on the host, and what it launched on each device.

A *node* is all ranges of one name pattern below the same chain of enclosing patterns. GPU time is the union of the
operations that were launched inside, by the thread of the range; self time leaves out what is inside a child.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.timeline import gpu_work, nesting
from diag.timeline.device import DeviceTimeline
from diag.timeline.host import HostThread
from diag.timeline.intervals import measure_by_label
from diag.timeline.ranges import OPEN_NS

Index = NDArray[np.int64]

DEEPEST = 200
"""Nodes. A file that claims deeper nesting is cut there: what lies below counts to the node above it."""


@dataclass(frozen=True)
class GpuTime:
    """Of one device; ordinals are those of the thread's process."""

    device: int
    total_ns: int  # union of all that was launched inside
    self_ns: int  # union of what was launched inside, but in no child
    sum_ns: int  # of the durations of all that was launched inside
    operations: int


@dataclass(frozen=True)
class Node:
    name: str  # pattern
    count: int
    host_ns: int
    host_self_ns: int
    gpu: Sequence[GpuTime]
    children: Sequence[Node]

    @cached_property
    def gpu_ns(self) -> int:
        """The longest union of any one device: devices work side by side, so that a sum would be no time."""
        return max((each.total_ns for each in self.gpu), default=0)

    @cached_property
    def gpu_self_ns(self) -> int:
        return max((each.self_ns for each in self.gpu), default=0)


def call_tree(thread: HostThread, devices: Sequence[DeviceTimeline]) -> Sequence[Node]:
    """The outermost nodes of a thread with all below them, the most GPU time first, then the most host time.

    `devices` are those of the thread's process. A range that the end of the capture left open has no known time.
    """
    places = _places(thread)
    gpu = [_gpu_times(thread, places, device) for device in devices]
    durations_ns = np.where(thread.ranges.end_ns == OPEN_NS, 0, thread.ranges.end_ns - thread.ranges.start_ns)
    n = len(places.parent)
    count = np.bincount(places.node, minlength=n)
    host_ns = np.bincount(places.node, durations_ns, n)
    self_ns = np.bincount(places.node, nesting.self_times_ns(durations_ns, thread.parents), n)
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(places.parent.tolist()):
        children.setdefault(parent, []).append(node)

    def made(node: int) -> Node:
        return Node(
            name=thread.range_patterns[places.label[node]],
            count=int(count[node]),
            host_ns=int(host_ns[node]),
            host_self_ns=int(self_ns[node]),
            gpu=[times[node] for times in gpu if node in times],
            children=ordered(children.get(node, [])),
        )

    def ordered(nodes: Sequence[int]) -> Sequence[Node]:
        return sorted(map(made, nodes), key=lambda node: (-node.gpu_ns, -node.host_ns, node.name))

    return ordered(children.get(-1, []))


@dataclass(frozen=True, eq=False)
class _Places:
    """The nodes of a tree in parallel arrays, parents before children, and the node of each range."""

    node: Index  # of each range
    parent: Index  # of each node, or -1
    label: Index  # of each node
    depth: Index  # of each node


def _places(thread: HostThread) -> _Places:
    """Level by level: the node of a range follows from its parent's node and its own label."""
    labels, parents = thread.range_labels, thread.parents
    n_labels = max(len(thread.range_patterns), 1)
    node = np.full(len(labels), -1, np.int64)
    parent, label, depth = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    level, made, at = 0, 0, np.flatnonzero(parents < 0)
    remaining = np.flatnonzero(parents >= 0)
    while len(at):
        above = np.where(parents[at] >= 0, node[parents[at]], -1)
        keys, numbers = np.unique((above + 1) * n_labels + labels[at], return_inverse=True)
        node[at] = made + numbers
        parent.append(keys // n_labels - 1)
        label.append(keys % n_labels)
        depth.append(np.full(len(keys), level))
        level, made = level + 1, made + len(keys)
        is_next = node[parents[remaining]] >= 0
        at, remaining = remaining[is_next], remaining[~is_next]
        if level == DEEPEST:
            _count_to_parents(node, parents, np.sort(np.concatenate((at, remaining))))
            break
    return _Places(node, np.concatenate(parent), np.concatenate(label), np.concatenate(depth))


def _count_to_parents(node: Index, parents: Index, deeper: Index) -> None:
    for at in deeper.tolist():  # parents stand before what they enclose
        node[at] = node[parents[at]]


def _gpu_times(thread: HostThread, places: _Places, device: DeviceTimeline) -> dict[int, GpuTime]:
    """By node, what the thread launched on the device inside it."""
    ops = np.flatnonzero(device.launch != gpu_work.NONE)
    ops = ops[device.calls.thread_id[device.launch[ops]] == thread.thread_id]
    launch_ns = device.calls.start_ns[device.launch[ops]]
    innermost = nesting.innermost_at(launch_ns, thread.ranges.start_ns, thread.ranges.end_ns, thread.parents)
    ops, at = ops[innermost >= 0], places.node[innermost[innermost >= 0]]
    start_ns, end_ns = device.ops.start_ns[ops], device.ops.end_ns[ops]
    own_ns = measure_by_label(start_ns, end_ns, at)
    total_ns: dict[int, int] = {}
    n = len(places.parent)
    sum_ns, count = np.zeros(n), np.zeros(n, np.int64)
    # One depth after the other: an operation lies in one node of each, so that memory stays that of the operations.
    for depth in range(int(places.depth[at].max(initial=-1)), -1, -1):
        here = places.depth[at] == depth
        total_ns |= measure_by_label(start_ns[here], end_ns[here], at[here])
        sum_ns += np.bincount(at[here], (end_ns - start_ns)[here], n)
        count += np.bincount(at[here], minlength=n)
        at = np.where(here, places.parent[at], at)
    return {
        node: GpuTime(device.device, total_ns[node], own_ns.get(node, 0), int(sum_ns[node]), int(count[node]))
        for node in total_ns
    }
