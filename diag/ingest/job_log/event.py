"""A line that means something, and the table by which families of messages are recognised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LONGEST_READ = 2000

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Who wrote a line, as far as it says so."""

    host: str | None = None
    pid: int | None = None
    tid: int | None = None
    rank: int | None = None  # in the job
    device: int | None = None  # local
    local_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One row of log_event."""

    line: int
    kind: str
    fields: Fields
    text: str
    place: Place = Place()
    time_ns: int | None = None
    communicator: str | None = None


@dataclass(frozen=True)
class Form:
    """A message by its shape. Every repetition in a pattern is bounded or over what its neighbours cannot match, so
    that no line takes more than time in proportion to its length.
    """

    kind: str
    mark: str
    pattern: re.Pattern[str]
    also: Fields = field(default_factory=dict)  # what a message of this form says without a number of its own


def form(kind: str, mark: str, pattern: str, **also: Any) -> Form:
    return Form(kind, mark, re.compile(pattern), also)


def recognised(text: str, forms: Sequence[Form]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and fields by the first form that fits."""
    for each in forms:
        if each.mark in text and (match := each.pattern.search(text)):
            yield each.kind, {**fields_of(match), **each.also}
            return


_AS_WRITTEN = frozenset(
    {"bus_id", "comm", "comm_id", "version", "cuda", "value", "file", "order", "group", "job", "step", "tasks", "pci"}
)
"""Groups whose digits are a name or hexadecimal."""

_WHOLE = re.compile(r"-?\d{1,18}")
_DECIMAL = re.compile(r"-?\d{1,18}\.\d{1,18}")


def fields_of(match: re.Match[str]) -> dict[str, Any]:
    """The named groups that took part, numbers as numbers."""
    return {name: value(name, text) for name, text in match.groupdict().items() if text is not None}


def value(name: str, text: str) -> int | float | str:
    """
    >>> value("rank", "3"), value("bandwidth", "20.0"), value("bus_id", "17000")
    (3, 20.0, '17000')
    """
    if name not in _AS_WRITTEN:
        if _WHOLE.fullmatch(text):
            return int(text)
        if _DECIMAL.fullmatch(text):
            return float(text)
    return text.strip()[:LONGEST_READ]


def shown(text: str) -> str:
    """A line, or what one says, before secrets are taken out of it and it is cut."""
    return text.strip()[:LONGEST_READ]
