"""Single events of the Trace Event Format, the JSON that Perfetto and chrome://tracing read.

See "Trace Event Format" (Google, 2016). Each function returns one event as JSON text; a case may hold ten million of
them, and nothing is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

LONGEST_TEXT = 500
"""Characters. Every launch repeats its kernel's name, and names of 5,000 characters are common."""


@dataclass(frozen=True)
class Track:
    """A row of the picture: a group (a process, to the viewer) and a number that no other row has."""

    group: int
    number: int


def microseconds(ns: int) -> str:
    """Nanoseconds as a decimal number of microseconds, exactly.

    >>> microseconds(1_234_567), microseconds(5), microseconds(-1)
    ('1234.567', '0.005', '-0.001')
    """
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def encoded(text: str) -> str:
    r"""A text of any origin as a JSON string of ASCII characters; what is too long loses its middle.

    >>> print(encoded('gemm"\n\udce9'))
    "gemm\"\n\\udce9"
    """
    if len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2
        text = f"{text[:half]}…{text[-half:]}"
    return json.dumps(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def arguments(values: Mapping[str, int | str | None]) -> str:
    """A JSON object of those values that are known.

    >>> arguments({"bytes": 4096, "kind": "h2d", "stream": None})
    '{"bytes":4096,"kind":"h2d"}'
    """
    known = (
        f'"{key}":{encoded(value) if isinstance(value, str) else value}'
        for key, value in values.items()
        if value is not None
    )
    return "{" + ",".join(known) + "}"


def named_group(group: int, name: str, position: int) -> str:
    """The name of a group and its place among the others."""
    return (
        f'{{"ph":"M","name":"process_name","pid":{group},"args":{{"name":{encoded(name)}}}}},\n'
        f'{{"ph":"M","name":"process_sort_index","pid":{group},"args":{{"sort_index":{position}}}}}'
    )


def named_track(track: Track, name: str, position: int) -> str:
    """The name of a row and its place in its group."""
    row = f'"pid":{track.group},"tid":{track.number}'
    return (
        f'{{"ph":"M","name":"thread_name",{row},"args":{{"name":{encoded(name)}}}}},\n'
        f'{{"ph":"M","name":"thread_sort_index",{row},"args":{{"sort_index":{position}}}}}'
    )


def slice_event(track: Track, category: str, name: str, start_ns: int, end_ns: int, args: str = "{}") -> str:
    """Something that lasts. `name` and `args` are JSON already."""
    return (
        f'{{"ph":"X","cat":"{category}","name":{name},"pid":{track.group},"tid":{track.number},'
        f'"ts":{microseconds(start_ns)},"dur":{microseconds(end_ns - start_ns)},"args":{args}}}'
    )


def instant(track: Track, category: str, name: str, time_ns: int) -> str:
    """Something that happens at once, on one row."""
    return (
        f'{{"ph":"i","s":"t","cat":"{category}","name":{name},"pid":{track.group},"tid":{track.number},'
        f'"ts":{microseconds(time_ns)}}}'
    )


def arrow(number: int, start: tuple[Track, int], end: tuple[Track, int]) -> str:
    """An arrow between two slices: each end names a row and a time inside the slice, and follows it in the file."""
    (from_track, from_ns), (to_track, to_ns) = start, end
    return (
        f'{{"ph":"s","cat":"launch","name":"launch","id":{number},"pid":{from_track.group},'
        f'"tid":{from_track.number},"ts":{microseconds(from_ns)}}},\n'
        f'{{"ph":"f","bp":"e","cat":"launch","name":"launch","id":{number},"pid":{to_track.group},'
        f'"tid":{to_track.number},"ts":{microseconds(to_ns)}}}'
    )


def counter(group: int, name: str, time_ns: int, value: str) -> str:
    """One value of a time series of a group; `name` and `value` are JSON already."""
    return f'{{"ph":"C","name":{name},"pid":{group},"ts":{microseconds(time_ns)},"args":{{"value":{value}}}}}'
