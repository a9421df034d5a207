"""Decodes many messages of one kind at once, with NumPy: the first field of each, then the second, to the last.

Protobuf makes an object of every message, and of every value when it is read; here a step of some array operations
reads one field of thousands of messages, in a third of the time (`tests/bench/bench_nsys_rep.py`). Fields are
written in the order of their numbers, so that there are hardly more steps than different fields.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from diag.ingest.messages import NO_TEXT, Field, Message, Scalar
from diag.ingest.nsys_rep.encoded import Encoded, Positions
from diag.ingest.nsys_rep.wire import FIXED32, FIXED64, LENGTH, VARINT

MOST_STEPS = 1 << 16
"""For the messages of a block: a step takes as long for one of them as for a hundred."""
MOST_WAITS = 256
"""How often messages wait for others that have a field before their next, as when an optional one is there."""
MOST_UNDECLARED = 64
"""Fields that are told apart of those that are not declared, for each takes a byte of every message."""

_NOWHERE = -1
_WIRE_TYPES = {Scalar.INT: VARINT, Scalar.DOUBLE: FIXED64, Scalar.FLOAT: FIXED32, Scalar.BYTES: LENGTH}
_UNKNOWN = ("", Field(0), -1)


def decoded(messages: Sequence[bytes], declared: Message) -> Fields:
    """The fields of encoded messages. Raises DecodeError when one of them is damaged."""
    encoded = Encoded(messages)
    return Fields(_Reading(encoded, encoded.starts, encoded.ends, _Level(declared), Counter()))


class Fields:
    """What many messages hold, by field. What a nested message holds that is not repeated is as if it were the outer
    one's, by its path: "kernel.gridX".
    """

    def __init__(self, reading: _Reading, at: NDArray[np.intp] | None = None) -> None:
        self._reading = reading
        self._at: slice | NDArray[np.intp] = slice(None) if at is None else at
        self._n = reading.n if at is None else len(at)

    @property
    def undeclared(self) -> Counter[str]:
        """How many messages hold a field which is not declared, by the numbers on the way to it, as "8.30"; those of
        repeated messages when these are asked for.
        """
        return self._reading.undeclared

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, path: str) -> NDArray[Any]:
        """The number of each message, or its default."""
        return self._reading.column(path)[self._at]

    def have(self, path: str) -> NDArray[np.bool_]:
        """Which messages have a text, or a nested message."""
        have: NDArray[np.bool_] = self._spans(path)[0] != _NOWHERE
        return have

    def numbers(self, paths: Iterable[str]) -> dict[str, NDArray[Any]]:
        """The number of each message, or its default, by the last part of the path; without fields that none has."""
        return {_name(path): self[path] for path in paths if path in self._reading.numbers}

    def texts(self, paths: Iterable[str]) -> dict[str, list[bytes]]:
        """As `numbers`."""
        return {_name(path): self.text(path) for path in paths if path in self._reading.spans}

    def text(self, path: str) -> list[bytes]:
        """The text of each message, or its default."""
        starts, ends = self._spans(path)
        lacking = starts == _NOWHERE
        encoded = self._reading.encoded
        default_ends = encoded.nothing_at + (self._reading.field(path).default == NO_TEXT)  # a NUL lies there
        return encoded.slices(np.where(lacking, encoded.nothing_at, starts), np.where(lacking, default_ends, ends))

    def repeated(self, path: str) -> list[bytes]:
        """What each message holds of a repeated text: a message that holds nothing else, still encoded."""
        if path not in self._reading.spans:
            return [b""] * self._n
        return self._reading.encoded.slices(*self._spans(path))

    def n_nested(self, path: str) -> int:
        """How many messages are in a repeated field of all the messages together."""
        return self._reading.n_nested(path)

    def nested(self, path: str) -> tuple[Positions, Fields]:
        """The messages in a repeated field, and in which message each is, in order."""
        owners, inner = self._reading.nested(path)
        places = np.full(self._reading.n, _NOWHERE)
        places[self._at] = np.arange(self._n)
        there = np.flatnonzero(places[owners] != _NOWHERE)
        return places[owners[there]], inner.those(there)

    def those(self, at: NDArray[np.intp]) -> Fields:
        """Some of the messages."""
        return self if len(at) == self._n else Fields(self._reading, np.arange(self._reading.n)[self._at][at])

    def having(self, path: str) -> Fields:
        return self.those(np.flatnonzero(self.have(path)))

    def grouped(self, by: NDArray[Any]) -> Iterator[tuple[int, Fields]]:
        """The messages by a number that each of them has."""
        for value in np.unique(by).tolist():
            yield value, self.those(np.flatnonzero(by == value))

    def _spans(self, path: str) -> tuple[Positions, Positions]:
        starts, ends = self._reading.spans.get(path, (np.full(self._reading.n, _NOWHERE),) * 2)
        return starts[self._at], ends[self._at]


def _name(path: str) -> str:
    return path.rpartition(".")[2]


@dataclass(frozen=True)
class _Level:
    """A message as it is declared, and where among those around it."""

    declared: Message
    holder: str = ""
    """What its fields' paths begin with, as "kernel."."""
    numbers: str = ""
    """The same in numbers, from the outermost message on."""

    @cached_property
    def by_number(self) -> Mapping[int, tuple[str, Field, int]]:
        """Path, declaration and wire type of its fields."""
        return {
            field.number: (self.holder + name, field, _wire_type(field)) for name, field in self.declared.fields.items()
        }

    def nested(self, name: str, holder: str) -> _Level:
        field = self.declared.fields[name]
        assert isinstance(field.type, Message)
        return _Level(field.type, holder, f"{self.numbers}{field.number}.")


def _wire_type(field: Field) -> int:
    return LENGTH if isinstance(field.type, Message) else _WIRE_TYPES[field.type]


class _Reading:
    """Reads messages field by field.

    Numbers are kept by the field's path; of texts and nested messages, from where to where they lie, and so of all that
    a message holds of a repeated text. Repeated messages are listed.
    """

    def __init__(
        self, encoded: Encoded, starts: Positions, ends: Positions, level: _Level, undeclared: Counter[str]
    ) -> None:
        self.encoded = encoded
        self.n = len(starts)
        self.numbers: dict[str, NDArray[Any]] = {}
        self.spans: dict[str, tuple[Positions, Positions]] = {}
        self.undeclared = undeclared
        self._level = level
        self._lists: dict[str, list[tuple[Positions, Positions, Positions]]] = defaultdict(list)
        self._strange: dict[str, NDArray[np.bool_]] = {}
        self._n_steps = 0
        self._read(level, np.arange(self.n), starts, ends)
        undeclared.update({number: int(has.sum()) for number, has in self._strange.items()})

    def field(self, path: str) -> Field:
        level, name = self._declared_at(path)
        return level.declared.fields[name]

    def column(self, path: str) -> NDArray[Any]:
        return self.numbers[path] if path in self.numbers else np.full(self.n, self.field(path).default or 0)

    def n_nested(self, path: str) -> int:
        return sum(len(owners) for owners, _, _ in self._lists[path])

    def nested(self, path: str) -> tuple[Positions, Fields]:
        """The messages in a repeated field, and in which message each is."""
        nothing = np.empty(0, np.int64)
        parts = [(nothing, nothing, nothing), *self._lists[path]]
        owners, starts, ends = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(owners, kind="stable")
        level, name = self._declared_at(path)
        inner = _Reading(self.encoded, starts[order], ends[order], level.nested(name, ""), self.undeclared)
        return owners[order], Fields(inner)

    def _declared_at(self, path: str) -> tuple[_Level, str]:
        *holders, name = path.split(".")
        level = self._level
        for holder in holders:
            level = level.nested(holder, f"{level.holder}{holder}.")
        return level, name

    def _read(self, level: _Level, messages: Positions, at: Positions, ends: Positions) -> None:
        """What lies from `at` to `ends` in each of the messages."""
        n_waits = 0
        while (more := at < ends).any():
            if not more.all():
                messages, at, ends = messages[more], at[more], ends[more]
            tags, behind = self.encoded.varints(at)
            tag = int(tags.min())
            those = np.flatnonzero(tags == tag)
            if len(those) == len(at):
                at = self._read_field(level, tag, messages, at, behind, ends)
            elif (n_waits := n_waits + 1) <= MOST_WAITS:
                at = at.copy()
                at[those] = self._read_same(level, tag, messages[those], at[those], behind[those], ends[those])
            else:
                raise DecodeError("messages of one kind have their fields in too many orders")
        for name, field in level.declared.fields.items():
            if (path := level.holder + name) in self.spans and isinstance(field.type, Message):
                starts, ends = self.spans[path]
                there = np.flatnonzero(starts != _NOWHERE)
                self._read(level.nested(name, f"{path}."), there, starts[there], ends[there])

    def _read_same(
        self, level: _Level, tag: int, messages: Positions, at: Positions, behind: Positions, ends: Positions
    ) -> Positions:
        """Reads a field as often as it follows itself: those that repeat it hundreds of times let others wait once."""
        going = np.arange(len(at))
        while len(going):
            at[going] = self._read_field(level, tag, messages[going], at[going], behind, ends[going])
            going = going[at[going] < ends[going]]
            tags, behind = self.encoded.varints(at[going])
            again = tags == tag
            going, behind = going[again], behind[again]
        return at

    def _read_field(
        self, level: _Level, tag: int, messages: Positions, at: Positions, behind: Positions, ends: Positions
    ) -> Positions:
        """Reads the field that begins at `at`, with a tag that ends at `behind`. Returns where it ends."""
        self._n_steps += 1
        if self._n_steps > MOST_STEPS:
            raise DecodeError(f"messages have more than {MOST_STEPS} fields")
        number, wire_type = tag >> 3, tag & 7
        path, field, expected = level.by_number.get(number, _UNKNOWN)
        value, following = self.encoded.values(wire_type, behind, ends)
        if wire_type != expected:
            what = f"{level.numbers}{number}" if len(self._strange) < MOST_UNDECLARED else f"{level.numbers}others"
            self._strange.setdefault(what, np.zeros(self.n, np.bool_))[messages] = True
        elif wire_type != LENGTH:
            self._keep_numbers(path, field, messages, value)
        elif not field.repeated:
            self._keep_spans(path, messages, value, following)
        elif field.type is Scalar.BYTES:
            self._keep_run(path, messages, at, following)
        else:
            self._lists[path].append((messages, value, following))
        return following

    def _keep_numbers(self, path: str, field: Field, messages: Positions, value: NDArray[Any]) -> None:
        if path not in self.numbers:
            self.numbers[path] = np.full(self.n, field.default or 0, value.dtype)
        self.numbers[path][messages] = value

    def _keep_spans(self, path: str, messages: Positions, starts: Positions, ends: Positions) -> None:
        if path not in self.spans:
            self.spans[path] = (np.full(self.n, _NOWHERE), np.full(self.n, _NOWHERE))
        self.spans[path][0][messages], self.spans[path][1][messages] = starts, ends

    def _keep_run(self, path: str, messages: Positions, starts: Positions, ends: Positions) -> None:
        """From the first of a message to its last; fields in between are no harm."""
        if path in self.spans:
            before = self.spans[path][0][messages]
            starts = np.where(before == _NOWHERE, starts, before)
        self._keep_spans(path, messages, starts, ends)
