"""Decodes many messages of one kind at once, with NumPy: the first field of each, then the second, to the last.

Protobuf makes an object of every message, and of every value when it is read; here a step of some array operations
reads one field of thousands of messages. A million NVTX events so become columns in 0.6 s instead of 1.2 s
(`tests/bench/bench_nvtx_report.py`). It pays for messages that come by the million and have few fields.

Source: Protocol Buffers documentation, "Encoding".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from diag.ingest.nsys_rep.messages import NO_TEXT, Field, Message, Scalar

Positions = NDArray[np.int64]
Words = NDArray[np.uint64]
Selection = slice | NDArray[np.intp]

MOST_FIELDS = 256
"""Of one message: as many steps are gone for its sake, each as costly as if it were thousands of messages."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_WIRE_TYPES = {Scalar.INT: _VARINT, Scalar.DOUBLE: _FIXED64, Scalar.FLOAT: _FIXED32, Scalar.BYTES: _LENGTH}
_UNKNOWN = ("", Field(0), -1)


def decoded(messages: Sequence[bytes], declared: Message) -> Fields:
    """The fields of encoded messages. Raises DecodeError when one of them is damaged."""
    ends = np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)))
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    return Fields(_Buffer(b"".join(messages)), starts, ends, declared, Counter(), "")


class Fields:
    """What many messages hold, by field. `undeclared` counts the messages that hold a field which is not declared, by
    the numbers on the way to it, as "8.30"; those of nested messages when these are asked for.
    """

    def __init__(
        self,
        buffer: _Buffer,
        starts: Positions,
        ends: Positions,
        declared: Message,
        undeclared: Counter[str],
        path: str,
    ) -> None:
        self.undeclared = undeclared
        self._buffer = buffer
        self._declared = declared
        self._path = path
        self._n = len(starts)
        self._numbers: dict[str, NDArray[Any]] = {}
        self._spans: dict[str, list[tuple[Positions, Positions, Positions]]] = {}  # messages, and from where to where
        self._read(starts, ends)

    def __len__(self) -> int:
        return self._n

    def numbers(self, names: Iterable[str]) -> dict[str, list[Any]]:
        """The number of each message, or its default, by field; without the fields that no message has."""
        return {name: self._numbers[name].tolist() for name in names if name in self._numbers}

    def texts(self, names: Iterable[str]) -> dict[str, list[bytearray]]:
        """As `numbers`. A bytearray is what Python's sqlite3 takes fastest."""
        return {name: self._texts(name) for name in names if name in self._spans}

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The number of each message, or its default."""
        return self._numbers.get(name, np.full(self._n, self._declared.fields[name].default or 0))

    def __contains__(self, name: str) -> bool:
        """Whether any message has the field."""
        return name in self._numbers or name in self._spans

    def nested(self, name: str) -> tuple[Positions, Fields]:
        """The messages inside of a field, and in which message each is: in order, and once where it is not repeated."""
        field = self._declared.fields[name]
        assert isinstance(field.type, Message)
        spans = self._spans.get(name, [(np.empty(0, np.int64),) * 3])
        owners, starts, ends = (np.concatenate(parts) for parts in zip(*spans, strict=True))
        order = np.argsort(owners, kind="stable")
        if not field.repeated:  # the last is the one that counts
            order = order[np.append(np.diff(owners[order]) > 0, True)[: len(order)]]
        path = f"{self._path}{field.number}."
        return owners[order], Fields(self._buffer, starts[order], ends[order], field.type, self.undeclared, path)

    def _texts(self, name: str) -> list[bytearray]:
        starts = np.full(self._n, self._buffer.nothing_at)
        ends = starts + (self._declared.fields[name].default == NO_TEXT)  # a NUL lies there
        for messages, from_, to in self._spans[name]:
            starts[messages], ends[messages] = from_, to
        return self._buffer.slices(starts, ends)

    def _read(self, at: Positions, ends: Positions) -> None:
        by_number = {field.number: (name, field, _wire_type(field)) for name, field in self._declared.fields.items()}
        strange: dict[int, NDArray[np.bool_]] = {}
        messages = np.arange(self._n)
        for _ in range(MOST_FIELDS):
            inside = at < ends
            if not inside.all():
                messages, at, ends = messages[inside], at[inside], ends[inside]
            if not len(messages):
                break
            tags, at = self._buffer.varints(at)
            following = np.empty_like(at)
            for tag, those in _groups(tags):
                number, wire_type = tag >> 3, tag & 7
                name, field, expected = by_number.get(number, _UNKNOWN)
                value, following[those] = self._buffer.values(wire_type, at[those], ends[those])
                if wire_type != expected:
                    strange.setdefault(number, np.zeros(self._n, np.bool_))[messages[those]] = True
                elif wire_type == _LENGTH:
                    self._spans.setdefault(name, []).append((messages[those], value, following[those]))
                else:
                    self._column(name, field, value.dtype)[messages[those]] = value
            at = following
        else:
            raise DecodeError(f"a message has more than {MOST_FIELDS} fields")
        self.undeclared.update({f"{self._path}{number}": int(has.sum()) for number, has in strange.items()})

    def _column(self, name: str, field: Field, dtype: np.dtype[Any]) -> NDArray[Any]:
        if name not in self._numbers:
            self._numbers[name] = np.full(self._n, field.default or 0, dtype)
        return self._numbers[name]


def _wire_type(field: Field) -> int:
    return _LENGTH if isinstance(field.type, Message) else _WIRE_TYPES[field.type]


def _groups(tags: Positions) -> Iterator[tuple[int, Selection]]:
    """Which messages have a field of which tag next; most often all have the same."""
    if (tags == tags[0]).all():
        yield int(tags[0]), slice(None)
    else:
        for tag in np.unique(tags).tolist():
            yield tag, np.flatnonzero(tags == tag)


class _Buffer:
    """Encoded messages, one behind the other, to be read at many places at once."""

    def __init__(self, content: bytes) -> None:
        self.nothing_at = len(content)
        self._content = bytearray(content + bytes(4 * _WORD_BYTES))
        # A word begins at every byte. What is read behind the end of a message is found out when its end is compared.
        self._words: Words = np.ndarray((len(content) + 3 * _WORD_BYTES,), "<u8", self._content, strides=(1,))

    def values(self, wire_type: int, at: Positions, ends: Positions) -> tuple[NDArray[Any], Positions]:
        """Values of one wire type, of a text its beginning, and where each ends."""
        value: NDArray[Any]
        if wire_type == _VARINT:
            value, following = self.varints(at)
        elif wire_type == _LENGTH:
            length, value = self.varints(at)
            following = value + length
            if (following < value).any():
                raise DecodeError("a length is negative")
        elif wire_type == _FIXED64:
            value, following = self._words[at].view(np.float64), at + 8
        elif wire_type == _FIXED32:
            value, following = self._words[at].astype(np.uint32).view(np.float32), at + 4
        else:
            raise DecodeError(f"no message has wire type {wire_type}")
        if (following > ends).any():
            raise DecodeError("a field ends behind its message")
        return value, following

    def varints(self, at: Positions) -> tuple[Positions, Positions]:
        """Numbers and where each ends."""
        words = self._words[at]
        ends = ~words & _HIGH_BITS
        last = ends & (~ends + _ONE)  # the high bit of a number's last byte; 0 where it has more than 8
        values = _sevens_joined(words & (last - _ONE))
        n_bytes = (np.log2(last, out=np.zeros(len(last)), where=last > 0).astype(np.int64) >> 3) + 1
        if (long := np.flatnonzero(last == 0)).size:
            ninth, tenth = self._words[at[long] + 8] & _BYTE, self._words[at[long] + 9] & _BYTE
            is_ten = ninth >= _HIGH_BIT
            if (is_ten & (tenth >= _HIGH_BIT)).any():
                raise DecodeError("a number does not end")
            high = (ninth & _SEVEN_BITS) << np.uint64(56) | np.where(is_ten, tenth, 0) << np.uint64(63)
            values[long] = _sevens_joined(words[long]) | high
            n_bytes[long] = np.where(is_ten, 10, 9)
        return values.view(np.int64), at + n_bytes

    def slices(self, starts: Positions, ends: Positions) -> list[bytearray]:
        content = self._content
        return [content[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _sevens_joined(words: Words) -> Words:
    """The lower seven bits of each of the eight bytes of a word, joined: neighbours, then pairs, then fours."""
    words = words & _LOW_BITS
    for bits, low, high in _JOINS:
        words = words & low | (words & high) >> bits
    return words


_WORD_BYTES = 8
_ONE, _BYTE, _HIGH_BIT, _SEVEN_BITS = map(np.uint64, (1, 0xFF, 0x80, 0x7F))
_HIGH_BITS, _LOW_BITS = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)
_JOINS = [
    (np.uint64(bits), np.uint64(low), np.uint64(high))
    for bits, low, high in (
        (1, 0x007F007F007F007F, 0x7F007F007F007F00),
        (2, 0x00003FFF00003FFF, 0x3FFF00003FFF0000),
        (4, 0x000000000FFFFFFF, 0x0FFFFFFF00000000),
    )
]
