"""Puts the ranks of a job on one axis: what their clocks differ by is stored with their sources.

`source.clock_offset_ns` is set so that it is exact in the middle of the source's record; `clock_drift` keeps what the
clock gains. Views apply the offset alone: `clock_error_ns` is the error of the clock against the first rank's, with
what the drift adds towards both ends. A clock that is off by less than its error is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diag.model import units
from diag.ranks.clocks import Clocks, fit_clocks
from diag.ranks.matching import match
from diag.ranks.side_by_side import numbered
from diag.ranks.summarise import calls_of
from diag.ranks.summary import RankCalls
from diag.store.case import Case
from diag.timeline.joined import traces_of


def align_ranks(case: Case, calls: Iterable[RankCalls]) -> None:
    """Stores what collectives tell about the clocks of the case. Nothing changes where they tell nothing."""
    ranks, _ = numbered(calls)
    if len({rank.source for rank in ranks}) < 2:
        return
    matches = match(ranks)
    clocks = fit_clocks(ranks, matches)
    if clocks.reference is None:
        return
    for at, rank in enumerate(ranks):
        if clocks.is_known[at] and rank.source != ranks[clocks.reference].source:
            _store(case, ranks, clocks, at)
    case.forget_sources()


def calls_in(case: Case) -> Iterator[RankCalls]:
    """Of one trace after the other: each is let go before the next is loaded."""
    traces = traces_of(case)[::-1]
    while traces:
        yield from calls_of(traces.pop())


def _store(case: Case, ranks: list[RankCalls], clocks: Clocks, at: int) -> None:
    reference = clocks.reference or 0
    source, leader = case.source(ranks[at].source), case.source(ranks[reference].source)
    calls = ranks[at].calls
    middle_ns = (int(calls.start_ns[0]) + int(calls.end_ns.max())) // 2
    half_ns = (int(calls.end_ns.max()) - int(calls.start_ns[0])) / 2
    # In whole numbers as far as it goes: times since 1970 have more digits than a float.
    on_axis = (middle_ns - int(clocks.pivot_ns[at])) * float(clocks.slope[at]) + float(clocks.shift_ns[at])
    offset_ns = int(clocks.pivot_ns[reference]) + leader.clock_offset_ns - int(clocks.pivot_ns[at]) + round(on_axis)
    error_ns = float(clocks.error_ns[at] + clocks.error_ns[reference])
    moved_ns, drift = offset_ns - source.clock_offset_ns, clocks.drift(at)
    is_moved = abs(moved_ns) > error_ns
    shown_ns = round(error_ns + abs(float(clocks.slope[at])) * half_ns)
    case.db.execute(_SET, (moved_ns if is_moved else 0, source.id))
    case.db.execute(_DESCRIBE, (shown_ns, drift, source.id))
    how = f"is moved by {units.time(moved_ns)}, give or take" if is_moved else "agrees with the first rank's within"
    drifts = f"; it {'gains' if drift > 0 else 'loses'} {units.time(abs(drift) * 1e9)} in a second" if drift else ""
    text = (
        f"Its clock {how} {units.time(error_ns)}{drifts}, as told by the common ends of collectives of "
        f"{ranks[reference].label} ({leader.path}) and {ranks[at].label}."
    )
    case.insert("source_note", [{"source_id": source.id, "text": text}])


_SET = "UPDATE source SET clock_offset_ns = clock_offset_ns + ? WHERE ? IN (id, joined_to)"
_DESCRIBE = "UPDATE source SET clock_error_ns = ?, clock_drift = ? WHERE id = ?"
