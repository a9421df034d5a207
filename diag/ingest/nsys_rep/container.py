"""The container of a report: its sections, and in them blocks of events and a table of strings.

Nothing here knows what an event means. Sizes that the file claims are checked against what it holds, and a block is
unpacked only when it fits in `LARGEST_BLOCK_BYTES`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import lz4.block
from google.protobuf.message import DecodeError

from diag.errors import InputError
from diag.ingest.nsys_rep.messages import BYTES, Field, Message, ints, message_class
from diag.ingest.nsys_rep.wire import MOST_VARINT_BYTES, length_prefixed, varint

MAGIC = b"NVIDIA Tegra Profiler Report "
LARGEST_BLOCK_BYTES = 128 << 20
"""Unpacked. nsys puts 7,000 events into a block, which makes 0.3 to 2 MB."""
LARGEST_SECTION_BYTES = 256 << 20
"""Of sections that are read whole: descriptions of hosts, processes and options. The largest seen has 0.4 MB."""

_TRAILER = struct.Struct("<Q8s")
_TRAILER_MARK = b"U3w[END]"
_EVENTS_MARK = b"QDTEXT00"
_SEARCHED_BYTES = 16 << 20
"""Where the section of events is looked for when the table of sections is lost; it began at byte 9,039 at most."""
_MOST_LZ4_GAINS = 256
"""LZ4 packs 255 bytes into one at best (LZ4 block format, "Parsing restrictions")."""

EVENTS = "Raw Sampling Data"
OFFSETS = "Sampling Data Offsets"

_SECTION = Message("Section", {"name": Field(1, BYTES), **ints(start=2, length=3)})
_TABLE = message_class(Message("SectionTable", {"sections": Field(1, _SECTION, repeated=True)}))
_OFFSETS = message_class(Message("Offsets", {"compression": Field(1, BYTES), **ints(strings_at=2)}))
_HEADER = message_class(Message("Header", {"compression": Field(9, BYTES), **ints(n_events=1)}))
_COUNTED = message_class(Message("Counted", {"events": Field(1, BYTES, repeated=True)}))
_STRINGS = message_class(Message("Strings", {"texts": Field(1, BYTES, repeated=True)}))


class Damaged(InputError):
    """The file does not hold what a report holds there."""


@dataclass(frozen=True)
class Section:
    """Where a part of the file lies, in bytes from its beginning."""

    start: int
    end: int


class Container:
    """A report, open for reading.

    `losses` says, a phrase each, what of it is cut off or damaged; the rest can be read all the same. Raises Damaged
    when not even the header of its events is there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.losses: list[str] = []
        self._file = path.open("rb")
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
        self._size = self._file.seek(0, os.SEEK_END)
        if self._read(Section(0, len(MAGIC))) != MAGIC:
            raise Damaged(f"{self.path.name} does not begin like an Nsight Systems report; it may be empty or damaged.")
        self.sections = self._table_of_sections()
        events = self.sections.get(EVENTS) or self._search_events()
        try:
            self.host, at = self._message(events.start + len(_EVENTS_MARK), events.end)
            header, self._blocks_at = self._message(at, events.end)
            self.n_events = max(_HEADER.FromString(header).n_events, 0)
        except (ValueError, DecodeError) as error:
            raise Damaged(f"{self.path.name} is damaged or cut short before its first event. Copy it again.") from error
        self._events_end = events.end
        self._strings_at = self._find_strings(events)

    # ---- where things are

    def _table_of_sections(self) -> dict[str, Section]:
        """The sections by name; none when the end of the file, where their table is, was lost."""
        trailer_at = self._size - _TRAILER.size
        try:
            table_at, mark = _TRAILER.unpack(self._read(Section(trailer_at, self._size)))
            if mark != _TRAILER_MARK:
                raise ValueError("no mark")
            rows = _TABLE.FromString(self._read(Section(table_at, trailer_at))).sections
            found = {row.name.decode(): Section(row.start, row.start + row.length) for row in rows}
        except (ValueError, DecodeError, struct.error):
            self.losses.append("its end is missing")
            return {}
        return {name: section for name, section in found.items() if 0 <= section.start <= section.end <= trailer_at}

    def _search_events(self) -> Section:
        head = self._read(Section(0, min(self._size, _SEARCHED_BYTES)))
        if (at := head.find(_EVENTS_MARK)) < 0:
            raise Damaged(f"{self.path.name} is cut short before its events, or damaged. Copy it again.")
        return Section(at, self._size)

    def _find_strings(self, events: Section) -> int:
        """Where the table of strings begins: as the file says, else behind the last of the events that it declares."""
        try:
            offsets = _OFFSETS.FromString(self.section(OFFSETS))
            at = events.start + len(_EVENTS_MARK) + offsets.strings_at
            if offsets.strings_at and self._blocks_at <= at < events.end:
                return int(at)
        except DecodeError:
            pass
        n_events, at = 0, self._blocks_at
        try:
            while n_events < self.n_events:
                plain, at = self._block(at, events.end)
                n_events += sum(len(_COUNTED.FromString(body).events) for body in length_prefixed(plain))
        except (ValueError, DecodeError):
            return events.end
        return at

    # ---- what they hold

    def section(self, name: str) -> bytes:
        """A section's bytes; none where the file has no such section."""
        section = self.sections.get(name)
        return self._read(section) if section else b""

    def blocks(self) -> Iterator[bytes]:
        """The messages whose field 1 is repeated for every event; up to the first that is damaged."""
        at = self._blocks_at
        try:
            while at < self._strings_at:
                plain, at = self._block(at, self._strings_at)
                yield from length_prefixed(plain)
        except ValueError as error:
            self.losses.append(f"the events from byte {at:,} on cannot be read: {error}")

    @cached_property
    def strings(self) -> list[bytes]:
        """The texts that names of events are indices into; none when they are lost."""
        try:
            plain, _ = self._block(self._strings_at, self._events_end)
            (body,) = length_prefixed(plain)
            return list(_STRINGS.FromString(body).texts)
        except (ValueError, DecodeError):
            self.losses.append("its names are lost")
            return []

    def behind_strings(self) -> Iterator[bytes]:
        """The messages that follow the table of strings in the section of events."""
        try:
            _, at = self._block(self._strings_at, self._events_end)
            while at < self._events_end:
                message, at = self._message(at, self._events_end)
                yield message
        except ValueError:
            return

    def _block(self, at: int, end: int) -> tuple[bytes, int]:
        """A block, unpacked, and where it ends."""
        sizes = self._read(Section(at, min(at + 2 * MOST_VARINT_BYTES, end)))
        packed_bytes, n = varint(sizes, 0)
        plain_bytes, n = varint(sizes, n)
        if packed_bytes > end - at - n:
            raise ValueError("a block is cut short")
        if plain_bytes > min(LARGEST_BLOCK_BYTES, packed_bytes * _MOST_LZ4_GAINS):
            raise ValueError("a block claims to be larger than it can be")
        packed = self._read(Section(at + n, at + n + packed_bytes))
        try:
            return lz4.block.decompress(packed, uncompressed_size=plain_bytes), at + n + packed_bytes
        except lz4.block.LZ4BlockError as error:
            raise ValueError("a block cannot be unpacked") from error

    def _message(self, at: int, end: int) -> tuple[bytes, int]:
        """A message behind its length, and where it ends."""
        length, n = varint(self._read(Section(at, min(at + MOST_VARINT_BYTES, end))), 0)
        if length > end - at - n:
            raise ValueError("a message is cut short")
        return self._read(Section(at + n, at + n + length)), at + n + length

    def _read(self, section: Section) -> bytes:
        if not 0 <= section.start <= section.end <= self._size:
            raise ValueError("outside of the file")
        if section.end - section.start > LARGEST_SECTION_BYTES:
            raise ValueError("larger than such a part can be")
        self._file.seek(section.start)
        return self._file.read(section.end - section.start)
