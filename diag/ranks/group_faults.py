"""Groups whose members disagree on who is in them, and ranks that disagree on how many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from diag.ranks.dumps import Dumps
from diag.ranks.hang import Cause, Differing, Fault, GroupLabel, Where

T = TypeVar("T", bound=Hashable)


def group_faults(dumps: Dumps) -> Iterator[Fault]:
    """A rank is said to be in a group, has none of these ranks, and one of that name with others.

    The same name with other ranks alone says nothing: a name may count the groups that one rank made.
    """
    said: defaultdict[tuple[str, str], dict[int, tuple[int, ...]]] = defaultdict(dict)
    has: defaultdict[int, set[tuple[str, tuple[int, ...]]]] = defaultdict(set)
    for rank, dump in dumps.by_rank.items():
        for group in dump.groups:
            if group.label.ranks is not None:
                said[group.label.name, group.label.description][rank] = group.label.ranks
                has[rank].add((group.label.description, group.label.ranks))
    for (name, description), by_rank in said.items():
        if len(set(by_rank.values())) == 1:
            continue
        wrong = [
            (rank, ranks)
            for rank, ranks in by_rank.items()
            for other in ranks
            if by_rank.get(other, ranks) != ranks and (description, ranks) not in has[other]
        ]
        if wrong:
            concerned = {rank for _, ranks in wrong for rank in ranks} | {rank for rank, _ in wrong}
            sides = _sides({rank: ranks for rank, ranks in by_rank.items() if rank in concerned})
            label = GroupLabel(name, description, sides[0][0])
            yield _fault(Cause.GROUPS, label, [(str(list(ranks)), members) for ranks, members in sides])


def init_faults(world_sizes: Mapping[int, int]) -> Iterator[Fault]:
    """Ranks that take the job for one of another size than the others do."""
    sides = _sides(world_sizes)
    if len(sides) > 1:
        yield _fault(Cause.INIT, None, [(f"{size} ranks", members) for size, members in sides])


MADE_TOGETHER: Sequence[tuple[str, Cause, str]] = (
    ("initialise", Cause.INIT, "the job"),
    ("new group", Cause.GROUPS, "a group"),
)
"""(what of `Where`, cause, what is made). No recorder knows of such a call before all members have made it."""


def making_faults(where: Mapping[int, Sequence[Where]], unfinished: Sequence[Fault]) -> Iterator[Fault]:
    """Ranks whose stacks stand where groups are made, which waits for all members: these disagree, or one is absent.

    `unfinished`: faults of calls of which it is not known who entered them: their other ranks wait for these.
    """
    for what, cause, made in MADE_TOGETHER:
        standing = {rank for rank, says in where.items() if any(one.what == what for one in says)}
        if standing:
            others = {rank for fault in unfinished for rank in fault.candidates}
            yield Fault(
                cause=cause,
                ranks=(),
                group=None,
                call=None,
                sequence=None,
                waiting=tuple(sorted(others - standing)),
                candidates=tuple(sorted(standing)),
                where=tuple(one for rank in sorted(standing) for one in where[rank] if one.what == what),
                confidence="medium",
                note=f"stacks show who waits until {made} is made, not whose arguments differ",
            )


def _sides(by_rank: Mapping[int, T]) -> list[tuple[T, tuple[int, ...]]]:
    """What ranks say, what most say first."""
    sides: defaultdict[T, list[int]] = defaultdict(list)
    for rank, value in sorted(by_rank.items()):
        sides[value].append(rank)
    return sorted(((value, tuple(ranks)) for value, ranks in sides.items()), key=lambda side: (-len(side[1]), side[1]))


def _fault(cause: Cause, label: GroupLabel | None, sides: Sequence[tuple[str, tuple[int, ...]]]) -> Fault:
    others = tuple(sorted(rank for _, ranks in sides[1:] for rank in ranks))
    has_majority = len(sides[0][1]) > len(others)
    return Fault(
        cause=cause,
        ranks=others if has_majority else tuple(sorted((*sides[0][1], *others))),
        group=label,
        call=None,
        sequence=None,
        waiting=(),
        differing=tuple(Differing(what, ranks) for what, ranks in sides),
        confidence="high" if has_majority else "medium",
    )
