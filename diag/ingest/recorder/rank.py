"""Whose dump it is. It does not say so: its groups tell, or its file's name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from diag.ingest.recorder.dump import ProcessGroup

_NAMED = re.compile(r"rank[_\-.]?(\d{1,9})", re.IGNORECASE)
_LAST = re.compile(r"(?:^|\D)(\d{1,9})$")
SUFFIXES = (".json", ".pkl", ".pickle", ".bin", ".dump")


@dataclass(frozen=True)
class Rank:
    rank: int | None
    origin: str | None  # as source.rank_origin
    world_size: int | None  # by the default group
    note: str | None = None


def rank_of(groups: Sequence[ProcessGroup], path: Path) -> Rank:
    """A process is a member of every group that it recorded: the only rank that is in all of them is its own."""
    members = [frozenset(group.ranks) for group in groups if group.ranks]
    possible = reduce(frozenset.intersection, members) if members else frozenset()
    named = _in_name(path)
    world_size = next((len(group.ranks) for group in groups if group.ranks and _is_default(group)), None)
    if len(possible) == 1:
        (rank,) = possible
        note = None
        if named is not None and named != rank:
            note = f"Its groups say that it is of rank {rank}, its name says {named}: its groups are believed."
        return Rank(rank, "groups", world_size, note)
    if named is None:
        return Rank(None, None, world_size, "Nothing tells which rank it is of.")
    if possible and named not in possible:
        note = f"Its name says that it is of rank {named}, which is not in its groups: it is not known which it is of."
        return Rank(None, None, world_size, note)
    return Rank(named, "file name", world_size)


def _is_default(group: ProcessGroup) -> bool:
    return group.description == "default_pg" or group.name == "0"


def _in_name(path: Path) -> int | None:
    stem = path.stem if path.suffix.lower() in SUFFIXES else path.name
    found = [*_NAMED.finditer(stem)][-1:] or [*_LAST.finditer(stem)]
    return int(found[0][1]) if found else None
