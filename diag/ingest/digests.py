"""Inputs by their content: what would count twice is read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from diag.errors import InputError, UsageError
from diag.ingest.input_file import Progress
from diag.ingest.inputs import Input
from diag.ingest.settled import companions
from diag.store.cache import Cache, file_digest

Digests = Mapping[Path, Sequence[str]]
"""SHA-256 of each input and of what lies beside it; empty of one that cannot be read."""


def with_digests(
    inputs: Sequence[Input], cache: Cache | None = None, *, tolerant: bool = False
) -> tuple[list[Input], Digests]:
    """Raises InputError when one cannot be read; if `tolerant`, it is an input that says why."""
    digest = cache.digest if cache else file_digest
    told: list[Input] = []
    digests: dict[Path, Sequence[str]] = {}
    for given in inputs:
        try:
            files = () if given.unread else (given.path, *companions(given.path))
            digests[given.path] = [digest(file) for file in files] or [""]
            told.append(given)
        except InputError as error:
            if not tolerant:
                raise
            digests[given.path] = [""]
            told.append(replace(given, unread=str(error)))
    return told, digests


_NAMED_FOR_RANKS = {"flight-recorder", "stack-dump"}
"""Kinds of which the name alone may say whose they are: ranks that have called nothing yet have equal dumps."""

_ONE_FOR_EACH_RANK = {*_NAMED_FOR_RANKS, "heartbeat", "job-log"}
"""Kinds of which a user names hundreds at once: ranks that ended alike have equal logs, which is no mistake."""


def distinct(inputs: Sequence[Input], digests: Digests, note: Progress, *, tolerant: bool) -> list[Input]:
    """The inputs without those whose content would count twice.

    Copies that lie in a folder are passed over and noted, and so are equal logs of ranks. Raises UsageError when the
    user named two others that are equal, unless `tolerant`.
    """
    first: dict[tuple[str, ...], Input] = {}
    for given in inputs:
        name = str(given.path) if given.unread else given.path.name if given.kind in _NAMED_FOR_RANKS else ""
        same = first.setdefault((name, *digests[given.path]), given)
        if same is given:
            continue
        if not (tolerant or given.in_folder or same.in_folder or given.kind in _ONE_FOR_EACH_RANK):
            raise UsageError(f"{given.path} has the same content as {same.path}. Name one of them.")
        note(f"{given.path} has the same content as {same.path}; it is read once.")
    return list(first.values())
