"""JSON that others wrote: one object or one a line, decoded no further than it is asked for, numbers that can be."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from diag.errors import InputError
from diag.ingest.input_file import LATEST_NS, LONGEST_NS
from diag.model.serving_figures import UNITS
from diag.model.serving_metrics import Nanoseconds
from diag.model.units import count
from diag.serving.run import StatedFigure

MOST_BYTES = 256 << 20
"""Of a result: one of 20,000 requests with 500 times each has some 200 MB."""

MOST_RUNS = 10_000

LONGEST_SCALAR = 4096
"""Bytes of a number or text that is looked at; lists and what models answered are longer."""

MOST_COUNTED = 1 << 53
"""Of tokens and requests: what a float counts."""

Object = Mapping[str, msgspec.Raw]
T = TypeVar("T")

_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_NOT_JSON = re.compile(rb"(?<=[:\[, ])(-?Infinity|NaN)(?=\s*[,\]}])")
"""Python's json writes these, which are none of JSON's numbers."""


@dataclass
class Left:
    """What of a file is not read, counted; it becomes notes of the source."""

    counts: Counter[str] = field(default_factory=Counter)
    is_cut: bool = False

    def add(self, what: str, n: int = 1) -> None:
        self.counts[what] += n

    def notes(self) -> Iterator[str]:
        for what, n in (+self.counts).items():
            yield f"{what}: {n:,}."
        if self.is_cut:
            yield "The last line is cut: the run was killed, or the copy is not whole."


# ---- text to objects -----------------------------------------------------------------------------------------------


def read_bytes(path: Path, what: str) -> bytes:
    """Raises InputError for a file that is larger than any of its kind."""
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is larger than {what} can be ({MOST_BYTES >> 20} MiB). Split it by runs.")
    return path.read_bytes()


def objects(path: Path, what: str, left: Left) -> list[Object]:
    """The objects of a file that holds one, or one in each line. Raises InputError without any whole one."""
    data = read_bytes(path, what)
    whole = _object(data)
    if whole is not None:
        return [whole]
    found: list[Object] = []
    lines = [line for line in data.split(b"\n") if line.strip()]
    for number, line in enumerate(lines):
        one = _object(line)
        if one is not None:
            found.append(one)
        elif number == len(lines) - 1 and not data.endswith(b"\n"):
            left.is_cut = True
        else:
            left.add("Lines that hold no whole object, left out")
        check_runs(len(found), path)
    if not found:
        raise InputError(f"{path} is no whole {what}. Was the run interrupted, or the copy cut short?")
    return found


def check_runs(n: int, path: Path) -> None:
    """Raises InputError for more than any sweep has."""
    if n > MOST_RUNS:
        raise InputError(f"{path} has more than {count(MOST_RUNS, 'run')}. Split it by runs.")


def one_object(path: Path, what: str) -> Object:
    """Raises InputError for a file that is not one whole object."""
    found = _object(read_bytes(path, what))
    if found is None:
        raise InputError(f"{path} is no whole {what}. Was the run interrupted, or the copy cut short?")
    return found


def _object(text: bytes) -> Object | None:
    """None for what is no object; the second try is for numbers that only Python writes."""
    try:
        return _FIELDS.decode(text)
    except _ERRORS:
        if b"NaN" not in text and b"Infinity" not in text:
            return None
    try:
        return _FIELDS.decode(_NOT_JSON.sub(lambda match: b"null" if match[1] == b"NaN" else b'"inf"', text))
    except _ERRORS:
        return None


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decoded(raw: msgspec.Raw | None, kind: type[T]) -> T | None:
    """A value of a type; None where it is absent or of another."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except _ERRORS:
        return None


def fields(raw: msgspec.Raw | None) -> Object:
    return decoded(raw, dict[str, msgspec.Raw]) or {}


def at(document: Object, *names: str) -> msgspec.Raw | None:
    """A value inside objects inside each other."""
    for name in names[:-1]:
        document = fields(document.get(name))
    return document.get(names[-1])


def scalar(raw: msgspec.Raw | None) -> Any:
    """A number, text, truth or None; None for all that is longer or has parts."""
    if raw is None or len(memoryview(raw)) > LONGEST_SCALAR:
        return None
    try:
        found = msgspec.json.decode(raw)
    except _ERRORS:
        return None
    return found if isinstance(found, int | float | str) else None


# ---- values --------------------------------------------------------------------------------------------------------


def number(value: object) -> float | None:
    """A finite number, be it written as text; None for anything else."""
    if isinstance(value, str):
        value = _FLOAT.fullmatch(value) and float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


_FLOAT = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?")


def whole(value: object) -> int | None:
    """A count; None for anything else."""
    found = number(value)
    return int(found) if found is not None and 0 <= found <= MOST_COUNTED and found == int(found) else None


def text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def duration_ns(value: object, ns: float = 1e9) -> int | None:
    """A time that something took, of a number in units of `ns`; None for one that cannot be."""
    found = number(value)
    return None if found is None or not 0 <= found * ns <= LONGEST_NS else round(found * ns)


def time_ns(value: object) -> int | None:
    """A moment, of a number in seconds. Those since 1970 are no float of ns."""
    found = number(value)
    if found is None or abs(found) > LATEST_NS / 1e9:
        return None
    seconds, rest = divmod(found, 1)
    return int(seconds) * 1_000_000_000 + round(rest * 1e9)


def gaps_ns(values: Sequence[float], ns: float = 1e9) -> Nanoseconds | None:
    """(values,) times between outputs, of numbers in units of `ns`; None where they cannot be, as if negative."""
    gaps = np.array(values, np.float64)
    if not (np.isfinite(gaps).all() and (gaps >= 0).all() and (gaps <= LONGEST_NS / ns).all()):
        return None
    gaps *= ns
    return np.rint(gaps).astype(np.int64) if gaps.sum() <= LONGEST_NS else None


# ---- figures -------------------------------------------------------------------------------------------------------


def figure(name: str, statistic: str, value: object, stated_as: str, factor: float = 1.0) -> Iterator[StatedFigure]:
    """One, or none where the value is no number that can be. `factor` brings it to the unit of that name."""
    found = number(value)
    if found is not None and 0 <= found * factor <= MOST_STATED:
        yield StatedFigure(name, statistic, found * factor, UNITS[name], stated_as[:LONGEST_NAME])


MOST_STATED = 1e100
"""Of any figure: products of two, as checks make them, are numbers still."""
LONGEST_NAME = 120
MOST_FIGURES = 2_000
"""Of one run."""


def bounded(figures: Iterator[StatedFigure]) -> Sequence[StatedFigure]:
    return [each for each, _ in zip(figures, range(MOST_FIGURES), strict=False)]
