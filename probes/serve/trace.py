"""Traces of real services: when requests came, and how long they were.

As JSON lines or as CSV, in diag's own fields or in those of three published traces:

    diag        arrival_s, prompt_tokens, output_tokens
    Mooncake    timestamp (ms), input_length, output_length      github.com/kvcache-ai/Mooncake
    BurstGPT    Timestamp (s), Request tokens, Response tokens   github.com/HPMLL/BurstGPT
    Azure       TIMESTAMP (a date), ContextTokens, GeneratedTokens   github.com/Azure/AzurePublicDataset
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from diag.errors import InputError
from diag.model.token_lengths import LONGEST
from diag.probes.serve.arrivals import NS_PER_S

LONGEST_LINE = 1 << 20
LONGEST_NS = 366 * 24 * 3600 * NS_PER_S


@dataclass(frozen=True)
class Trace:
    """`arrivals_ns` after the first, ascending. Lengths are of the same requests; None where the file has none."""

    arrivals_ns: tuple[int, ...]
    prompt_tokens: tuple[int, ...] | None
    output_tokens: tuple[int, ...] | None


@dataclass(frozen=True)
class _Layout:
    time: str
    ns: Callable[[Any], int]
    prompt: str
    output: str


def _of_units(per_s: int) -> Callable[[Any], int]:
    def ns(value: Any) -> int:
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"{value} is no time")
        return round(number * (NS_PER_S // per_s))

    return ns


def _of_date(value: Any) -> int:
    """Digits past microseconds are dropped, as a datetime holds none."""
    day = datetime.fromisoformat(str(value)[:26])
    since = day.replace(tzinfo=None) - datetime(2000, 1, 1)  # noqa: DTZ001  # only differences count
    return (since.days * 86_400 + since.seconds) * NS_PER_S + since.microseconds * 1000


_LAYOUTS = (
    _Layout("arrival_s", _of_units(1), "prompt_tokens", "output_tokens"),
    _Layout("timestamp", _of_units(1000), "input_length", "output_length"),
    _Layout("Timestamp", _of_units(1), "Request tokens", "Response tokens"),
    _Layout("TIMESTAMP", _of_date, "ContextTokens", "GeneratedTokens"),
)


def read_trace(path: Path, most: int) -> Trace:
    """The first `most` requests. Raises InputError, which says which line is wrong.

    Requests without a prompt or without output are left out: there is nothing to send, or to wait for.
    """
    try:
        with path.open(encoding="utf-8", newline="") as opened:
            rows = list(islice(_rows(path, opened.readline), most))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InputError(f"The trace {path} cannot be read: {why}.") from error
    if not rows:
        raise InputError(f"The trace {path} holds no request.")
    rows.sort(key=lambda row: row[0])
    times, prompts, outputs = zip(*rows, strict=True)
    if times[-1] - times[0] > LONGEST_NS:
        raise InputError(f"The trace {path} is longer than a year. Are its times in the unit that its layout says?")
    return Trace(tuple(each - times[0] for each in times), _all_or_none(prompts), _all_or_none(outputs))


def _all_or_none(tokens: tuple[int | None, ...]) -> tuple[int, ...] | None:
    seen = tuple(each for each in tokens if each is not None)
    return seen if len(seen) == len(tokens) else None


_Row = tuple[int, int | None, int | None]


def _rows(path: Path, readline: Callable[[int], str]) -> Iterator[_Row]:
    """Time in ns, tokens of the prompt, of the output."""
    layout: _Layout | None = None
    for number, values in _values(path, readline):
        layout = layout or next((each for each in _LAYOUTS if each.time in values), None)
        if layout is None:
            raise InputError(f"The trace {path} has no arrival times. Give each request arrival_s, in seconds.")
        try:
            row = (layout.ns(values[layout.time]), _tokens(values, layout.prompt), _tokens(values, layout.output))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"Line {number} of the trace {path} holds no request ({error}).") from error
        if row[1] != 0 and row[2] != 0:
            yield row


def _tokens(values: Mapping[str, Any], name: str) -> int | None:
    if values.get(name) in (None, ""):
        return None
    tokens = int(values[name])
    if not 0 <= tokens <= LONGEST:
        raise ValueError(f"{name} is {tokens:,}")
    return tokens


def _values(path: Path, readline: Callable[[int], str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Line numbers and what each line says, of either form."""
    lines = _lines(path, readline)
    first = next(lines, None)
    if first is None:
        return
    if not first[1].lstrip().startswith("{"):
        header = _cells(path, *first)
        for number, line in lines:
            yield number, dict(zip(header, _cells(path, number, line), strict=False))
        return
    for number, line in chain([first], lines):
        try:
            values = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(f"Line {number} of the trace {path} is not JSON ({error}).") from error
        if not isinstance(values, dict):
            raise InputError(f"Line {number} of the trace {path} is no JSON object.")
        yield number, values


def _cells(path: Path, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except csv.Error as error:
        raise InputError(f"Line {number} of the trace {path} is not CSV ({error}).") from error


def _lines(path: Path, readline: Callable[[int], str]) -> Iterator[tuple[int, str]]:
    """Those that hold something, by number."""
    number = 0
    while line := readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise InputError(f"Line {number} of the trace {path} is longer than {LONGEST_LINE:,} characters.")
        if line.strip():
            yield number, line
