"""What a worker writes: frames, each a kind, a length, and a record as MessagePack.

MessagePack holds plain data only, and is decoded into declared types: an answer can be wrong, but it can run nothing.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TypeVar

import msgspec

from diag.ingest.launch_records import LaunchRecord, ProfiledDevice

LARGEST_FRAME_BYTES = 1 << 30

_HEAD = struct.Struct("<BI")
_T = TypeVar("_T")


@dataclass(frozen=True)
class SourceFile:
    """Source code that was imported into the report."""

    name: str
    text: str


@dataclass(frozen=True)
class End:
    """The last frame of a worker. `next_launch`: the one that another worker has to go on with; None after the last."""

    next_launch: int | None
    n_damaged_launches: int
    n_nameless_metrics: int


@dataclass(frozen=True)
class Failure:
    """The last frame of a worker that gave up."""

    because: str


class Kind(enum.IntEnum):
    DEVICE = 1
    SOURCE = 2
    LAUNCH = 3
    END = 4
    FAILURE = 5


_KINDS: dict[type, Kind] = {
    ProfiledDevice: Kind.DEVICE,
    SourceFile: Kind.SOURCE,
    LaunchRecord: Kind.LAUNCH,
    End: Kind.END,
    Failure: Kind.FAILURE,
}


_NUMBERS = frozenset(Kind)


class Garbled(Exception):
    """Not what a worker writes."""


@dataclass(frozen=True)
class Frame:
    """Where a frame's record lies in the file."""

    kind: Kind
    start: int
    n_bytes: int


def write(file: IO[bytes], record: object) -> None:
    body = msgspec.msgpack.encode(record)
    file.write(_HEAD.pack(_KINDS[type(record)], len(body)) + body)


def frames(file: IO[bytes], start: int, end: int) -> Iterator[Frame]:
    """Those between two positions of a file, which is read only as far as they are taken. Raises Garbled."""
    while start < end:
        file.seek(start)
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise Garbled("it ends inside a frame")
        number, n_bytes = _HEAD.unpack(head)
        start += _HEAD.size
        if number not in _NUMBERS or n_bytes > min(end - start, LARGEST_FRAME_BYTES):
            raise Garbled("it holds what is no frame")
        yield Frame(Kind(number), start, n_bytes)
        start += n_bytes


def decoded(file: IO[bytes], frame: Frame, decoder: msgspec.msgpack.Decoder[_T]) -> _T:
    """The record of a frame. Raises Garbled."""
    file.seek(frame.start)
    try:
        return decoder.decode(file.read(frame.n_bytes))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Garbled(f"a frame does not hold its record: {error}") from error
