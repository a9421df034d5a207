"""Faults that logs tell of, and recorders may not: whoever aborts in C++ leaves no dump of its last call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from diag.ranks.hang import Cause, Fault, Where
from diag.ranks.log_events import LogEvent


def size_faults(
    events: Sequence[LogEvent], ranks: Collection[int], rank_of_source: Mapping[int, int]
) -> Iterator[Fault]:
    """Gloo was sent more bytes than the collective has. Which side's tensor is wrong its message does not tell.

    `ranks`: all that are known. `rank_of_source`: of logs that are of one rank each.
    """
    where = []
    for event in events:
        rank = rank_of_source.get(event.source) if event.rank is None else event.rank
        if event.kind == "gloo.size" and rank is not None:
            where.append(_where(event, rank))
    if where:
        yield Fault(
            cause=Cause.TENSORS,
            ranks=(),
            group=None,
            call=None,
            sequence=None,
            waiting=(),
            candidates=tuple(sorted({*ranks, *(one.rank for one in where)})),
            where=tuple(where),
            confidence="medium",
            note="whose size is wrong, that of whoever sent or of whoever aborted, the log does not tell",
        )


def _where(event: LogEvent, rank: int) -> Where:
    received, expected = event.fields.get("received"), event.fields.get("expected")
    says = f"Gloo aborted it, for it was sent {received} bytes where its own tensor has room for {expected}"
    sql = f"SELECT * FROM log_event WHERE source_id = {int(event.source)} AND line = {int(event.line)}"
    return Where(rank, "size", says, None, sql)
