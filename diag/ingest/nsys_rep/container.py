"""The events of a report: a header that counts them, blocks that hold them, and a table of strings.

Nothing here knows what an event means. A block is unpacked only when it fits in `LARGEST_BLOCK_BYTES`, and handed on in
pieces, for what is decoded takes many times the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import lz4.block
from google.protobuf.message import DecodeError

from diag.errors import InputError
from diag.ingest.input_file import Bounds
from diag.ingest.messages import BYTES, Field, Message, ints, message_class
from diag.ingest.nsys_rep.magic import MAGIC
from diag.ingest.nsys_rep.sections import Section, SectionedFile
from diag.ingest.nsys_rep.wire import MOST_VARINT_BYTES, Bytes, fields, length_prefixed, pieces, varint
from diag.model.units import size

LARGEST_BLOCK_BYTES = 1 << 30
"""Unpacked. nsys puts 7,000 events into a block, which makes 0.3 to 2 MB, or 280 MB where each has a text of 40 kB;
and into one block all strings, with what the program printed."""
PIECE_BYTES = 2 << 20
"""Of encoded events. A hostile one may hold a million of them, which take 170 MB."""
LONGEST_STRING_BYTES = 1 << 20
"""Of a string that is kept: names are shorter, and what a program printed is not kept anyway."""

_EVENTS = "Raw Sampling Data"
_EVENTS_MARK = b"QDTEXT00"
_SEARCHED_BYTES = 16 << 20
"""Where the section of events is looked for when the table of sections is lost; it began at byte 9,039 at most."""
_MOST_LZ4_GAINS = 256
"""LZ4 packs 255 bytes into one at best (LZ4 block format: a length grows by 255 for each byte)."""

_OFFSETS = message_class(Message("Offsets", {"compression": Field(1, BYTES), **ints(strings_at=2, schemas_at=3)}))
_HEADER = message_class(Message("Header", {"compression": Field(9, BYTES), **ints(n_events=1)}))
_COUNTED = message_class(Message("Counted", {"events": Field(1, BYTES, repeated=True)}))
_STRING, _OUTPUT = 1, 2
_OUTPUTS = message_class(Message("Output", ints(globalPid=1, filename=2, content=3)))


class Damaged(InputError):
    """The file does not hold what a report holds there."""


class Container:
    """A report, open for reading.

    `losses` says, a phrase each, what of it is cut off or damaged; the rest can be read all the same. Raises Damaged
    when not even the header of its events is there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.losses: list[str] = []
        self._file = SectionedFile(path)
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def _open(self) -> None:
        name, n_bytes = self.path.name, self._file.n_bytes
        if self._file.read(Section(0, min(len(MAGIC), n_bytes))) != MAGIC:
            raise Damaged(f"{name} does not begin like an Nsight Systems report; it may be empty or damaged.")
        if not self._file.sections:
            self.losses.append("its end is missing")
        try:
            events = self._file.sections.get(_EVENTS) or self._search_events()
            self.host, at = self._message(events.start + len(_EVENTS_MARK), events.end)
            self.header, self._blocks_at = self._message(at, events.end)
            self.n_events = max(_HEADER.FromString(self.header).n_events, 0)
        except (ValueError, DecodeError) as error:
            raise Damaged(f"{name} is damaged, or cut short before its first event. Copy it again.") from error
        self._events_end = events.end
        offsets = self._offsets()
        self._strings_at = self._find_strings(events, offsets.strings_at)
        self._schemas_at = events.start + len(_EVENTS_MARK) + offsets.schemas_at if offsets.schemas_at else None

    def _search_events(self) -> Section:
        head = self._file.read(Section(0, min(self._file.n_bytes, _SEARCHED_BYTES)))
        return Section(head.index(_EVENTS_MARK), self._file.n_bytes)

    def _offsets(self) -> Any:
        """What lies where in the section of events, counted from behind its mark; 0 where the file does not say."""
        try:
            return _OFFSETS.FromString(self.section("Sampling Data Offsets"))
        except DecodeError:
            return _OFFSETS()

    def _find_strings(self, events: Section, offset: int) -> int:
        """Where the table of strings begins: as the file says, else behind the last of the events that it declares."""
        at = events.start + len(_EVENTS_MARK) + offset
        if offset and self._blocks_at <= at < events.end:
            return at
        n_events, at = 0, self._blocks_at
        try:
            while n_events < self.n_events:
                plain, at = self._block(at, events.end)
                n_events += sum(len(_COUNTED.FromString(bytes(piece)).events) for piece in _pieces(plain))
        except (ValueError, DecodeError):
            return events.end
        return at

    def section(self, name: str) -> bytes:
        """A section's bytes; none where the file has no such section."""
        return self._file.section(name)

    def blocks(self, most_bytes: int = Bounds.plain_bytes) -> Iterator[bytes]:
        """The messages whose field 1 is repeated for every event; up to the first block that is damaged.

        Raises InputError when they unpack to more than `most_bytes`.
        """
        at, n_bytes = self._blocks_at, 0
        try:
            while at < self._strings_at:
                plain, at = self._block(at, self._strings_at)
                n_bytes += len(plain)
                if n_bytes > most_bytes:
                    raise InputError(
                        f"{self.path} unpacks to more than {size(most_bytes)}. If you trust it, raise the limit with "
                        "--max-size."
                    )
                yield from map(bytes, _pieces(plain))
        except ValueError as error:
            self.losses.append(f"the events from byte {at:,} on cannot be read, for {error}")

    @property
    def strings(self) -> list[bytes]:
        """The texts that names of events are indices into; none when they are lost."""
        return self._table_of_strings[0]

    @property
    def outputs(self) -> Sequence[Any]:
        """What processes printed: `globalPid`, and indices of the texts that are `filename` and `content`."""
        return self._table_of_strings[1]

    @cached_property
    def _table_of_strings(self) -> tuple[list[bytes], list[Any]]:
        # By hand: what a program printed may be larger than all else, and protobuf would copy it twice.
        strings, outputs = [], []
        try:
            plain, _ = self._block(self._strings_at, self._events_end)
            for body in length_prefixed(memoryview(plain)):
                for number, start, end in fields(body):
                    if number == _STRING:
                        strings.append(bytes(body[start : min(end, start + LONGEST_STRING_BYTES)]))
                    elif number == _OUTPUT:
                        outputs.append(_OUTPUTS.FromString(bytes(body[start:end])))
        except (ValueError, DecodeError):
            self.losses.append("the names are lost")
            return [], []
        return strings, outputs

    def behind_strings(self) -> Iterator[bytes]:
        """The messages that follow the table of strings in the section of events."""
        try:
            packed, _ = self._packed(self._strings_at, self._events_end)
            at = packed.end
            while at < self._events_end:
                message, at = self._message(at, self._events_end)
                yield message
        except ValueError:
            self.losses.append("what describes threads and devices is lost")

    def payload_schemas(self) -> bytes:
        """How the bytes are to be read that NVTX events carry; none where no program said so."""
        if self._schemas_at is None:
            return b""
        try:
            plain, _ = self._block(self._schemas_at, self._events_end)
            (body,) = length_prefixed(plain)
        except ValueError:
            self.losses.append("what the payloads of NVTX events mean is lost")
            return b""
        return bytes(body)

    def _block(self, at: int, end: int) -> tuple[bytes, int]:
        """A block, unpacked, and where it ends."""
        packed, plain_bytes = self._packed(at, end)
        try:
            return lz4.block.decompress(self._file.read(packed), uncompressed_size=plain_bytes), packed.end
        except lz4.block.LZ4BlockError as error:
            raise ValueError("a block cannot be unpacked") from error

    def _packed(self, at: int, end: int) -> tuple[Section, int]:
        """Where the packed bytes of a block lie, and how many they unpack to."""
        sizes = self._file.read(Section(at, min(at + 2 * MOST_VARINT_BYTES, end)))
        packed_bytes, n = varint(sizes, 0)
        plain_bytes, n = varint(sizes, n)
        if packed_bytes > end - at - n:
            raise ValueError("a block is cut short")
        if plain_bytes > packed_bytes * _MOST_LZ4_GAINS:
            raise ValueError("a block claims to be larger than it can be")
        if plain_bytes > LARGEST_BLOCK_BYTES:
            raise ValueError(f"a block is larger than the {size(LARGEST_BLOCK_BYTES)} that are unpacked at once")
        return Section(at + n, at + n + packed_bytes), plain_bytes

    def _message(self, at: int, end: int) -> tuple[bytes, int]:
        """A message behind its length, and where it ends."""
        length, n = varint(self._file.read(Section(at, min(at + MOST_VARINT_BYTES, end))), 0)
        if length > end - at - n:
            raise ValueError("a message is cut short")
        return self._file.read(Section(at + n, at + n + length)), at + n + length


def _pieces(plain: bytes) -> Iterator[Bytes]:
    for body in length_prefixed(memoryview(plain)):
        yield from pieces(body, PIECE_BYTES)
