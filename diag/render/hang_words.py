"""How `diag hang` puts its answer into words, whatever the format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from diag.model.rank_lists import numbers_only, ranks
from diag.ranks.hang import HangAnalysis, MemberRow, RankRow, Suspect, Undecided, Wait
from diag.render.hang_view import HangView, Unread
from diag.rules.hang_places import sentence

MOST_NAMED = 4
MOST_BEHIND = 2
"""Of different counts in a group, so many are told besides the highest."""


def headline(view: HangView) -> str:
    """Who is at fault, in one line."""
    if view.lead is not None:
        return view.lead.title
    if view.hang is not None and (view.hang.suspects or view.hang.undecided):
        return "Cannot tell yet who is at fault: see the suspects, and which dumps would decide"
    if view.hang is not None and not view.hang.is_still:
        return "No call of any recorder is outstanding"
    return "Cannot tell who is at fault"


def unread(each: Unread) -> str:
    """Which file, why, and what that means for the answer."""
    if each.rank is None:
        return f"{each.why} What it may say is not in this answer."
    if each.is_known:
        return f"{each.why} What else rank {each.rank} left is read; this is not held against it."
    return f"{each.why} Rank {each.rank} counts as absent, as if it had left nothing; this is not held against it."


# ---- what the recorders say ----------------------------------------------------------------------------------------


def chains(hang: HangAnalysis) -> list[str]:
    """For each rank that others wait for in the end: who they are, what those call that wait at once, and the longest
    way there.
    """
    by_end: dict[int, list[RankRow]] = {}
    for row in hang.ranks:
        if row.chain:
            by_end.setdefault(row.chain[-1].on, []).append(row)
    most_first = sorted(by_end.items(), key=lambda item: (-len(item[1]), item[0]))
    return [line for end, rows in most_first for line in _to(end, rows)]


def _to(end: int, rows: Sequence[RankRow]) -> Iterator[str]:
    who, wait = sentence(ranks(row.rank for row in rows)), "waits" if len(rows) == 1 else "wait"
    yield f"{who} {wait} for rank {end} in the end."
    at_once: dict[str, list[int]] = {}
    for row in rows:
        if len(row.chain) == 1:
            at_once.setdefault(next(_steps(row.chain)), []).append(row.rank)
    for step, waiting in sorted(at_once.items(), key=lambda item: (-len(item[1]), item[1]))[:MOST_NAMED]:
        yield f"At once: {ranks(waiting)}{step}."
    longest = max(rows, key=lambda row: (len(row.chain), -row.rank))
    if len(longest.chain) > 1:
        yield f"The longest way: rank {longest.rank} waits{'; '.join(_steps(longest.chain))}."


def _steps(chain: Sequence[Wait]) -> Iterator[str]:
    """The first without its rank, as others may stand in the same place."""
    for at, wait in enumerate(chain):
        who = f"rank {wait.rank} waits" if at else ""
        yield f"{who} in {wait.call}: {_reason(wait)}"


def _reason(wait: Wait) -> str:
    match wait.need:
        case "not called":
            return f"rank {wait.on} has not called it"
        case "behind other work":
            return f"rank {wait.on} has it behind other work"
        case "not known":
            return f"whether rank {wait.on} called it, no dump says"


def suspect(each: Suspect, unread: Collection[int | None] = ()) -> str:
    """`unread`: ranks with a file of which nothing could be read."""
    left = "no dump that can be read" if each.rank in unread else "no dump"
    said = "".join(f"; {where.says}" for where in each.where)
    if not each.awaited_by:
        return f"Rank {each.rank} left {left}{said}."
    call = f" in {each.call}" if each.call is not None else ""
    return f"Rank {each.rank} left {left}, and {ranks(each.awaited_by)} may wait for it{call}{said}."


def undecided(every: Sequence[Undecided]) -> Iterator[str]:
    """Those that are so for one reason together."""
    alike: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for each in every:
        alike.setdefault((each.because, each.deciders), []).append(each.rank)
    for (because, deciders), who in alike.items():
        would = f"; the dump of {_any_of(deciders)} would decide" if deciders else ""
        yield f"{sentence(ranks(who))}: undecided, {because}{would}."


def _any_of(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers[:MOST_NAMED])
    more = f" (or of {len(numbers) - MOST_NAMED} others)" if len(numbers) > MOST_NAMED else ""
    return (f"rank {', '.join(others)} or {last}" if others else f"rank {last}") + more


def members(rows: Sequence[MemberRow], key: str) -> str:
    """The members of a group by how far they are, those that are behind first; the many are counted.

    >>> members([MemberRow(0, 41, 40, 1), MemberRow(1, 41, 40, 1), MemberRow(9, 40, 40, 0)], "enqueued")
    '9: 40; 2 others: 41'
    >>> members([MemberRow(0, 41, 40, 1), MemberRow(1, 41, 40, 1), MemberRow(9, None, None, None)], "completed")
    '9: ?; 2 others: 40'
    """
    by_value: dict[int | None, list[int]] = {}
    for row in rows:
        by_value.setdefault(getattr(row, key), []).append(row.rank)
    ordered = sorted(by_value.items(), key=lambda item: (item[0] is not None, item[0] or 0))
    *behind, (most, many) = [("?" if value is None else str(value), who) for value, who in ordered]
    who_leads = f"{len(many)} others" if behind and len(many) > 1 else numbers_only(many)
    more = [f"{len(behind) - MOST_BEHIND} more counts"] if len(behind) > MOST_BEHIND else []
    return "; ".join(
        [*(f"{numbers_only(who)}: {value}" for value, who in behind[:MOST_BEHIND]), *more, f"{who_leads}: {most}"]
    )
