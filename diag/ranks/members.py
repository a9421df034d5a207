"""Which ranks a group has, as a recorder or trace noted it."""

from __future__ import annotations

from diag.model.benchmark import MOST_RANKS
from diag.store.json_column import json_list


def members_of(text: str | None) -> tuple[int, ...] | None:
    """None where they are not known: Gloo writes an empty list, and a case can be edited by hand.

    >>> members_of("[0, 8]"), members_of("[]"), members_of(None), members_of('["0", -1]')
    ((0, 8), None, None, None)
    """
    ranks = json_list(text)
    return tuple(ranks) if ranks and all(type(rank) is int and 0 <= rank < MOST_RANKS for rank in ranks) else None
