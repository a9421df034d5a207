"""NVTX ranges around a launch, as CSV has them in two columns and the text page as a list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from diag.ingest.launch_records import OpenRange
from diag.ingest.ncu_output.printed import Printed

PUSHED = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
STARTED = "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
"""The names of the columns. PL: payload, CLR: color, Msg: message."""

LONGEST_RANGES = 1 << 20
MOST_RANGES = 1000

_BETWEEN = '"  "'
_ATTRIBUTES = re.compile(r":(?:none|[A-Z]\w*):[^:]*:(?:none|[A-Z]+):[^:]*:(?:none|[A-Z]\w*):")


def pushed(column: str) -> Iterator[OpenRange]:
    """Of `101  "<default domain>:step 3:none:none:none:none:none:none"  "..." `, where 101 is the thread.

    >>> list(pushed('101  "<default domain>:step 3:none:none:none:none:none:none" '))
    [OpenRange(depth=0, kind='push', domain='<default domain>', name='step 3')]
    """
    depths: dict[str, int] = {}
    for text in _entries(column):
        domain, _, rest = text.partition(":")
        depth = depths[domain] = depths.get(domain, -1) + 1
        yield OpenRange(depth, "push", domain, _without_attributes(rest))


def started(column: str) -> Iterator[OpenRange]:
    """Of ` "3:domain:epoch 1:none:none:none:none:none:none" `, where 3 is the range's id."""
    for depth, text in enumerate(_entries(column)):
        domain, _, rest = text.partition(":")[2].partition(":")
        yield OpenRange(depth, "start", domain, _without_attributes(rest))


def thread_of(column: str) -> int | None:
    """The host thread that launched the kernel."""
    first = column.partition('"')[0].strip()
    return int(first) if first.isascii() and first.isdigit() and len(first) < 20 else None


def _entries(column: str) -> list[str]:
    inside = column[:LONGEST_RANGES].partition('"')[2].rstrip().removesuffix('"')
    return inside.split(_BETWEEN, MOST_RANGES)[:MOST_RANGES] if inside else []


def _without_attributes(text: str) -> str:
    """Its name alone, which may have colons of its own."""
    match = _ATTRIBUTES.search(text)
    return text if match is None else text[: match.start()]


class ListedRanges:
    """A list of ranges that begins below the line of a launch, by thread and domain."""

    _HEAD = re.compile(r"\s+NVTX (?:(Start/End) Ranges|Push/Pop Stack for Thread ([0-9]{1,18})):\s*")
    _RANGE = re.compile(r"\s+<[0-9]{1,18},(.*)>\s*")
    _ATTRIBUTE_INDENT = 10

    def __init__(self) -> None:
        self._kind: Literal["start", "push"] | None = None
        self._domain = ""
        self._depth = 0

    def take(self, line: str, launch: Printed) -> bool:
        """Takes a line into the launch if it is one of a list."""
        if match := self._HEAD.fullmatch(line):
            self._kind, self._domain, self._depth = "start" if match[1] else "push", "", 0
            launch.tid = int(match[2]) if match[2] else launch.tid
            return True
        if self._kind is None:
            return False
        if match := self._RANGE.fullmatch(line):
            if len(launch.ranges) < MOST_RANGES:
                launch.ranges.append(OpenRange(self._depth, self._kind, self._domain, match[1]))
            self._depth += 1
        elif len(line) - len(line.lstrip()) < self._ATTRIBUTE_INDENT:
            self._domain, self._depth = line.strip(), 0
        return True
