"""Who waits for whom: a graph of ranks and of the calls that do not complete.

An edge leads from a rank to each of its oldest outstanding calls, and from a call to the ranks that it needs: those
that have not called it (*strong*: nothing else can be meant), those that have, behind work that is not finished
(*weak*: followed only from the call at the head of a rank's device), and those of which no dump tells (*unknown*).
Whoever is in a strongly connected component that no edge leaves is held up by nobody outside of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from diag.ranks.communicators import Communicator, Communicators, Key, outstanding_p2p
from diag.ranks.hang import Need


@dataclass(frozen=True)
class OpenCall:
    """A collective, or the two halves of a send and receive, that somebody entered and that does not complete."""

    key: Key
    sequence: int  # of a collective; -1: send and receive
    ends: tuple[int, int] | None = None  # (sender, receiver)


@dataclass(eq=False)
class CallNode:
    call: OpenCall
    group: Communicator
    members: Sequence[int]
    rows: dict[int, int] = field(default_factory=dict)  # its entry on each rank whose oldest call of that kind it is
    needs: dict[int, Need] = field(default_factory=dict)  # of the ranks that hold it up


@dataclass(frozen=True, eq=False)
class WaitGraph:
    facts: Communicators
    calls: Mapping[OpenCall, CallNode]
    waits: Mapping[int, Sequence[CallNode]]  # of each rank with a dump its oldest calls; the head of its device first
    ended: frozenset[int]  # ranks that are known to be at fault: whatever they wait for explains nothing

    def is_head(self, rank: int, node: CallNode) -> bool:
        return node.rows.get(rank) == self.facts.standings[rank].head

    def edges(self, rank: int) -> Iterator[tuple[int, CallNode, Need]]:
        """(other rank, the call, why) of all that a rank waits for.

        What is behind other work counts only where nothing that is recorded holds up this rank itself.
        """
        if rank in self.ended:
            return
        for node in self.waits.get(rank, ()):
            is_head = self.is_head(rank, node)
            for other, need in node.needs.items():
                if other != rank and (is_head or need != "behind other work"):
                    yield other, node, need

    @cached_property
    def nodes(self) -> Sequence[CallNode]:
        return list(self.calls.values())

    @cached_property
    def plain(self) -> Mapping[int, Sequence[int]]:
        """As numbers: ranks, and for call i -(2i + 1) with the ranks that have not called it, -(2i + 2) with those
        that are behind other work. A call that nobody holds up is a sink of its own.
        """
        found: dict[int, list[int]] = {rank: [] for rank in self.facts.dumps}
        for at, node in enumerate(self.nodes):
            missing = [rank for rank, need in node.needs.items() if need != "behind other work"]
            behind = [rank for rank, need in node.needs.items() if need == "behind other work"]
            for rank in node.rows.keys() - self.ended:
                if missing:
                    found[rank].append(-(2 * at + 1))
                    found[-(2 * at + 1)] = missing
                if self.is_head(rank, node) and (behind or not missing):
                    found[rank].append(-(2 * at + 2))
                    found[-(2 * at + 2)] = behind
        return found

    def node_of(self, number: int) -> CallNode:
        return self.nodes[(-number - 1) // 2]


def wait_graph(facts: Communicators, ended: Collection[int]) -> WaitGraph:
    calls: dict[OpenCall, CallNode] = {}
    for key, group in facts.all.items():
        for call, members, rank, row in _open_calls(facts, key, group):
            node = calls.get(call)
            if node is None:
                node = calls[call] = CallNode(call, group, members)
            node.rows[rank] = row
    waits: defaultdict[int, list[CallNode]] = defaultdict(list)
    for node in calls.values():
        node.needs.update(_needs(facts, node, ended))
        for rank in node.rows:
            waits[rank].append(node)
    for rank, nodes in waits.items():
        nodes.sort(key=lambda node: node.rows[rank])
    return WaitGraph(facts, calls, waits, frozenset(ended))


def _open_calls(
    facts: Communicators, key: Key, group: Communicator
) -> Iterator[tuple[OpenCall, Sequence[int], int, int]]:
    for rank, standing in group.of.items():
        if standing.oldest is not None:
            sequence = int(facts.dumps[rank].entries.sequence[standing.oldest])
            yield OpenCall(key, sequence), group.members, rank, standing.oldest
    for rank, peer, is_send, row in outstanding_p2p(group):
        ends = (rank, peer) if is_send else (peer, rank)
        yield OpenCall(key, -1, ends), ends, rank, row


def _needs(facts: Communicators, node: CallNode, ended: Collection[int]) -> Iterator[tuple[int, Need]]:
    for rank in node.members:
        has_called = rank in node.rows or _has_called(facts, node, rank)
        if has_called is None:
            yield rank, "not known"
        elif not has_called:
            yield rank, "not called"
        elif rank in ended or (not _is_done(node, rank) and not _is_at_head(facts, node, rank)):
            yield rank, "behind other work"


def _has_called(facts: Communicators, node: CallNode, rank: int) -> bool | None:
    if node.call.ends is None:
        return facts.has_called(rank, node.group, node.call.sequence)
    peer = next(other for other in node.rows if other != rank)
    return facts.has_matched(peer, rank, node.group, is_send=peer == node.call.ends[0])


def _is_done(node: CallNode, rank: int) -> bool:
    """Whether a rank has completed its part, as a broadcast's root may."""
    if rank in node.rows:
        return False
    if node.call.ends is not None:
        return True
    completed = node.group.completed(rank)
    return completed is not None and completed >= node.call.sequence


def _is_at_head(facts: Communicators, node: CallNode, rank: int) -> bool:
    return rank in node.rows and node.rows[rank] == facts.standings[rank].head


def sinks(graph: Mapping[int, Iterable[int]]) -> list[frozenset[int]]:
    """Strongly connected components that no edge leaves (R. E. Tarjan, 1972, without recursion).

    >>> sinks({1: [2], 2: [3], 3: [2], 4: []})
    [frozenset({2, 3}), frozenset({4})]
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(graph.get(other, ()))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = frozenset(stack[stack.index(node) :])
                    del stack[stack.index(node) :]
                    on_stack -= component
                    if all(other in component for each in component for other in graph.get(each, ())):
                        found.append(component)
    return found
