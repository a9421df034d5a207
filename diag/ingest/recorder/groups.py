"""The process groups of a dump: its configuration is keyed by name, its status by number, and entries know both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from diag.errors import InputError
from diag.ingest.recorder.dump import ProcessGroup
from diag.ingest.recorder.layout import GroupConfig, RawDump

Key = tuple[int | None, str | None]
"""What an entry says of its group: number and name."""

_RANKS = re.compile(r"\s*\[\s*((?:[0-9]{1,9}\s*(?:,\s*[0-9]{1,9}\s*)*)?)\]\s*")
_NUMBER = re.compile(r"[0-9]{1,18}")


def groups_of(raw: RawDump, described: Mapping[Key, str | None]) -> list[ProcessGroup]:
    """All groups, by number and then by name. `described` are those of the entries, each with its description.

    Raises InputError where ranks or numbers are none.
    """
    by_name = dict(_by_name(raw))
    by_number = {key: ranks for key, ranks in (raw.pg_config or {}).items() if isinstance(key, int)}
    status = {_number(text): each for text, each in (raw.pg_status or {}).items()}
    keys = _keys([*status, *by_number], list(by_name), described)
    newest = dict(sorted(((name, number) for number, name in keys), key=_in_order))
    found = []
    for number, name in sorted(keys, key=lambda key: _in_order((key[1], key[0]))):
        # A group made anew under the same name takes the place of the one before.
        config = by_name.get(name) if name is not None and newest[name] == number else None
        at = status.get(number) if number is not None else None
        ranks = _ranks(config.ranks) if config else by_number.get(number) if number is not None else None
        found.append(
            ProcessGroup(
                local_id=number,
                name=name,
                description=(config.desc if config else None) or described.get((number, name)),
                ranks=ranks if isinstance(ranks, list) and ranks else None,
                last_enqueued=at.last_enqueued_collective if at else None,
                last_started=at.last_started_collective if at else None,
                last_completed=at.last_completed_collective if at else None,
            )
        )
    return found


def _in_order(named: tuple[str | None, int | None]) -> tuple[bool, int, str]:
    """Groups of unknown number come last."""
    name, number = named
    return number is None, number or 0, name or ""


def _by_name(raw: RawDump) -> Iterator[tuple[str, GroupConfig]]:
    """Gloo (torch 2.13) writes all of its groups under the name '', one over the other: that tells nothing of any."""
    for name, config in (raw.pg_config or {}).items():
        if isinstance(name, str) and name:
            yield name, config if isinstance(config, GroupConfig) else GroupConfig(ranks=config)


def _keys(numbers: Sequence[int], names: Sequence[str], described: Mapping[Key, str | None]) -> set[Key]:
    """Every group once, by all that is known of it: a name without a number where nothing tells which it has."""
    name_of = {number: name for number, name in described if number is not None and name is not None}
    name_of |= dict(_by_creation(sorted(numbers), names, name_of))
    keys = set(described)
    keys.update((number, name_of.get(number)) for number in numbers)
    named = {name for _, name in keys}
    return keys | {(None, name) for name in names if name not in named}


def _by_creation(numbers: Sequence[int], names: Sequence[str], known: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """Names of numbers that no entry tells, where the order in which groups were made leaves one possibility.

    PyTorch counts up for both: the number for each group that the rank is in, the name for each group of the job, so
    that both grow together. Between two groups that entries know, and only if equally many lie there by number as by
    name, they are the same ones in the same order. Names that are no numbers tell no order.
    """
    ordered = sorted(int(name) for name in names if _NUMBER.fullmatch(name))
    anchors = sorted((number, int(name)) for number, name in known.items() if _NUMBER.fullmatch(name))
    is_in_order = all(left[1] < right[1] for left, right in pairwise(anchors))
    if len(ordered) < len(names) or len(anchors) < len(known) or not is_in_order:
        return
    for (low, low_name), (high, high_name) in pairwise([(-1, -1), *anchors, (1 << 63, 1 << 63)]):
        between = [number for number in numbers if low < number < high]
        named = [name for name in ordered if low_name < name < high_name]
        if len(between) == len(named):
            yield from zip(between, map(str, named), strict=True)


def _number(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise InputError("a process group in its pg_status has a number that is none")
    return int(text)


def _ranks(ranks: str | list[int] | None) -> list[int] | None:
    if ranks is None or isinstance(ranks, list):
        return ranks
    inside = _RANKS.fullmatch(ranks)
    if inside is None:
        raise InputError("a process group in its pg_config has ranks that are no list of numbers")
    return [int(number) for number in inside[1].split(",") if number.strip()]
