"""The process groups of a dump: its configuration is keyed by name, its status by number, and entries know both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from diag.errors import InputError
from diag.ingest.recorder.dump import Group
from diag.ingest.recorder.layout import GroupConfig, GroupStatus

Key = tuple[int | None, str | None]
"""What an entry says of its group: number and name."""

_RANKS = re.compile(r"\s*\[([\d\s,]*)\]\s*")
MOST_RANKS = 1 << 20
_NUMBER = re.compile(r"\d{1,18}")


def groups_of(
    config: Mapping[str, GroupConfig], status: Mapping[str, GroupStatus], named: Mapping[Key, str | None]
) -> list[Group]:
    """All groups, by number and then by name.

    `named` are those of the entries, with their descriptions. Raises InputError where ranks are none.
    """
    by_id: dict[int | None, GroupStatus] = {_group_number(text): each for text, each in status.items()}
    name_of: dict[int | None, str] = {number: name for number, name in named if number is not None and name is not None}
    name_of |= _by_creation(sorted(map(_group_number, status)), list(config), name_of)
    numbers = {*by_id, *(number for number, _ in named if number is not None)}
    pairs = set(named)
    pairs.update((number, name_of.get(number)) for number in numbers)
    pairs |= {(None, name) for name in config.keys() - {name for _, name in pairs}}
    newest = {name: number for number, name in sorted(pairs, key=_in_order)}
    return [
        _group(number, name, config.get(name or "") if newest[name] == number else None, by_id.get(number), named)
        for number, name in sorted(pairs, key=_in_order)
    ]


def _in_order(key: Key) -> tuple[bool, int, str]:
    number, name = key
    return number is None, number or 0, name or ""


def _group(
    number: int | None,
    name: str | None,
    config: GroupConfig | None,
    status: GroupStatus | None,
    named: Mapping[Key, str | None],
) -> Group:
    """`config` is that of the newest group of this name: a group made anew takes the place of the one before."""
    return Group(
        local_id=number,
        name=name,
        description=(config.desc if config else None) or named.get((number, name)),
        ranks=_ranks(config.ranks) if config else None,
        last_enqueued=status.last_enqueued_collective if status else None,
        last_started=status.last_started_collective if status else None,
        last_completed=status.last_completed_collective if status else None,
    )


def _group_number(text: str) -> int:
    if _NUMBER.fullmatch(text) is None:
        raise InputError("a process group in its pg_status has a number that is none")
    return int(text)


def _ranks(ranks: str | list[int] | None) -> list[int] | None:
    if ranks is None or isinstance(ranks, list):
        return ranks
    inside = _RANKS.fullmatch(ranks)
    if inside is None or len(numbers := inside[1].split(",")) > MOST_RANKS:
        raise InputError("a process group in its pg_config has ranks that are no list of numbers")
    return [int(number) for number in numbers if number.strip()]


def _by_creation(
    numbers: Sequence[int], names: Iterable[str], known: Mapping[int | None, str]
) -> Iterator[tuple[int, str]]:
    """Names of numbers that no entry tells, where the order in which groups were made leaves one possibility.

    PyTorch counts up for both: the number for each group that the rank is in, the name for each group of the job, so
    that both grow together. Between two groups that entries know, and only if equally many lie there by number as by
    name, they are the same ones in the same order. Names that are no numbers tell no order.
    """
    if not all(_NUMBER.fullmatch(name) for name in names):
        return
    ordered = sorted(map(int, names))
    anchors = sorted(
        (number, int(name)) for number, name in known.items() if number is not None and _NUMBER.fullmatch(name)
    )
    if any(left[1] >= right[1] for left, right in pairwise(anchors)):
        return
    for (low, low_name), (high, high_name) in pairwise([(-1, -1), *anchors, (1 << 63, 1 << 63)]):
        between = [number for number in numbers if low < number < high]
        named = [name for name in ordered if low_name < name < high_name]
        if len(between) == len(named):
            yield from zip(between, map(str, named), strict=True)
