"""Why the job stands still: faults in order, who waits for them, suspects, and how far each group has come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from diag.model import units
from diag.ranks.blame import Blame, blame
from diag.ranks.dumps import Dumps
from diag.ranks.faults import faults_of, gone_faults
from diag.ranks.group_faults import group_faults, init_faults, making_faults
from diag.ranks.hang import (
    Cause,
    Fault,
    GroupRow,
    HangAnalysis,
    MemberRow,
    RankRow,
    RankState,
    Suspect,
    Wait,
    Where,
)
from diag.ranks.wait_graph import CallNode
from diag.ranks.whereabouts import fused

LONGEST_CHAIN = 16


def analyse_hang(
    dumps: Dumps,
    where: Sequence[Where] = (),
    job: Collection[int] = (),
    world_sizes: Mapping[int, int] | None = None,
    told: Sequence[Fault] = (),
) -> HangAnalysis:
    """`where`: what other evidence says of the ranks. `job`: ranks known to exist, be it without a dump.
    `world_sizes`: what ranks take the size of the job for, where it is not their dumps that say so.
    `told`: faults that logs tell, for what the dumps do not show.
    """
    found = blame(dumps, job)
    by_rank: defaultdict[int, list[Where]] = defaultdict(list)
    for each in where:
        by_rank[each.rank].append(each)
    chains = _chains(found)
    faults = [
        *faults_of(found, dumps),
        *group_faults(dumps),
        *init_faults({**dumps.world_sizes, **(world_sizes or {})}),
    ]
    faults = [fused(replace(fault, waiting=_waiting(fault, chains)), by_rank) for fault in faults]
    faults = _with_makers(faults, by_rank)
    faults.extend(fault for fault in told if not any(fault.cause is each.cause for each in faults))
    faults.extend(gone_faults(found, by_rank, {rank for fault in faults for rank in fault.ranks}))
    named = {rank for fault in faults for rank in fault.ranks}
    suspects = tuple(_suspects(found, by_rank, named))
    undecided = tuple(each for each in found.undecided if each.rank not in named)
    return HangAnalysis(
        world_size=dumps.world_size,
        dumped=tuple(dumps.by_rank),
        absent=found.absent,
        faults=tuple(sorted(faults, key=_first)),
        suspects=suspects,
        undecided=undecided,
        ranks=tuple(_rank_rows(found, chains, named, {each.rank for each in undecided}, by_rank)),
        groups=tuple(_group_rows(found)),
        restarted=tuple(sorted(dumps.restarted)),
        notes=_notes(dumps),
    )


def _first(fault: Fault) -> tuple[bool, int, int, tuple[int, ...]]:
    """Named ranks before those among which it cannot be told; then what most ranks wait for."""
    return (not fault.ranks, -len(fault.waiting), list(Cause).index(fault.cause), fault.ranks)


def _with_makers(faults: Sequence[Fault], where: Mapping[int, Sequence[Where]]) -> list[Fault]:
    """Who stands where a group is made explains calls of which it is not known who entered them."""
    half_known = [fault for fault in faults if fault.cause is Cause.UNFINISHED and fault.note]
    makers = list(making_faults(where, half_known))
    explained = {rank for fault in makers for rank in fault.candidates}
    kept = [fault for fault in faults if fault not in half_known or not explained & set(fault.candidates)]
    known = {fault.cause for fault in kept}
    return [*kept, *(fault for fault in makers if fault.cause not in known)]


def _notes(dumps: Dumps) -> Sequence[str]:
    n_unranked = len(dumps.unranked)
    if not n_unranked:
        return ()
    said = (
        "does not say of which rank it is, and is" if n_unranked == 1 else "do not say of which rank they are, and are"
    )
    return [f"{units.count(n_unranked, 'dump')} {said} left out"]


# ---- who waits for whom --------------------------------------------------------------------------------------------


def _chains(found: Blame) -> Mapping[int, tuple[Wait, ...]]:
    """Of each rank the shortest way to one that is named, else to one without a dump, else into a cycle."""
    graph = found.graph
    steps = {rank: list(graph.edges(rank)) for rank in found.facts.dumps}
    chains: dict[int, tuple[Wait, ...]] = {}
    for targets in (found.named, found.absent):
        before: defaultdict[int, list[tuple[int, CallNode]]] = defaultdict(list)
        for rank, edges in steps.items():
            for other, node, _ in edges:
                before[other].append((rank, node))
        todo: list[tuple[int, tuple[Wait, ...]]] = [(target, ()) for target in sorted(targets)]
        seen = set(targets)
        while todo:
            step: list[tuple[int, tuple[Wait, ...]]] = []
            for other, rest in todo:
                for rank, node in before[other]:
                    if rank not in seen:
                        seen.add(rank)
                        wait = Wait(rank, other, found.call(node, rank), node.needs[other])
                        chain = (wait, *rest)[:LONGEST_CHAIN]
                        chains.setdefault(rank, chain)
                        step.append((rank, chain))
            todo = step
    return chains


def _waiting(fault: Fault, chains: Mapping[int, tuple[Wait, ...]]) -> tuple[int, ...]:
    at_fault = {*(fault.ranks or fault.candidates)}
    return tuple(rank for rank, chain in sorted(chains.items()) if chain[-1].on in at_fault and rank not in at_fault)


def _suspects(found: Blame, where: Mapping[int, Sequence[Where]], named: Collection[int]) -> Iterator[Suspect]:
    """All ranks without a dump, those first that most ranks wait for."""
    awaited: dict[int, list[CallNode]] = {rank: [] for rank in found.absent if rank not in named}
    for node in found.graph.nodes:
        for rank, need in node.needs.items():
            if need == "not known" and rank in awaited:
                awaited[rank].append(node)
    rows = []
    for rank, nodes in awaited.items():
        by = tuple(sorted({other for node in nodes for other in node.rows} - found.graph.ended))
        rows.append(Suspect(rank, by, found.call(nodes[0]) if nodes else None, tuple(where.get(rank, ()))))
    yield from sorted(rows, key=lambda row: (-len(row.awaited_by), row.rank))


# ---- tables --------------------------------------------------------------------------------------------------------


def _rank_rows(
    found: Blame,
    chains: Mapping[int, tuple[Wait, ...]],
    named: Collection[int],
    undecided: Collection[int],
    where: Mapping[int, Sequence[Where]],
) -> Iterator[RankRow]:
    awaited = {rank for node in found.graph.nodes for rank, need in node.needs.items() if need == "not known"}
    for rank in sorted({*found.facts.dumps, *found.absent}):
        dump = found.facts.dumps.get(rank)
        outstanding = dump.standing.outstanding if dump is not None else None
        head = dump.standing.head if dump is not None else None
        state: RankState = (
            "blocked" if rank in named
            else ("suspect" if rank in awaited else "absent") if dump is None
            else "undecided" if rank in undecided
            else "waiting" if outstanding
            else "idle"
        )  # fmt: skip
        yield RankRow(
            rank=rank,
            source=dump.source if dump is not None else None,
            state=state,
            outstanding=outstanding,
            oldest=dump.call(head) if dump is not None and head is not None else None,
            chain=chains.get(rank, ()),
            where=tuple(where.get(rank, ())),
        )


def _group_rows(found: Blame) -> Iterator[GroupRow]:
    for group in found.facts.all.values():
        members = []
        for rank in group.members:
            one = group.of.get(rank)
            called = group.called(rank) if one is not None else None
            members.append(
                MemberRow(
                    rank=rank,
                    enqueued=called[0] if called is not None and called[0] >= 0 else None,
                    completed=group.completed(rank) if one is not None else None,
                    outstanding=one.outstanding if one is not None else None,
                )
            )
        open_calls = [node for node in found.graph.nodes if node.group is group]
        first = min(open_calls, key=lambda node: (node.call.ends is not None, node.call.sequence), default=None)
        yield GroupRow(group.label, tuple(members), found.call(first) if first is not None else None)
