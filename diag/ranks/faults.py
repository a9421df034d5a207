"""What is found in the wait graph, as faults with the ranks and the calls that they are about."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from diag.ranks.blame import Blame, Cycle, Missing, Stuck, Unfinished
from diag.ranks.differing import Disagreement
from diag.ranks.dumps import Dumps
from diag.ranks.hang import Cause, Differing, Fault, Where
from diag.ranks.restarts import RESTARTED
from diag.ranks.wait_graph import CallNode


def faults_of(found: Blame, dumps: Dumps) -> Iterator[Fault]:
    yield from _devices(found)
    yield from (_disagreement(found, each) for each in found.disagreements)
    yield from _hosts(found, dumps)
    yield from (_cycle(found, each) for each in found.cycles)
    yield from (_unfinished(found, each) for each in found.unfinished)


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
        call = found.call(lead)
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
    call = found.call(lead)
    named = each.ranks
    return Fault(
        cause=Cause.CALL if each.is_order and not all(node.call.ends for node in _inner(each)) else Cause.CYCLE,
        ranks=named,
        group=lead.group.label,
        call=call,
        sequence=call.sequence,
        waiting=(),
        candidates=each.members,
        by_rank={rank: found.call(found.graph.waits[rank][0], rank) for rank in each.members},
        confidence="high" if len(named) < len(each.members) or len(named) == 2 else "medium",
    )


def _inner(each: Cycle) -> list[CallNode]:
    """The calls of a cycle that hold up one of its ranks for another one."""
    return [node for node in each.calls if (node.needs.keys() & {*each.members}) and node.rows.keys() & {*each.members}]


def _unfinished(found: Blame, each: Unfinished) -> Fault:
    call = found.call(each.call)
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


GONE: Mapping[str, Cause] = {RESTARTED: Cause.RESTARTED, "ended": Cause.DEAD}
"""By `Where.what`: what explains that a rank without a dump does not come. Whoever runs anew did end before."""


def gone_faults(found: Blame, where: Mapping[int, Sequence[Where]], named: Collection[int]) -> Iterator[Fault]:
    """Ranks without a dump of which other evidence says that they ended, or run anew."""
    explained = set(named)
    for what, cause in GONE.items():
        ranks = [rank for rank in found.absent if rank not in explained and _says(where.get(rank, ()), what)]
        if ranks:
            explained.update(ranks)
            yield _gone(found, where, ranks, what, cause)


def _says(where: Sequence[Where], what: str) -> bool:
    return any(one.what == what for one in where)


def _gone(found: Blame, where: Mapping[int, Sequence[Where]], ranks: Sequence[int], what: str, cause: Cause) -> Fault:
    nodes = [node for node in found.graph.nodes if node.needs.keys() & set(ranks)]
    call = found.call(nodes[0]) if nodes else None
    return Fault(
        cause=cause,
        ranks=tuple(ranks),
        group=nodes[0].group.label if nodes else None,
        call=call,
        sequence=call.sequence if call is not None else None,
        waiting=tuple(sorted({rank for node in nodes for rank in node.rows})),
        where=tuple(one for rank in ranks for one in where[rank] if one.what == what),
    )
