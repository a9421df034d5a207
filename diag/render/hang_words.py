"""How `diag hang` puts its answer into words, whatever the format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.model.live import Frame
from diag.model.rank_lists import numbers_only, ranks
from diag.ranks.hang import HangAnalysis, MemberRow, RankRow, Suspect, Undecided, Wait
from diag.ranks.heartbeats import RankBeat
from diag.ranks.stack_clusters import StackCluster
from diag.ranks.thread_stacks import RankThread
from diag.render.hang_view import HangView
from diag.render.live_stacks import LIBRARY

LONGEST_FILE = 40
MOST_NAMED = 4
MOST_BEHIND = 2
"""Of different counts in a group, so many are told besides the highest."""


def headline(view: HangView) -> str:
    """Who is at fault, in one line."""
    if view.lead is not None:
        return view.lead.title
    if view.stacks.is_telling:
        first = view.stacks.elsewhere[0]
        stands = "stands" if len(first.threads) == 1 else "stand"
        gil = " and holds the GIL" if any(holder in first.threads for holder in view.stacks.holders) else ""
        return f"{sentence(of_cluster(first))} {stands} {place(first)}{gil}; {_the_others(view)}"
    if stopped := next((each for each in view.clusters if each.is_stopped), None):
        return f"{sentence(of_cluster(stopped))} {'is' if len(stopped.threads) == 1 else 'are'} {place(stopped)}"
    if holder := next(iter(view.stacks.holders), None):
        return f"{sentence(of_thread(holder))} holds the GIL in {function(holder.frames[:1])}"
    if view.silent:
        return sentence(heartbeat(view.silent[0]))
    if view.hang is not None and (view.hang.suspects or view.hang.undecided):
        return "Cannot tell yet who is at fault: see the suspects, and which dumps would decide"
    if view.hang is not None and not view.hang.is_still:
        return "No call of any recorder is outstanding"
    return "Cannot tell who is at fault"


def summary(view: HangView) -> Iterator[str]:
    """How it knows, where no rule has said it."""
    if view.lead is not None:
        yield view.lead.claim
        return
    if view.stacks.is_telling:
        waiting = [rank for cluster in view.stacks.waiting for rank in cluster.ranks]
        n = sum(len(cluster.threads) for cluster in view.stacks.waiting)
        who = sentence(ranks(waiting)) if len(waiting) == n else f"{n} processes"
        yield (
            f"{who} stand{'s' if n == 1 else ''} in a collective or wait{'s' if n == 1 else ''} for the device "
            f"({place(view.stacks.waiting[0])}), which cannot end before the others call it. This comes from stacks "
            "alone: a dump of the flight recorder would say which collective."
        )
    for cluster in view.stacks.elsewhere if view.stacks.is_telling else ():
        if cluster.moved:
            yield f"{sentence(of_cluster(cluster))} moved between the dumps: late, rather than stuck."
    for holder in view.stacks.holders:
        yield gil(holder)
    said = headline(view)
    yield from (line for each in view.silent[:MOST_NAMED] if (line := f"{sentence(heartbeat(each))}.") != f"{said}.")


def sentence(clause: str) -> str:
    return clause[:1].upper() + clause[1:]


def _the_others(view: HangView) -> str:
    waiting = sum(len(cluster.threads) for cluster in view.stacks.waiting)
    more = len(view.stacks.elsewhere) - 1
    also = f", {units.count(more, 'more place')} see below" if more else ""
    return f"{units.count(waiting, 'rank')} wait{'s' if waiting == 1 else ''} for the others{also}"


def gil(holder: RankThread) -> str:
    held = f"{sentence(of_thread(holder))} held the GIL in {function(holder.frames[:1])} in every dump"
    if holder.is_running:
        return f"{held} and was running: a long call, or a loop in one line."
    return f"{held} while it slept: a C call does not release it, so that no other thread of this rank runs Python."


def of_thread(thread: RankThread) -> str:
    return f"rank {thread.rank}" if thread.rank is not None else f"process {thread.pid}"


def of_cluster(cluster: StackCluster) -> str:
    """The ranks of a cluster, or its processes where no rank is known."""
    if cluster.ranks:
        return ranks(cluster.ranks)
    pids = [thread.pid for thread in cluster.threads if thread.pid is not None]
    if not pids:
        return units.count(len(cluster.threads), "process")
    return f"{'process' if len(pids) == 1 else 'processes'} {numbers_only(pids)}"


def place(cluster: StackCluster) -> str:
    """'in sleep ← load_batch (train.py:14)': the leaf, and the line of own code that it was called from."""
    if not cluster.frames:
        return "with no frame of Python"
    stopped = "stopped by a signal (state T), " if cluster.is_stopped else ""
    leaf, own = cluster.frames[0], cluster.own
    if own is None or own == leaf:
        return f"{stopped}in {where(leaf)}"
    return f"{stopped}in {leaf.function} ← {where(own)}"


def function(frames: Sequence[Frame]) -> str:
    return where(frames[0]) if frames else "a frame that is not told"


def where(frame: Frame) -> str:
    inside = LIBRARY.sub("", frame.file)
    short = inside if len(inside) <= LONGEST_FILE else f"…{inside[-LONGEST_FILE:]}"
    line = f":{frame.line}" if frame.line else ""
    return f"{frame.function} ({short}{line})" if short else frame.function


def heartbeat(beat: RankBeat) -> str:
    """A clause about one rank, without its stop."""
    stale = units.time(max(0, beat.written_ns - beat.time_ns))
    at = ", ".join(
        filter(
            None, (f"step {beat.step}" if beat.step is not None else "", f"phase {beat.phase!r}" if beat.phase else "")
        )
    )
    last = f" (last told: {at})" if at else ""
    match beat.condition:
        case "finished":
            return f"rank {beat.rank} finished{last}"
        case "ended":
            return f"rank {beat.rank} ended: {beat.ended}{last}"
        case "not written":
            return (
                f"rank {beat.rank} wrote its heartbeat {units.time(beat.behind_ns)} before the newest of another rank: "
                f"its host is gone, or its file is an older copy{last}"
            )
        case "stopped":
            return f"rank {beat.rank} is stopped by a signal or a debugger (state {beat.state}){last}"
        case "no Python":
            return f"rank {beat.rank} has run no Python for {stale} while its process lives: {beat.held}{last}"
        case "runs Python":
            silent = "" if beat.silent_ns is None else f", silent for {units.time(max(0, beat.silent_ns))}"
            return f"rank {beat.rank} runs Python{last}{silent}"


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


def suspect(each: Suspect) -> str:
    said = "".join(f"; {where.says}" for where in each.where)
    if not each.awaited_by:
        return f"Rank {each.rank} left no dump{said}."
    call = f" in {each.call}" if each.call is not None else ""
    return f"Rank {each.rank} left no dump, and {ranks(each.awaited_by)} may wait for it{call}{said}."


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
