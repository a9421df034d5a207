"""Why the job stands still: faults in order, who waits for them, suspects, and how far each group has come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from diag.ranks.blame import Blame, Cycle, Missing, Stuck, Unfinished, blame
from diag.ranks.differing import Disagreement
from diag.ranks.dumps import Dumps
from diag.ranks.group_faults import group_faults, init_faults, making_faults
from diag.ranks.hang import (
    Call,
    Cause,
    Differing,
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


def analyse(
    dumps: Dumps,
    where: Sequence[Where] = (),
    job: Collection[int] = (),
    world_sizes: Mapping[int, int] | None = None,
) -> HangAnalysis:
    """`where`: what other evidence says of the ranks. `job`: ranks known to exist, be it without a dump.
    `world_sizes`: what ranks take the size of the job for, where it is not their dumps that say so."""
    found = blame(dumps, job)
    by_rank: defaultdict[int, list[Where]] = defaultdict(list)
    for each in where:
        by_rank[each.rank].append(each)
    chains = _chains(found)
    faults = [*_faults(found, dumps), *group_faults(dumps), *init_faults({**dumps.world_sizes, **(world_sizes or {})})]
    faults = [fused(replace(fault, waiting=_waiting(fault, chains)), by_rank) for fault in faults]
    faults = _with_makers(faults, by_rank)
    faults.extend(_dead(found, by_rank, {rank for fault in faults for rank in fault.ranks}))
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
    if not dumps.unranked:
        return ()
    return [f"{len(dumps.unranked)} dumps do not say of which rank they are, and are left out"]


# ---- faults --------------------------------------------------------------------------------------------------------


def _faults(found: Blame, dumps: Dumps) -> Iterator[Fault]:
    yield from _devices(found)
    yield from (_disagreement(found, each) for each in found.disagreements)
    yield from _hosts(found, dumps)
    yield from (_cycle(found, each) for each in found.cycles)
    yield from (_unfinished(found, each) for each in found.unfinished)


def _call(found: Blame, node: CallNode, rank: int | None = None) -> Call:
    """The call as a rank made it; as the lowest one that waits in it, where it is not said."""
    of = min(node.rows) if rank is None or rank not in node.rows else rank
    return found.facts.dumps[of].call(node.rows[of])


def _devices(found: Blame) -> Iterator[Fault]:
    """Ranks that share a group in which both stopped are one fault."""
    for each in _joined({one.rank: [id(s.group) for s in found.stuck if s.rank == one.rank] for one in found.stuck}):
        of_ranks = [one for one in found.stuck if one.rank in each]
        first = {rank: min((one for one in of_ranks if one.rank == rank), key=_row) for rank in each}
        lead = min(first.values(), key=lambda one: (-len(one.by), one.rank))
        dump = found.facts.dumps[lead.rank]
        yield Fault(
            cause=Cause.DEVICE,
            ranks=each,
            group=lead.group.label,
            call=dump.call(lead.row),
            sequence=dump.call(lead.row).sequence,
            waiting=(),
            completed_by=tuple(sorted({peer for one in of_ranks for peer in one.by} - set(each))),
            by_rank={rank: found.facts.dumps[rank].call(one.row) for rank, one in first.items()},
        )


def _row(stuck: Stuck) -> int:
    return stuck.row


def _joined(things: Mapping[int, Collection[object]]) -> list[tuple[int, ...]]:
    """Ranks that have a thing in common, directly or through others.

    >>> _joined({1: "ab", 2: "c", 3: "b"})
    [(1, 3), (2,)]
    """
    parts: list[tuple[set[int], set[object]]] = []
    for rank, of_rank in things.items():
        ranks, common = {rank}, set(of_rank)
        apart = []
        for part in parts:
            if part[1] & common:
                ranks, common = ranks | part[0], common | part[1]
            else:
                apart.append(part)
        parts = [*apart, (ranks, common)]
    return sorted(tuple(sorted(ranks)) for ranks, _ in parts)


def _disagreement(found: Blame, each: Disagreement) -> Fault:
    sides = []
    for side in each.sides:
        signature = found.facts.signature(side[0], each.rows[side[0]])
        sides.append(Differing(signature.tensors if each.is_tensors else signature.op, tuple(side)))
    ranks = each.named or tuple(rank for side in each.sides for rank in side)
    call = found.facts.dumps[ranks[0]].call(each.rows[ranks[0]])
    return Fault(
        cause=Cause.TENSORS if each.is_tensors else Cause.CALL,
        ranks=each.named,
        group=each.group.label,
        call=call,
        sequence=each.sequence,
        waiting=(),
        candidates=() if each.named else tuple(sorted(ranks)),
        differing=tuple(sides),
        by_rank={rank: found.facts.dumps[rank].call(row) for rank, row in each.rows.items()},
        confidence="high" if len(each.sides[0]) > len(each.named) else "medium",
    )


def _hosts(found: Blame, dumps: Dumps) -> Iterator[Fault]:
    """Ranks that lack the same call are one fault."""
    of_rank: dict[int, Missing] = {each.rank: each for each in found.missing}
    for ranks in _joined({rank: [id(node) for node in each.calls] for rank, each in of_rank.items()}):
        nodes = {id(node): node for rank in ranks for node in of_rank[rank].calls}.values()
        lead = max(nodes, key=lambda node: (len(node.needs.keys() & set(ranks)), _heads(found, node), len(node.rows)))
        call = _call(found, lead)
        is_late = all(rank in dumps.progressed for rank in ranks)
        standings = [found.facts.standings[rank] for rank in ranks]
        yield Fault(
            cause=Cause.LATE if is_late else Cause.HOST,
            ranks=ranks,
            group=lead.group.label,
            call=call,
            sequence=call.sequence,
            waiting=(),
            is_queue_empty=not any(standing.outstanding for standing in standings),
        )


def _heads(found: Blame, node: CallNode) -> int:
    """Ranks that nothing else that is recorded holds up."""
    return sum(found.graph.is_head(rank, node) for rank in node.rows)


def _cycle(found: Blame, each: Cycle) -> Fault:
    lead = each.calls[0]
    call = _call(found, lead)
    named = each.ranks
    return Fault(
        cause=Cause.CALL if each.is_order and not all(node.call.ends for node in _inner(each)) else Cause.CYCLE,
        ranks=named,
        group=lead.group.label,
        call=call,
        sequence=call.sequence,
        waiting=(),
        candidates=each.members,
        by_rank={rank: _call(found, found.graph.waits[rank][0], rank) for rank in each.members},
        confidence="high" if len(named) < len(each.members) or len(named) == 2 else "medium",
    )


def _inner(each: Cycle) -> list[CallNode]:
    """The calls of a cycle that hold up one of its ranks for another one."""
    return [node for node in each.calls if (node.needs.keys() & {*each.members}) and node.rows.keys() & {*each.members}]


def _unfinished(found: Blame, each: Unfinished) -> Fault:
    call = _call(found, each.call)
    return Fault(
        cause=Cause.UNFINISHED,
        ranks=(),
        group=each.call.group.label,
        call=call,
        sequence=call.sequence,
        waiting=(),
        candidates=each.candidates,
        confidence="low" if each.is_half_known else "medium",
        note="whether all of them called it is not known" if each.is_half_known else "",
    )


def _dead(found: Blame, where: Mapping[int, Sequence[Where]], named: Collection[int]) -> Iterator[Fault]:
    """Ranks of which other evidence says that they ended."""
    ended = [rank for rank, says in where.items() if rank not in named and any(one.what == "ended" for one in says)]
    awaited = [rank for rank in sorted(ended) if rank in found.absent]
    if awaited:
        node = next((node for node in found.graph.nodes if node.needs.keys() & set(awaited)), None)
        call = _call(found, node) if node is not None else None
        waiting = {rank for one in found.graph.nodes if one.needs.keys() & set(awaited) for rank in one.rows}
        yield Fault(
            cause=Cause.DEAD,
            ranks=tuple(awaited),
            group=node.group.label if node is not None else None,
            call=call,
            sequence=call.sequence if call is not None else None,
            waiting=tuple(sorted(waiting)),
            where=tuple(one for rank in awaited for one in where[rank] if one.what == "ended"),
        )


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
                        wait = Wait(rank, other, _call(found, node, rank), node.needs[other])
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
        rows.append(Suspect(rank, by, _call(found, nodes[0]) if nodes else None, tuple(where.get(rank, ()))))
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
        yield GroupRow(group.label, tuple(members), _call(found, first) if first is not None else None)
