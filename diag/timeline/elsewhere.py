"""What must be said of a case that was gathered from shards: what it lacks is not absent, it lies elsewhere."""

from __future__ import annotations

import shlex

from diag.model.units import count
from diag.store.case import Case

MOST_NAMED = 2


def elsewhere(case: Case) -> str | None:
    """A sentence about the traces whose events are not in the case; None where it holds those of all."""
    apart = [source for source in case.sources if source.shard is not None]
    if not apart:
        return None
    some = shlex.join(source.path for source in apart[:MOST_NAMED])
    return (
        f"The events of {count(len(apart), 'trace')} are not in this case, which holds what a report takes of them. "
        f"To see them, name the traces instead of it, some at a time: {some}"
    )
