"""Faults that logs tell of, and recorders may not: whoever aborts in C++ leaves no dump of its last call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from diag.ranks.hang import Cause, Fault, Where
from diag.ranks.log_events import LogEvent


def size_faults(events: Sequence[LogEvent], ranks: Collection[int]) -> Iterator[Fault]:
    """Gloo was sent more bytes than the collective has. Which side's tensor is wrong its message does not tell.

    `ranks`: all that are known.
    """
    aborted = [event for event in events if event.kind == "gloo.size"]
    candidates = {*ranks, *(event.rank for event in aborted if event.rank is not None)}
    if aborted and candidates:
        sizes = aborted[0].fields
        yield Fault(
            cause=Cause.TENSORS,
            ranks=(),
            group=None,
            call=None,
            sequence=None,
            waiting=(),
            candidates=tuple(sorted(candidates)),
            where=tuple(_where(event, event.rank) for event in aborted if event.rank is not None),
            confidence="medium",
            note=f"Gloo aborted a rank that was sent {sizes.get('received')} bytes where its own tensor takes "
            f"{sizes.get('expected')}: whose size is wrong, that of the rank that sent or of the one that aborted, "
            "its message does not tell",
        )


def _where(event: LogEvent, rank: int) -> Where:
    sql = f"SELECT * FROM log_event WHERE source_id = {int(event.source)} AND line = {int(event.line)}"
    return Where(rank, "size", f"its log says: {event.text}", None, sql)
