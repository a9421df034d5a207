"""NVTX ranges around a launch, as the columns of `--nvtx` hold them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.ingest.launch_records import OpenRange

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
