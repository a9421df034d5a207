"""What rules about logs have in common: whom an answer is about, and the SQL that shows the lines behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from diag.ranks.job import Job
from diag.rules.finding import Subject

MOST_NAMED = 8


def subject_of(job: Job, ranks: Iterable[int] = ()) -> Subject:
    """The job by the first of its logs, and the ranks that are meant."""
    source = next((source.id for source in job.sources if source.captured("log_event")), job.sources[0].id)
    named = tuple(sorted(set(ranks)))
    return Subject(source, ranks=named or None)


def lines_of(*kinds: str) -> str:
    """The lines of some kinds, which are this program's own words."""
    among = ", ".join(f"'{kind}'" for kind in kinds)
    return (
        "SELECT s.path, e.line, e.host, e.rank, e.device, e.communicator, e.fields, e.text "
        "FROM log_event e JOIN source s ON s.id = e.source_id "
        f"WHERE e.kind IN ({among}) ORDER BY e.source_id, e.line"
    )


def named(names: Sequence[object], of: str = "") -> str:
    """
    >>> named(["n1", "n2"]), named("abcdefghij", "host")
    ('n1, n2', 'hosts a, b, c, d, e, f, g, h and 2 more')
    """
    shown = ", ".join(map(str, names[:MOST_NAMED]))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    word = f"{of}{'s' if len(names) != 1 else ''} " if of else ""
    return f"{word}{shown}{more}"


NO_NCCL = (
    "NCCL says nothing of itself in these logs: run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH, and "
    "keep the output of every rank"
)
