"""Who is at fault, by the recorders alone: see docs/hang-method.md for the order in which it is decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from diag.ranks.communicators import Communicator, Communicators, communicators_of
from diag.ranks.differing import Disagreement, disagreements
from diag.ranks.dumps import Dumps
from diag.ranks.hang import Call, Need, Undecided
from diag.ranks.wait_graph import CallNode, WaitGraph, sinks, wait_graph


@dataclass(frozen=True, eq=False)
class Stuck:
    """A rank that did not complete what a peer completed, though no rank completes it alone."""

    rank: int
    group: Communicator
    row: int  # the oldest such call
    by: tuple[int, ...]  # peers that completed it


@dataclass(frozen=True, eq=False)
class Missing:
    """A rank that has not called what others wait for, and that waits for nobody itself."""

    rank: int
    calls: Sequence[CallNode]


@dataclass(frozen=True, eq=False)
class Cycle:
    ranks: tuple[int, ...]  # those at fault: the fewer ones where most agree, else all
    members: tuple[int, ...]
    calls: Sequence[CallNode]
    is_order: bool  # all have called everything, in different orders


@dataclass(frozen=True, eq=False)
class Unfinished:
    """A call that all ranks entered and none completed: one of them, or what is between them, holds it."""

    call: CallNode
    candidates: tuple[int, ...]
    is_half_known: bool  # whether the other half was called is not known


@dataclass(frozen=True, eq=False)
class Blame:
    facts: Communicators
    graph: WaitGraph
    stuck: Sequence[Stuck]
    disagreements: Sequence[Disagreement]
    missing: Sequence[Missing]
    cycles: Sequence[Cycle]
    unfinished: Sequence[Unfinished]
    undecided: Sequence[Undecided]
    absent: tuple[int, ...]

    def call(self, node: CallNode, rank: int | None = None) -> Call:
        """The call as a rank made it; as the lowest one that waits in it, where it is not said."""
        of = min(node.rows) if rank is None or rank not in node.rows else rank
        return self.facts.dumps[of].call(node.rows[of])

    @property
    def named(self) -> set[int]:
        of_disagreements = (rank for each in self.disagreements for rank in each.named)
        of_cycles = (rank for each in self.cycles for rank in each.ranks)
        of_ranks = (*(each.rank for each in self.stuck), *(each.rank for each in self.missing))
        return {*of_ranks, *of_disagreements, *of_cycles}


def blame(dumps: Dumps, job: Iterable[int] = ()) -> Blame:
    """`job`: ranks that are known to exist, be it without a dump."""
    facts = communicators_of(dumps)
    disagreeing = list(disagreements(facts))
    stuck = list(_stuck(facts, {each.key: each.sequence for each in disagreeing}))
    ended = {each.rank for each in stuck}.union(*(each.named for each in disagreeing))
    graph = wait_graph(facts, ended)
    missing: list[Missing] = []
    cycles: list[Cycle] = []
    unfinished: list[Unfinished] = []
    differing = {(each.key, each.sequence) for each in disagreeing}
    for component in sinks(graph.plain):
        ranks = {rank for rank in component if rank in facts.dumps}
        if ranks - ended:
            alone = list(_missing(graph, ranks)) if len(ranks) == 1 else []
            in_turn = [] if alone else _first_cycles(graph, ranks)
            missing.extend(alone)
            cycles.extend(in_turn)
            if not (alone or in_turn):
                unfinished.extend(_entangled(graph, ranks))
        elif component and max(component) < 0:
            node = graph.node_of(max(component))
            if (node.call.key, node.call.sequence) not in differing:
                unfinished.append(Unfinished(node, tuple(sorted(node.members)), is_half_known=False))
    seen = {rank for group in facts.all.values() for rank in group.members}
    absent = tuple(sorted({*seen, *range(dumps.world_size or 0), *job} - facts.dumps.keys()))
    named = ended | {each.rank for each in missing}.union(*(each.ranks for each in cycles))
    undecided = list(_undecided(graph, named, frozenset(absent), disagreeing))
    return Blame(facts, graph, stuck, disagreeing, missing, cycles, unfinished, undecided, absent)


def _stuck(facts: Communicators, differing: Mapping[object, int]) -> Iterator[Stuck]:
    """Where members disagree about what to call, who completed what tells nothing from there on."""
    for key, group in facts.all.items():
        completed = {rank: done for rank in group.of if (done := group.completed(rank)) is not None}
        last = max(completed.values(), default=-1)
        for rank, standing in group.of.items():
            if standing.together is None:
                continue
            sequence = int(facts.dumps[rank].entries.sequence[standing.together])
            if sequence <= last and sequence < differing.get(key, sequence + 1):
                by = tuple(sorted(peer for peer, done in completed.items() if done >= sequence and peer != rank))
                yield Stuck(rank, group, standing.together, by)


def _awaited(graph: WaitGraph, ranks: Collection[int]) -> dict[int, list[CallNode]]:
    """Of some ranks the calls that others entered and they have not."""
    found: defaultdict[int, list[CallNode]] = defaultdict(list)
    for node in graph.nodes:
        if node.rows.keys() - graph.ended:
            for rank, need in node.needs.items():
                if need == "not called" and rank in ranks:
                    found[rank].append(node)
    return found


def _missing(graph: WaitGraph, ranks: Collection[int]) -> Iterator[Missing]:
    """A sink of one rank that others wait for: nothing holds it up."""
    for rank, calls in _awaited(graph, ranks).items():
        yield Missing(rank, calls)


def _first_cycles(graph: WaitGraph, ranks: Collection[int]) -> list[Cycle]:
    """Devices that wait for each other, which alone is a deadlock; else hosts; else, of two ranks, one of each."""
    for needs in (BEHIND, NOT_CALLED):
        if found := list(_cycles(graph, ranks, needs)):
            return found
    if any(need == "not known" and other in ranks for rank in ranks for other, _, need in graph.edges(rank)):
        return []
    # Among more than two, one that is late and one that is behind look alike: there is no vote.
    return [each for each in _cycles(graph, ranks, BEHIND | NOT_CALLED) if len(each.members) == 2]


BEHIND = frozenset[Need]({"behind other work"})
NOT_CALLED = frozenset[Need]({"not called"})


def _cycles(graph: WaitGraph, ranks: Collection[int], needs: Collection[Need]) -> Iterator[Cycle]:
    """Ranks that wait for each other in one of these ways."""
    waits = {rank: [other for other, _, why in graph.edges(rank) if why in needs and other in ranks] for rank in ranks}
    for component in sinks(waits):
        if len(component) > 1:
            calls = [node for node in graph.nodes if component & node.rows.keys() and component & node.needs.keys()]
            sides = [pair for node in calls if all(pair := _sides(node, component, needs))]
            fewer = {rank for few, many in sides for rank in few} - {rank for few, many in sides for rank in many}
            if any(len(few) == len(many) for few, many in sides):
                fewer = set()
            yield Cycle(
                ranks=tuple(sorted(fewer or component)),
                members=tuple(sorted(component)),
                calls=calls,
                is_order="behind other work" in needs,
            )


def _sides(node: CallNode, ranks: Collection[int], needs: Collection[Need]) -> tuple[Collection[int], Collection[int]]:
    """Of those that are in a call first and those that are not: the fewer ones, then the others."""
    without = {rank for rank, why in node.needs.items() if why in needs and rank in ranks}
    first = {rank for rank in ranks if rank in node.rows and rank not in without}
    few, many = sorted((without, first), key=len)
    return few, many


def _entangled(graph: WaitGraph, ranks: Collection[int]) -> Iterator[Unfinished]:
    """Ranks that hold each other up, and not all of whose calls are known: any of them may have begun it."""
    nodes = [
        node
        for node in graph.nodes
        if any(need != "behind other work" and rank in ranks for rank, need in node.needs.items())
    ]
    if nodes:
        callers = {rank for node in nodes for rank in node.rows}
        yield Unfinished(nodes[0], tuple(sorted({*ranks, *callers})), is_half_known=True)


# ---- what an absent dump would decide ------------------------------------------------------------------------------


def _undecided(
    graph: WaitGraph, named: Collection[int], absent: frozenset[int], disagreeing: Sequence[Disagreement]
) -> Iterator[Undecided]:
    """Ranks with a dump that are neither named nor explained by a rank that is."""
    if not absent:
        return
    votes = {rank: each for each in disagreeing if not each.named for side in each.sides for rank in side}
    open_ended = _reach(graph, absent)
    direct, rest = [], []
    for rank, standing in graph.facts.standings.items():
        if rank in named:
            continue
        needed = _deciders(graph, rank, absent)
        if rank in votes:
            direct.append(Undecided(rank, VOTES, votes[rank].deciders))
        elif not standing.outstanding:
            members = {other for group in standing.groups for other in group.label.ranks or absent}
            direct.append(Undecided(rank, IDLE, tuple(sorted(members & absent))))
        elif needed:
            direct.append(Undecided(rank, MAY_BE_DONE, needed))
        elif rank in open_ended:
            rest.append(Undecided(rank, IN_THE_END, tuple(sorted(absent))))
    yield from direct
    yield from rest


VOTES = "it called something else than other members of its group, and no majority is known"
IDLE = "nothing is outstanding on it, and ranks without a dump may wait for it"
MAY_BE_DONE = "ranks without a dump may have completed what it did not"
IN_THE_END = "it waits, in the end, for a rank without a dump, which may wait for it in turn"


def _deciders(graph: WaitGraph, rank: int, absent: frozenset[int]) -> tuple[int, ...]:
    """Absent ranks that its oldest calls need; of its collectives where there are any: those complete together."""
    collectives, others = set[int](), set[int]()
    for node in graph.waits.get(rank, ()):
        (collectives if node.call.ends is None else others).update(absent.intersection(node.members))
    return tuple(sorted(collectives or others))


def _reach(graph: WaitGraph, targets: Collection[int]) -> set[int]:
    """All ranks from which an edge leads to one of these, in any number of steps."""
    before: defaultdict[int, list[int]] = defaultdict(list)
    for node, others in graph.plain.items():
        for other in others:
            before[other].append(node)
    found, todo = set(targets), list(targets)
    while todo:
        for node in before[todo.pop()]:
            if node not in found:
                found.add(node)
                todo.append(node)
    return {node for node in found if node in graph.facts.dumps}
